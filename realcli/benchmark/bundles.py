"""Bundles: a tree of files as one tar.zst whose bytes depend on nothing but names, contents and the x bit.

Digest of a bundle = sha256 of its compressed bytes, which is also its name in storage.
"""

from __future__ import annotations

import io
import os
import posixpath
import stat
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import zstandard

MAX_BUNDLE = 256 << 20  # bytes unpacked
MAX_PATH = 1024  # bytes of a path in it: what it is unpacked below has to fit in as well
_LEVEL = 12
_HEADERS = 2048  # at most, of one member of the archive, beside its path: up to three headers, each part filled up to 512
_IGNORED = {"__pycache__", ".DS_Store", ".gitkeep"}


class File(NamedTuple):
    """A file of a tree: path relative to its root, 0o644 or 0o755, content."""

    path: str
    mode: int
    content: bytes


def read_tree(root: Path, parts: Iterable[str]) -> list[File]:
    """The files below `root` in the named parts (files or folders; absent ones are empty), sorted by path.

    ValueError for anything but files and folders (a link or a device would mean something else elsewhere), for names that a
    terminal would obey or that are no text, for paths over `MAX_PATH`, and for more than a bundle holds; that is said unread.
    """
    found: list[tuple[str, os.stat_result]] = []
    todo = sorted(part for part in parts if _there(root / part))
    packed = tarfile.RECORDSIZE * 2
    while todo:
        relative = todo.pop()
        path = root / relative
        if path.name in _IGNORED:
            continue
        if not relative.isprintable():
            raise ValueError(f"{relative!a} is a name with characters that are not printable; rename it")
        if len(relative.encode()) > MAX_PATH:
            raise ValueError(f"{relative[:80]}… is a path of more than {MAX_PATH} bytes; a bundle takes none so long: shorten it")
        info = path.lstat()
        if stat.S_ISDIR(info.st_mode):
            todo += [f"{relative}/{name}" for name in os.listdir(path)]
            continue
        if path.suffix == ".pyc":
            continue
        if not stat.S_ISREG(info.st_mode):
            raise ValueError(f"{relative} is a link or a special file; a bundle holds plain files: replace it by its content")
        found.append((relative, info))
        packed += info.st_size + _HEADERS + len(relative.encode())
    if packed > MAX_BUNDLE:
        largest = max(found, key=lambda one: one[1].st_size)
        raise ValueError(
            f"{len(found)} files with {packed} bytes are too much for one bundle, which holds {MAX_BUNDLE >> 20} MiB; the "
            f"largest is {largest[0]} with {largest[1].st_size} bytes: shorten it, or make it in the image"
        )
    return sorted(
        File(relative, 0o755 if info.st_mode & 0o100 else 0o644, (root / relative).read_bytes()) for relative, info in found
    )


def pack(files: Iterable[File]) -> bytes:
    """The bundle of these files. Equal files give equal bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in sorted(files):
            member = tarfile.TarInfo(file.path)
            member.size, member.mode = len(file.content), file.mode
            tar.addfile(member, io.BytesIO(file.content))
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, threads=0).compress(out.getvalue())


def unpack(bundle: bytes, root: Path) -> None:
    """Write the bundle's files below `root` (created, must be empty).

    ValueError for a damaged bundle, one over `MAX_BUNDLE`, and for members that are no plain file or would leave `root`.
    """
    root.mkdir(parents=True, exist_ok=True)
    if any(root.iterdir()):
        raise ValueError(f"{root} is not empty; a bundle is unpacked into a directory of its own")
    for file in unpacked(bundle):
        target = root / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)


def unpacked(bundle: bytes) -> list[File]:
    """The bundle's files, checked as in `unpack`."""
    try:
        # Our own frames state their content size; one that does not is not ours.
        size = zstandard.frame_content_size(bundle)
        if not 0 <= size <= MAX_BUNDLE:
            raise ValueError(f"the bundle states no size or one over {MAX_BUNDLE >> 20} MiB")
        with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompress(bundle)), mode="r:") as tar:
            return _distinct([_file(tar, member) for member in tar])
    except (zstandard.ZstdError, tarfile.TarError, EOFError) as error:
        raise ValueError(f"the bundle is damaged: {error}") from error


def _file(tar: tarfile.TarFile, member: tarfile.TarInfo) -> File:
    name = member.name
    if not member.isreg() or member.issparse():  # a sparse one may claim any size
        raise ValueError(f"the bundle holds {name!r}, which is no plain file")
    if name.startswith("/") or posixpath.normpath(name) != name or name.split("/")[0] in ("", ".", ".."):
        raise ValueError(f"the bundle holds {name!r}, which would leave its directory")
    content = tar.extractfile(member)
    assert content is not None  # isreg
    return File(name, 0o755 if member.mode & 0o100 else 0o644, content.read())


def _distinct(files: list[File]) -> list[File]:
    """The files, if each path stands once and none lies below another."""
    paths = {file.path for file in files}
    for file in files:
        above = next((str(parent) for parent in PurePosixPath(file.path).parents if str(parent) in paths), None)
        if above is not None:
            raise ValueError(f"the bundle holds {above!r} and {file.path!r} below it")
    if len(paths) != len(files):
        raise ValueError("the bundle holds a path twice")
    return files


def _there(path: Path) -> bool:
    return path.exists() or path.is_symlink()
