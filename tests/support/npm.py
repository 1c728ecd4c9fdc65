"""Pinned agent programs: from npm once, then from the cache that the image build uses too."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

AGENTS = Path(__file__).resolve().parents[2] / "runner_image" / "agents"


def installed(program: str) -> Path:
    """`node_modules` of the program's pinned package."""
    pinned = AGENTS / program
    cache = Path(os.environ.get("REALCLI_CACHE") or Path.home() / ".cache" / "realcli") / "npm"
    cache.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256((pinned / "package-lock.json").read_bytes()).hexdigest()[:12]
    folder = cache / f"{program}-{digest}"
    with (cache / ".tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache) as partial:
                for name in ("package.json", "package-lock.json", ".npmrc"):
                    shutil.copy(pinned / name, partial)
                subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=partial, check=True)
                with contextlib.suppress(FileExistsError):
                    shutil.copytree(partial, folder, copy_function=os.link)
    return folder / "node_modules"
