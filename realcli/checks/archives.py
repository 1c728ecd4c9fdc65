"""What is packed in a file: archives in archives, to a depth and a size. What cannot be opened is told, never passed over."""

from __future__ import annotations

import bz2
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import zstandard

from realcli.checks.found import Missing

MAX_UNPACKED = 256 << 20  # bytes of one archive, all that is packed in it together
MAX_DEPTH = 5  # archives in archives
OPEN = "what is in it cannot be looked at"
_BLOCK = 512
_WINDOW = 1 << 27
_ZSTD = b"\x28\xb5\x2f\xfd"
_STREAMS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b\x08": lambda: zlib.decompressobj(wbits=31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(memlimit=1 << 28),
}
"""Compressed files by how they begin."""
_TAIL = 66_000  # bytes: where the directory of a zip file ends, behind its longest comment
_CLOSED = (
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!",
    b"\x04\x22\x4d\x18",
    b"LZIP",
    b"MSCF",
    b"hsqs",
    b"age-encryption.org/",
    b"\x8c\x0d\x04",
)
"""Beginnings of archives that nothing here opens."""
_FAULTS = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError, EOFError, OSError, ValueError,
    NotImplementedError, RuntimeError,
)  # fmt: skip


def unpacked(data: bytes) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of the file itself and of all that is in it. `Missing` for what cannot be opened, is too deep or too large.

    What can be had is given first: `Missing` comes when the rest was seen.
    """
    yield from _unpacked(data, [MAX_UNPACKED], "", 0)


def _unpacked(data: bytes, budget: list[int], name: str, depth: int) -> Iterator[tuple[str, bytes]]:
    budget[0] -= len(data)
    if budget[0] < 0:
        raise Missing(f"it unpacks to more than {MAX_UNPACKED >> 20} MiB")
    yield name, data
    if depth > MAX_DEPTH:
        raise Missing(f"{name or 'it'} is packed more than {MAX_DEPTH} times")
    closed: Missing | None = None
    try:
        for inner, text in _members(data, budget[0]):
            try:
                yield from _unpacked(text, budget, f"{name}/{inner}" if name else inner, depth + 1)
            except Missing as missing:
                closed = closed or missing  # its siblings are looked at all the same
    except _FAULTS as error:
        raise Missing(f"{name or 'it'} cannot be unpacked ({error})") from error
    if closed is not None:
        raise closed


def _members(data: bytes, limit: int) -> Iterator[tuple[str, bytes]]:
    """What lies directly in it; nothing for a file that is no archive."""
    for magic, make in _STREAMS.items():
        if data.startswith(magic):
            yield from _streams(data, limit, make, magic)
            return
    if data.startswith(_ZSTD):
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
            io.BytesIO(data), read_across_frames=True
        ) as plain:
            _bounded(plain.read(limit + 1), limit)  # what follows unpacks all at once
        yield from _streams(data, limit, lambda: zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj(), _ZSTD)
    elif data.startswith(b"!<arch>\n"):
        yield from _ar(data)
    elif data.startswith(_CLOSED):
        raise Missing(OPEN)
    elif _is_tar(data):
        yield from _tar(data, limit)
    elif (
        data.startswith(b"PK\x03\x04") or b"PK\x05\x06" in data[-_TAIL:]
    ):  # also behind a program: a zip file is found by its end
        yield from _zip(data, limit)


def _streams(data: bytes, limit: int, make: Callable[[], Any], magic: bytes) -> Iterator[tuple[str, bytes]]:
    """Each member of a compressed file, and where there are several all of them as one; what follows the last is left."""
    parts: list[bytes] = []
    while data.startswith(magic):
        unpacker = make()
        left = limit + 1 - sum(map(len, parts))
        parts.append(unpacker.decompress(data) if magic == _ZSTD else unpacker.decompress(data, left))
        _bounded(b"".join(parts), limit)
        if not unpacker.eof:
            raise EOFError("it is cut")
        data = unpacker.unused_data.lstrip(b"\0")
    for number, part in enumerate(parts, start=1):
        yield f"part {number}" if len(parts) > 1 else "content", part
    if len(parts) > 1:
        yield "content", b"".join(parts)


def _tar(data: bytes, limit: int) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isreg() else None
            if file is not None:
                content = _bounded(file.read(limit + 1), limit)
                if len(content) < member.size:
                    raise EOFError(f"{member.name} is cut")
                yield member.name, content


def _is_tar(data: bytes) -> bool:
    """The checksum of its first header is right, whichever of the dialects it is."""
    if len(data) < _BLOCK:
        return False
    try:
        told = int(data[148:156].strip(b" \0") or b"x", 8)
    except ValueError:
        return False
    return told == sum(data[:148]) + 8 * 32 + sum(data[156:_BLOCK])


def _zip(data: bytes, limit: int) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        locked = None
        for info in zipped.infolist():
            if info.is_dir():
                continue
            if info.flag_bits & 1:
                locked = locked or info.filename
                continue
            with zipped.open(info) as entry:
                yield info.filename, _bounded(entry.read(limit + 1), limit)
        if locked is not None:
            raise Missing(f"{locked} is encrypted")


def _ar(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Members of a Unix archive, as Debian packages are."""
    at = 8
    while at + 60 <= len(data):
        size = int(data[at + 48 : at + 58])
        if at + 60 + size > len(data):
            raise EOFError("it is cut")
        yield data[at : at + 16].decode("ascii", "replace").strip().rstrip("/"), data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def _bounded(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise Missing(f"it unpacks to more than {MAX_UNPACKED >> 20} MiB")
    return data
