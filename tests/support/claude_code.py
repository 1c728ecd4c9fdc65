"""The pinned Claude Code program: from npm once, then from the cache that the image build uses too."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PINNED = Path(__file__).resolve().parents[2] / "runner_image" / "agents" / "claude-code"


def claude_code_dir() -> Path:
    """The directory that holds the executable `claude`: what an agent image has at /agent."""
    cache = Path(os.environ.get("REALCLI_CACHE") or Path.home() / ".cache" / "realcli") / "npm"
    cache.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256((PINNED / "package-lock.json").read_bytes()).hexdigest()[:12]
    folder = cache / f"claude-code-{digest}"
    with (cache / ".tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache) as partial:
                for name in ("package.json", "package-lock.json", ".npmrc"):
                    shutil.copy(PINNED / name, partial)
                subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=partial, check=True)
                with contextlib.suppress(FileExistsError):
                    shutil.copytree(partial, folder, copy_function=os.link)
    program = folder / "node_modules" / "@anthropic-ai" / "claude-code-linux-x64"
    (program / "claude").chmod(0o755)
    return program
