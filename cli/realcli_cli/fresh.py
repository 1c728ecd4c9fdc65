"""What a command writes on this machine: new, whole or not at all, and over nothing that is there."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from realcli_cli.main import UserError


def must_be_new(out: Path, told: str) -> None:
    """UserError where something is there. `told`: how the person named it, such as `--out report`."""
    try:
        there = out.exists() or out.is_symlink()
    except OSError as error:
        raise UserError(f"{told:.200} cannot be written: {error.strerror}") from error
    if there:
        raise UserError(f"{told} exists, and nothing is overwritten; name another or remove it first")


@contextlib.contextmanager
def new_folder(out: Path, told: str) -> Iterator[Path]:
    """A folder to fill; it gets its name when it is whole, and is gone when that fails."""
    must_be_new(out, told)
    partial = out.with_name(f".{out.name}.part-{os.getpid()}")
    try:
        partial.mkdir(parents=True)
        yield partial
        must_be_new(out, told)
        partial.rename(out)
    except OSError as error:
        raise UserError(f"{told} cannot be written: {error.filename}: {error.strerror}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_new(path: Path, content: bytes) -> None:
    """A file, and the folders above it, that were not there."""
    partial = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("xb") as out:
                out.write(content)
            os.link(partial, path)  # unlike a rename it never replaces
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.filename}: {error.strerror}") from error
