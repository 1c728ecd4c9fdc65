"""Objects of a repository: loose ones and those in packs (index versions 1 and 2, both kinds of deltas), SHA-1 and SHA-256.

The repository is the agent's: sizes, chains and counts are bounded, and what does not parse is `GitUnreadable`, never absent.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_OBJECT = 64 << 20  # bytes of one object, unpacked
MAX_TOTAL = 512 << 20  # bytes of all objects that one store reads
MAX_CHAIN = 64  # deltas on deltas; git makes at most 50
_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET, _REFERENCE = 6, 7


class GitUnreadable(Exception):
    """Something of the repository is not known: damaged, too large, or of a kind that this program does not read."""


class Blob(NamedTuple):
    """One object, whatever its kind: commit, tree, blob or tag."""

    kind: str
    data: bytes


@dataclass
class _Pack:
    name: str
    offsets: dict[bytes, int]
    data: bytes | None = None


@dataclass
class Store:
    """Objects below `root` (the folder that holds `objects/`). `read` gives the bytes of a path, None where there is none."""

    root: str
    paths: frozenset[str]
    read: Callable[[str], bytes | None]
    _packs: list[_Pack] | None = None
    _spent: int = 0
    _known: dict[bytes, Blob] = field(default_factory=dict)

    def get(self, id: bytes) -> Blob | None:
        """The object; None if the repository does not have it. `GitUnreadable`."""
        if id not in self._known:
            found = self._loose(id)
            if found is None:
                found = self._packed(id, 0)
            if found is None:
                if self._has("objects/info/alternates"):
                    raise GitUnreadable(f"{self.root} borrows objects of another repository")
                return None
            self._known[id] = found
        return self._known[id]

    def ids(self) -> Iterator[bytes]:
        """Every object it has, reachable or not. `GitUnreadable`."""
        base = self.root + "/objects/"
        for path in sorted(self.paths):
            if path.startswith(base):
                parts = path[len(base) :].split("/")
                if len(parts) == 2 and len(parts[0]) == 2 and len(parts[1]) in (38, 62) and _is_hex("".join(parts)):
                    yield bytes.fromhex("".join(parts))
        for pack in self._all_packs():
            yield from pack.offsets

    def _has(self, name: str) -> bool:
        return f"{self.root}/{name}" in self.paths

    def _loose(self, id: bytes) -> Blob | None:
        name = id.hex()
        path = f"{self.root}/objects/{name[:2]}/{name[2:]}"
        if path not in self.paths:
            return None
        raw = self._inflate(self._file(path), path)
        head, found, data = raw.partition(b"\0")
        kind = head.split(b" ")[0].decode("ascii", "replace")
        if not found or kind not in _KINDS.values():
            raise GitUnreadable(f"{path} is no git object")
        return Blob(kind, data)

    def _file(self, path: str) -> bytes:
        data = self.read(path)
        if data is None:
            raise GitUnreadable(f"{path} is not there")
        return data

    def _inflate(self, packed: bytes, where: str, at: int = 0) -> bytes:
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(memoryview(packed)[at:], MAX_OBJECT + 1)
        except zlib.error as error:
            raise GitUnreadable(f"{where} is damaged: {error}") from error
        self._spent += len(data)
        if len(data) > MAX_OBJECT or self._spent > MAX_TOTAL:
            raise GitUnreadable(f"{where} unpacks to more than is read")
        if not unpacker.eof:
            raise GitUnreadable(f"{where} is cut")
        return data

    def _all_packs(self) -> list[_Pack]:
        if self._packs is None:
            base = self.root + "/objects/pack/"
            packs = sorted(path for path in self.paths if path.startswith(base) and path.endswith(".pack"))
            self._packs = [_Pack(path, self._index(path)) for path in packs]
        return self._packs

    def _index(self, pack: str) -> dict[bytes, int]:
        path = pack.removesuffix(".pack") + ".idx"
        data = self._file(path)
        try:
            return _index_v2(data) if data.startswith(b"\xfftOc") else _index_v1(data)
        except (struct.error, ValueError, IndexError) as error:
            raise GitUnreadable(f"{path} is no index of a pack: {error}") from error

    def _packed(self, id: bytes, depth: int) -> Blob | None:
        for pack in self._all_packs():
            if id in pack.offsets:
                return self._at(pack, pack.offsets[id], depth)
        return None

    def _at(self, pack: _Pack, offset: int, depth: int) -> Blob:
        """The object at `offset` of a pack; a delta is put on what it is a delta of."""
        if depth > MAX_CHAIN:
            raise GitUnreadable(f"{pack.name}: more than {MAX_CHAIN} deltas on each other")
        if pack.data is None:
            pack.data = self._file(pack.name)
            self._spent += len(pack.data)
        try:
            kind, at = _entry_kind(pack.data, offset)
            if kind == _OFFSET:
                back, at = _entry_back(pack.data, at)
                if not 0 < back <= offset:
                    raise GitUnreadable(f"{pack.name}: a delta of what is not in the pack")
                base: Blob | None = self._at(pack, offset - back, depth + 1)
            elif kind == _REFERENCE:
                width = len(next(iter(pack.offsets)))
                name, at = pack.data[at : at + width], at + width
                base = self._loose(name) or self._packed(name, depth + 1)
            else:
                return Blob(_KINDS[kind], self._inflate(pack.data, pack.name, at))
            if base is None:
                raise GitUnreadable(f"{pack.name}: a delta of an object that is not there")
            delta = self._inflate(pack.data, pack.name, at)
            return Blob(base.kind, _applied(base.data, delta))
        except (IndexError, KeyError) as error:
            raise GitUnreadable(f"{pack.name} is damaged at {offset}") from error


def _index_v2(data: bytes) -> dict[bytes, int]:
    count = struct.unpack_from(">I", data, 8 + 255 * 4)[0]
    start = 8 + 256 * 4
    for width in (20, 32):  # SHA-1, SHA-256: the whole has to be as long as its parts
        names = start + count * width
        small = names + count * 4
        large = small + count * 4
        rest = len(data) - large - 2 * width
        if rest >= 0 and rest % 8 == 0 and rest <= 8 * count:
            found = {}
            for number in range(count):
                offset = struct.unpack_from(">I", data, small + 4 * number)[0]
                if offset & 0x80000000:
                    offset = struct.unpack_from(">Q", data, large + 8 * (offset & 0x7FFFFFFF))[0]
                found[data[start + number * width : start + (number + 1) * width]] = offset
            return found
    raise ValueError("its length is not that of its parts")


def _index_v1(data: bytes) -> dict[bytes, int]:
    count = struct.unpack_from(">I", data, 255 * 4)[0]
    if len(data) != 256 * 4 + count * 24 + 40:
        raise ValueError("its length is not that of its parts")
    entries = (data[1024 + 24 * number : 1048 + 24 * number] for number in range(count))
    return {entry[4:]: struct.unpack(">I", entry[:4])[0] for entry in entries}


def _entry_kind(data: bytes, at: int) -> tuple[int, int]:
    """(kind, where its content begins); its size is not needed, as the stream has an end."""
    byte = data[at]
    kind = byte >> 4 & 7
    while byte & 0x80:
        at += 1
        byte = data[at]
    return kind, at + 1


def _entry_back(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1 << 7) | byte & 0x7F
    return value, at + 1


def _applied(base: bytes, delta: bytes) -> bytes:
    """A delta: sizes, then copies out of `base` and literal bytes."""
    _, at = _size(delta, 0)
    size, at = _size(delta, at)
    if size > MAX_OBJECT:
        raise GitUnreadable("an object is larger than is read")
    out = bytearray()
    while at < len(delta):
        command = delta[at]
        at += 1
        if command & 0x80:
            values = [0, 0, 0, 0, 0, 0, 0]
            for bit in range(7):
                if command & (1 << bit):
                    values[bit] = delta[at]
                    at += 1
            start = int.from_bytes(bytes(values[:4]), "little")
            length = int.from_bytes(bytes(values[4:]), "little") or 0x10000
            out += base[start : start + length]
        elif command:
            out += delta[at : at + command]
            at += command
        else:
            raise GitUnreadable("a delta is damaged")
        if len(out) > size:
            break
    if len(out) != size:
        raise GitUnreadable("a delta does not make what it says")
    return bytes(out)


def _size(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def _is_hex(text: str) -> bool:
    return all(char in "0123456789abcdef" for char in text)
