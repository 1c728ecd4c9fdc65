"""Where things that are costly to make are kept: `$REALCLI_CACHE`, else ~/.cache/realcli. Made once, under a lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path


def cache_dir() -> Path:
    """The folder, made."""
    folder = Path(os.environ.get("REALCLI_CACHE") or Path.home() / ".cache" / "realcli")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kept(room: str, name: str, make: Callable[[Path], None]) -> Path:
    """`<cache>/<room>/<name>`: there already, or made by `make(partial)`, which has to create what `partial` names."""
    folder = cache_dir() / room
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / name
    with _locked(folder / f".{name}.lock"):
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=folder, prefix=".partial-") as partial:
                made = Path(partial) / "made"
                make(made)
                made.rename(place)
    return place


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def discard(folder: Path, tries: int = 50) -> None:
    """Remove a folder that untrusted programs have written to, if it is there; modes they took away are given back first.

    Some of them may be dying still, so what they put into it meanwhile is removed by the next of `tries`.
    """
    for left in reversed(range(tries)):
        try:
            _remove(folder)
        except OSError as error:
            if not left or error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise
            time.sleep(0.1)  # nobody tells when the kernel is done with a namespace
        else:
            return


def _remove(folder: Path) -> None:
    if not os.path.lexists(folder):
        return
    for place, folders, _ in os.walk(folder):  # top down, links not followed: each folder is opened up before it is entered
        for name in folders:
            below = os.path.join(place, name)
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(folder)
