"""The operator of the newest earlier release, installed beside this one from the repository's own history."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import tomllib
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("REALCLI_CACHE", str(Path.home() / ".cache" / "realcli")))
RELEASED = re.compile(r"^## \[(\d+\.\d+\.\d+)\]", re.MULTILINE)


class Earlier(NamedTuple):
    """Where it is: run ``python -m realcli_operator`` in ``folder``."""

    version: str
    commit: str
    folder: Path
    python: Path


def git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.decode()}; the history of the repository is needed")
    return done.stdout


def commits() -> list[tuple[str, str]]:
    """Versions of the change log, newest first, each with the commit that is (or would be) tagged: the tag, else the commit that
    made it the project's version."""
    found = []
    for version in RELEASED.findall((ROOT / "CHANGELOG.md").read_text()):
        tag = git("tag", "--list", f"v{version}").decode().strip()
        ref = f"v{version}^{{commit}}" if tag else "HEAD"
        if not tag:
            made = git("log", f'-Sversion = "{version}"', "--format=%H", "--", "pyproject.toml").decode().split()
            if not made:
                continue
            ref = made[-1]
        found.append((version, git("rev-parse", ref).decode().strip()))
    return found


def newest_earlier() -> tuple[str, str]:
    """Version and commit of the newest release that is not this commit itself."""
    head = git("rev-parse", "HEAD").decode().strip()
    current = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for version, commit in commits():
        if commit == head:
            continue
        if version == current and not git("diff", "--name-only", commit, "HEAD", "--", "operator", "realcli").strip():
            continue  # nothing of the operator has changed since: that would be no other side
        return version, commit
    raise RuntimeError("CHANGELOG.md names no earlier release that the history has")


def earlier_operator() -> Earlier:
    """Installed into the cache, once per commit, with the packages that release pinned."""
    version, commit = newest_earlier()
    folder = CACHE / "earlier" / commit[:12]
    python = folder / ".venv" / "bin" / "python"
    if not (folder / ".complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=BytesIO(git("archive", commit))) as archive:
            archive.extractall(folder, filter="data")
        environment = {**os.environ, "VIRTUAL_ENV": str(folder / ".venv")}
        for command in (
            ["uv", "venv", "-q", "--clear", "--python", "3.11", ".venv"],
            ["uv", "pip", "sync", "-q", "--require-hashes", "constraints.txt"],
            ["uv", "pip", "install", "-q", "--no-deps", "-e", "."],
        ):
            subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        (folder / ".complete").touch()
    return Earlier(version, commit, folder, python)
