"""What is put beside the task's image: the toolkit (a Python that starts anywhere, with the runner) and the agent program."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import realcli.wire
import realcli_runner
from realcli_cli.local.cache import kept
from realcli_cli.main import UserError

NPM = {
    "claude-code": ("@anthropic-ai/claude-code-linux-x64/claude", "claude"),
    "codex": ("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl", "codex"),
}
"""Program -> (what of its npm package, its name in the agent's folder)."""
_LOCKED = ("package.json", "package-lock.json", ".npmrc")


def checkout() -> Path | None:
    """The repository, where these programs run from one."""
    root = Path(realcli_runner.__file__).resolve().parents[2]
    return root if (root / "runner_image" / "build-toolkit.sh").is_file() else None


def toolkit(given: Path | None) -> Path:
    """`--toolkit DIR`, or made of this machine's Python once. Mounted at /opt/realcli."""
    if given is not None:
        if not (given / "runner" / "start.py").is_file():
            raise UserError(f"--toolkit {given}: no runner/start.py in it; expected the files of the toolkit image")
        return given.resolve()
    root = checkout()
    if root is None:
        raise UserError(
            "the toolkit is missing: give --toolkit DIR with the files of the toolkit image "
            "(docker create IMAGE, docker export, tar -x), or run from a checkout"
        )
    for program in ("tmux", "ldd"):
        if shutil.which(program) is None:
            raise UserError(f"the toolkit is made of this machine's programs, and {program} is not installed: install it")
    files = _runner_files(root)
    digest = hashlib.sha256(sys.version.encode())
    for path, name in files:
        digest.update(f"{name}\0".encode() + path.read_bytes())
    return kept("toolkit", digest.hexdigest()[:16], lambda dest: _build(root, files, dest))


def _runner_files(root: Path) -> list[tuple[Path, str]]:
    """(file, name in the toolkit), sorted."""
    found = [
        (root / "runner_image" / "start.py", "runner/start.py"),
        (root / "runner_image" / "build-toolkit.sh", "build-toolkit.sh"),
    ]
    wire = Path(realcli.wire.__file__).parent
    found.append((wire.parent / "__init__.py", "runner/realcli/__init__.py"))
    for folder, name in ((Path(realcli_runner.__file__).parent, "realcli_runner"), (wire, "realcli/wire")):
        found += [(path, f"runner/{name}/{path.relative_to(folder)}") for path in sorted(folder.rglob("*.py"))]
    return found


def _build(root: Path, files: list[tuple[Path, str]], dest: Path) -> None:
    script = root / "runner_image" / "build-toolkit.sh"
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # the system's Python, not a virtual environment's
    done = subprocess.run(["bash", str(script), str(dest)], env={"PATH": path}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"the toolkit could not be made: {done.stderr.strip()[-1500:]}")
    (dest / "agent").mkdir(exist_ok=True)
    for source, name in files:
        if name.startswith("runner/"):
            target = dest / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def agent_folder(program: str, given: Path | None) -> Path:
    """`--agent-dir DIR`, or the pinned program from npm once. Mounted at /opt/realcli/agent."""
    if given is not None:
        if program in NPM and not (given / NPM[program][1]).exists():
            raise UserError(f"--agent-dir {given}: expected {NPM[program][1]} in it, as the agent image has it below /agent")
        return given.resolve()
    if program not in NPM:
        return kept("agents", "none", lambda dest: dest.mkdir())
    package = npm_package(program)
    source, name = package / "node_modules" / NPM[program][0], NPM[program][1]

    def make(dest: Path) -> None:
        dest.mkdir()
        if source.is_dir():
            shutil.copytree(source, dest / name, copy_function=os.link, symlinks=True)
        else:
            os.link(source, dest / name)
            (dest / name).chmod(0o755)

    return kept("agents", package.name, make)


def npm_package(program: str) -> Path:
    """The installed package, in the cache; its lock file decides the content."""
    root = checkout()
    if root is None:
        raise UserError(f"the program of {program} is missing: give --agent-dir DIR (the folder /agent of its agent image)")
    here = root / "runner_image" / "agents" / program

    def make(dest: Path) -> None:
        if shutil.which("npm") is None:
            raise UserError(f"npm is needed once to fetch {program}: install it, or give --agent-dir DIR")
        dest.mkdir()
        for name in _LOCKED:
            if (here / name).exists():
                shutil.copy2(here / name, dest / name)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=dest, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UserError(f"npm could not fetch {program}: {done.stderr.strip()[-1500:]}; give --agent-dir DIR instead")

    return kept("npm", f"{program}-{hashlib.sha256((here / 'package-lock.json').read_bytes()).hexdigest()[:12]}", make)


def terminus_words(given: Path | None) -> Path:
    """The folder of Terminus-2's prompt templates: `--templates DIR`, or out of the pinned wheel once."""
    if given is not None:
        if not (given / "wording.json").is_file():
            raise UserError(f"--templates {given}: no wording.json in it; hack/terminus_templates.py makes such a folder")
        return given.resolve()
    root = checkout()
    script = None if root is None else root / "hack" / "terminus_templates.py"
    if script is None or not script.is_file():
        raise UserError("the words of Terminus-2 are missing: give --templates DIR (the folder of the session image)")

    def make(dest: Path) -> None:
        done = subprocess.run([sys.executable, str(script), str(dest)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UserError(f"the words of Terminus-2 could not be fetched: {done.stderr.strip()[-1500:]}")

    return kept("terminus", hashlib.sha256(script.read_bytes()).hexdigest()[:12], make)
