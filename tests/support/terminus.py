"""What runs of Terminus-2 need: its words out of the pinned wheel, and the toolkit with tmux. Both are cached."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def templates_script() -> ModuleType:
    """hack/terminus_templates.py."""
    spec = importlib.util.spec_from_file_location("terminus_templates", ROOT / "hack" / "terminus_templates.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words_folder() -> Path:
    """What the session image has at /opt/realcli/terminus-2/templates."""
    script = templates_script()
    sources = Path(script.__file__ or "").read_bytes() + script.REQUIREMENTS.read_bytes()
    return _cached(f"terminus-2-{hashlib.sha256(sources).hexdigest()[:12]}", script.unpack)


def toolkit_folder() -> Path:
    """The tree of the toolkit image without the runner."""
    script = ROOT / "runner_image" / "build-toolkit.sh"
    version = subprocess.run(["tmux", "-V"], capture_output=True, check=True, env={"PATH": SYSTEM_PATH}).stdout

    def build(dest: Path) -> None:
        subprocess.run(["bash", str(script), str(dest)], check=True, env={"PATH": SYSTEM_PATH}, stdout=subprocess.DEVNULL)
        (dest / "agent").mkdir()

    return _cached(f"toolkit-{hashlib.sha256(script.read_bytes() + version).hexdigest()[:12]}", build)


def _cached(name: str, make: Callable[[Path], object]) -> Path:
    cache = Path(os.environ.get("REALCLI_CACHE") or Path.home() / ".cache" / "realcli") / "tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / name
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = cache / f"partial-{name}"
            shutil.rmtree(partial, ignore_errors=True)
            make(partial)
            partial.rename(folder)
    return folder
