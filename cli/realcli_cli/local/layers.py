"""Applies the layers of an image to a folder: whiteouts, links, owners, modes. Nothing outside of the folder is touched.

Every path is resolved inside the folder, links included, as the image's own root would resolve it. Device nodes are left out: the
container gets its own.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import os
import shutil
import stat
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

import zstandard

from realcli_cli.local.archive import ImageArchive, Layer
from realcli_cli.main import UserError

MAX_BYTES = 64 << 30
MAX_ENTRIES = 4_000_000
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_XATTR = "SCHILY.xattr."
_CHUNK = 1 << 20


@dataclass
class Unpacked:
    """What was left out or could not be kept."""

    entries: int = 0
    size: int = 0
    devices: list[str] = field(default_factory=list)
    unowned: int = 0  # entries whose owner this process may not give


def unpack(archive: ImageArchive, dest: Path) -> Unpacked:
    """All layers, lowest first, into `dest` (created, empty). UserError names a damaged layer or one that reaches out."""
    dest.mkdir(parents=True)
    dest.chmod(0o755)
    made = Unpacked()
    for layer in archive.layers:
        with archive.files.open(layer.name) as file:
            _apply(layer, file, dest, made)
    return made


class _Hashing:
    """Reads through to a file and hashes what passes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.sha256.update(data)
        return data


def _plain(file: IO[bytes]) -> IO[bytes]:
    magic = file.read(4)
    file.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    if magic == b"\x28\xb5\x2f\xfd":
        return cast(IO[bytes], zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))
    return file


def _apply(layer: Layer, file: IO[bytes], dest: Path, made: Unpacked) -> None:
    hashing = _Hashing(_plain(file))
    root = _Root(dest, made)
    try:
        with tarfile.open(fileobj=cast(IO[bytes], hashing), mode="r|", encoding="utf-8", errors="surrogateescape") as tar:
            for member in tar:
                root.add(tar, member)
        while hashing.read(_CHUNK):
            pass
    except (tarfile.TarError, EOFError, zstandard.ZstdError, gzip.BadGzipFile) as error:
        raise UserError(f"layer {layer.name} of the image is damaged: {error}") from error
    found = f"sha256:{hashing.sha256.hexdigest()}"
    if found != layer.diff_id:
        raise UserError(f"layer {layer.name} of the image has the digest {found}, expected {layer.diff_id}: save the image again")


class _Root:
    """The folder during one layer."""

    def __init__(self, dest: Path, made: Unpacked) -> None:
        self._dest = dest
        self._made = made
        self._mine: set[str] = set()  # what this layer has brought: an opaque mark hides only what lies below it
        self._above: set[str] = set()  # the folders that this layer has put something into
        self._root = os.geteuid() == 0

    def add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """One entry."""
        self._made.entries += 1
        self._made.size += member.size if member.isreg() else 0
        if self._made.entries > MAX_ENTRIES or self._made.size > MAX_BYTES:
            raise UserError(f"the image is larger than {MAX_ENTRIES} entries or {MAX_BYTES >> 30} GiB unpacked")
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        if not parts:
            if member.isdir():
                self._dest.chmod(stat.S_IMODE(member.mode))
            return
        if ".." in parts or "\0" in member.name:
            raise UserError(f"the image holds an entry that leaves its root: {member.name!r}")
        parent, name = self._folder(parts[:-1]), parts[-1]
        if name == _OPAQUE:
            self._hide(parent)
        elif name.startswith(_WHITEOUT + _WHITEOUT):
            pass  # marks of old storage drivers
        elif name.startswith(_WHITEOUT):
            hidden = name.removeprefix(_WHITEOUT)
            if hidden in ("", ".", ".."):
                raise UserError(f"the image holds a whiteout of a folder it lies in: {member.name!r}")
            _remove(parent / hidden)
        else:
            self._put(tar, member, parent / name)

    def _hide(self, folder: Path) -> None:
        """Remove everything below that the layers under this one have brought."""
        for below in list(folder.iterdir()):
            ours = str(below) in self._mine
            if _is_folder(below) and (ours or str(below) in self._above):
                self._hide(below)
            elif not ours:
                _remove(below)

    def _put(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
        if not (member.isdir() and _is_folder(path)):
            _remove(path)
        if member.isdir():
            with contextlib.suppress(FileExistsError):
                path.mkdir()
        elif member.issym():
            path.symlink_to(member.linkname)
        elif member.islnk():
            os.link(self._target(member), path, follow_symlinks=False)
        elif member.isfifo():
            os.mkfifo(path)
        elif member.isreg():
            self._write(tar, member, path)
        else:
            self._made.devices.append(f"/{member.name}")
            return
        self._mine.add(str(path))
        above = path.parent
        while above != self._dest and str(above) not in self._above:
            self._above.add(str(above))
            above = above.parent
        if not member.islnk():
            self._describe(member, path)

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
        source = tar.extractfile(member)
        assert source is not None
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target, _CHUNK)

    def _describe(self, member: tarfile.TarInfo, path: Path) -> None:
        if self._root:
            try:
                os.lchown(path, member.uid, member.gid)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EPERM):
                    raise
                self._made.unowned += 1
        if member.issym():
            return
        path.chmod(stat.S_IMODE(member.mode))
        for name, value in member.pax_headers.items():
            if name.startswith(_XATTR):
                with contextlib.suppress(OSError):  # the file system or this user cannot hold it
                    os.setxattr(path, name.removeprefix(_XATTR), value.encode("utf-8", "surrogateescape"), follow_symlinks=False)
        if not member.isdir():
            os.utime(path, (member.mtime, member.mtime), follow_symlinks=False)

    def _target(self, member: tarfile.TarInfo) -> Path:
        parts = [part for part in member.linkname.split("/") if part not in ("", ".")]
        if not parts or ".." in parts:
            raise UserError(f"the image holds a link that leaves its root: {member.name!r} -> {member.linkname!r}")
        target = self._folder(parts[:-1]) / parts[-1]
        if not os.path.lexists(target):
            raise UserError(f"the image holds a hard link to nothing: {member.name!r} -> {member.linkname!r}")
        return target

    def _folder(self, parts: list[str]) -> Path:
        """The folder of these parts inside the root, links followed inside of it; made where it is missing."""
        return Path(resolve(self._dest, parts, make=True))


def resolve(root: Path, parts: list[str], *, make: bool = False) -> str:
    """A path inside `root` as a process with that root would see it; the last part's links are followed too. `make`: all of it
    is made a folder."""
    done: list[str] = []
    left = list(reversed(parts))
    for _ in range(4096):
        if not left:
            return os.path.join(root, *done)
        part = left.pop()
        if part in ("", "."):
            continue
        if part == "..":
            del done[-1:]
            continue
        path = os.path.join(root, *done, part)
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            if make:
                os.mkdir(path, 0o755)
            done.append(part)
            continue
        if stat.S_ISLNK(mode):
            target = os.readlink(path)
            if target.startswith("/"):
                done.clear()
            left += reversed(target.split("/"))
            continue
        if make and not stat.S_ISDIR(mode):
            os.unlink(path)
            os.mkdir(path, 0o755)
        done.append(part)
    raise UserError(f"the image holds a circle of links at /{'/'.join(parts)}")


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _remove(path: Path) -> None:
    if _is_folder(path):
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
