"""A task's image as a root folder and the environment to start in: from an archive, a folder, or a container engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from realcli_cli.local.archive import open_archive
from realcli_cli.local.cache import kept
from realcli_cli.local.engine import ENGINES
from realcli_cli.local.layers import unpack
from realcli_cli.local.runner import DEFAULT_PATH
from realcli_cli.main import UserError


@dataclass(frozen=True)
class RootImage:
    """A pristine root (never run in; every container gets a copy) and what the image says about starting."""

    root: Path
    env: dict[str, str]
    workdir: str
    user: str
    notes: tuple[str, ...] = ()


def image_of_archive(path: Path) -> RootImage:
    """Unpacked once into the cache, by the image's own id."""
    with open_archive(path) as archive:
        config = archive.config

        def make(partial: Path) -> None:
            partial.mkdir()
            made = unpack(archive, partial / "rootfs")
            notes = [f"{len(made.devices)} device nodes of the image are left out"] if made.devices else []
            if made.unowned:
                notes.append(f"{made.unowned} entries have an owner that cannot be given here; they belong to root")
            about = {"env": config.env, "workdir": config.workdir, "user": config.user, "notes": notes}
            (partial / "image.json").write_text(json.dumps(about))

        name = config.digest.removeprefix("sha256:")[:24] + ("" if _real_root() else f"-{os.environ.get('SUDO_UID', 'userns')}")
        place = kept("images", name, make)
    about = json.loads((place / "image.json").read_text())
    return RootImage(place / "rootfs", about["env"], about["workdir"], about["user"], tuple(about["notes"]))


def image_of_folder(path: Path) -> RootImage:
    """A root folder, e.g. of debootstrap. It is copied, never changed."""
    if not (path / "bin").exists() and not (path / "usr").exists():
        raise UserError(f"--root {path}: not a root folder (neither bin/ nor usr/ in it)")
    return RootImage(path.resolve(), {"PATH": DEFAULT_PATH}, "/", "")


def archive_of_task(task: Path, image: str) -> Path:
    """An archive of the task's image: what an engine on this machine has or can build. UserError says what else to do."""
    builder = next((name for name in (*ENGINES, "buildah") if shutil.which(name) and _answers(name)), None)
    if builder is None:
        raise UserError(
            f"the task's image {image} is needed, and no docker, podman or buildah answers here to get it "
            "(that of `make demo` does with DOCKER_HOST=unix://$HOME/.cache/realcli/docker/docker.sock); give an archive of it "
            "(--image FILE, made elsewhere by `docker save -o FILE IMAGE` or `buildah push IMAGE oci-archive:FILE`), "
            "or a root folder (--root DIR)"
        )
    if not _succeeds(builder, "inspect", "--type", "image", image):
        _build(builder, task, image)
    return _saved(builder, image)


def _build(builder: str, task: Path, image: str) -> None:
    context = task / "environment"
    if not (context / "Dockerfile").is_file():
        _run(f"{builder} has no image {image}, and {context}/Dockerfile does not exist", builder, "pull", image)
        return
    command = "bud" if builder == "buildah" else "build"
    _run(f"{builder} could not build {context}", builder, command, "-t", image, str(context))


def _saved(builder: str, image: str) -> Path:
    listed = subprocess.run([builder, "inspect", "--type", "image", image], capture_output=True, text=True, check=False)
    found = json.loads(listed.stdout) if listed.returncode == 0 else []
    about = found[0] if isinstance(found, list) and found else found
    id = str(about.get("Id") or about.get("FromImageID") or "").removeprefix("sha256:")
    if not id:
        raise UserError(f"{builder} does not tell the id of {image}: {listed.stderr.strip()}")

    def make(partial: Path) -> None:
        if builder == "buildah":
            _run(f"{builder} could not save {image}", builder, "push", image, f"oci-archive:{partial}")
        else:
            _run(f"{builder} could not save {image}", builder, "save", "-o", str(partial), image)

    return kept("archives", f"{id[:24]}.tar", make)


def _answers(name: str) -> bool:
    return _succeeds(name, "info")


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _run(problem: str, *command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"{problem}: `{' '.join(command)}` says: {done.stderr.strip()[-1500:]}")


def _real_root() -> bool:
    """False in a user namespace, where owners are others."""
    return os.environ.get("REALCLI_USERNS") is None
