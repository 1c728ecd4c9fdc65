"""The pinned Codex program."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.support.npm import installed

VENDOR = Path("@openai") / "codex-linux-x64" / "vendor" / "x86_64-unknown-linux-musl"


def codex_dir() -> Path:
    """A directory like /agent of the agent image: `codex/` is the package's vendor folder (bin, codex-path, codex-resources)."""
    vendor = installed("codex") / VENDOR
    place = vendor.parent / "agent"
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=vendor.parent) as folder:
            made = Path(folder) / "agent"
            shutil.copytree(vendor, made / "codex", copy_function=os.link)  # the runner follows no symbolic link
            try:
                made.rename(place)
            except OSError:
                if not place.exists():
                    raise
    return place
