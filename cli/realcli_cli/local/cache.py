"""Where things that are costly to make are kept: `$REALCLI_CACHE`, else ~/.cache/realcli. Made once, under a lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import secrets
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
    """Its depth was another's choice: no path, stack or number of open files may grow with it. So folders inside move up."""
    if not os.path.lexists(folder):
        return
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        names = (f"{secrets.token_hex(8)}-{number}" for number in itertools.count())
        waiting = _emptied(top, top, names)
        while waiting:
            name = waiting.pop()
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
            try:
                waiting += _emptied(inner, top, names)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    folder.rmdir()


def _emptied(place: int, top: int, names: Iterator[str]) -> list[str]:
    """Remove the files of a folder and move its folders to the top, opened up; their names there. Links are not followed."""
    with os.scandir(place) as found:
        entries = list(found)
    folders = []
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name, dir_fd=place)
            continue
        os.chmod(entry.name, 0o700, dir_fd=place)
        name = next(names)
        os.rename(entry.name, name, src_dir_fd=place, dst_dir_fd=top)
        folders.append(name)
    return folders
