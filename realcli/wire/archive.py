"""State archives: an uncompressed tar, written and read as a stream, with bounded memory and no file system.

Written: ustar, with pax records where a fact does not fit (long or non-ASCII names, nanoseconds, sizes from 8 GiB). Read:
the same, plus GNU long names and base-256 numbers, as other programs write them. Sparse and multi-volume entries are refused.
Names are bytes and are *not* checked here: whoever puts them into a file system has to.

What tar has no word for is a pax record of ours, `REALCLI.kind`: `socket` (written as a FIFO) and `deleted`, a name that is not
there any more (written as the character device 0:0, overlayfs's own sign for it). Extended attributes are `SCHILY.xattr.<name>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
MAX_EXTENSION: Final = 256 * 1024
"""Longest pax record block or GNU long name: four times the longest path a walker of ours produces."""
MAX_NUMBER: Final = 1 << 62
MAX_ID: Final = (1 << 32) - 2
MAX_SECONDS: Final = 10**10 - 1
"""Times are brought into ±317 years around 1970: what a file claims beyond that must not break the archive it is in."""
_FACTS: Final = frozenset((b"path", b"linkpath", b"size", b"uid", b"gid", b"mtime"))

MemberKind = Literal["file", "dir", "symlink", "hardlink", "fifo", "socket", "deleted", "other"]
_TYPES: Final[dict[MemberKind, bytes]] = {
    "file": b"0", "hardlink": b"1", "symlink": b"2", "dir": b"5", "fifo": b"6", "socket": b"6", "deleted": b"3"
}  # fmt: skip
_OURS: Final[dict[bytes, tuple[MemberKind, bytes]]] = {b"socket": ("socket", b"6"), b"deleted": ("deleted", b"3")}
_KIND: Final = b"REALCLI.kind"
_XATTR: Final = b"SCHILY.xattr."
MAX_XATTRS: Final = 128 * 1024
"""Bytes of names and values of one member's extended attributes; more are left out by whoever writes."""
_KINDS: Final[dict[bytes, MemberKind]] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hardlink",
    b"2": "symlink",
    b"5": "dir",
    b"3": "other",
    b"4": "other",
    b"6": "fifo",
}


class ArchiveError(ValueError):
    """The bytes are not an archive this reader accepts; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Member:
    """One entry. `size` is 0 for all but files; `link` is the target of a link; kind `other` is a device."""

    name: bytes
    kind: MemberKind
    size: int = 0
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    link: bytes = b""
    xattrs: tuple[tuple[bytes, bytes], ...] = field(default=())


def padding(size: int) -> bytes:
    """What follows `size` bytes of content up to the next block."""
    return bytes(-size % BLOCK)


def header(member: Member) -> bytes:
    """The blocks that precede a member's content."""
    records: list[tuple[bytes, bytes]] = []
    name = member.name + b"/" if member.kind == "dir" and not member.name.endswith(b"/") else member.name
    if not _fits(name):
        records.append((b"path", name))
    if not _fits(member.link):
        records.append((b"linkpath", member.link))
    mtime_ns = _within_time(member.mtime_ns)
    seconds, nanoseconds = divmod(mtime_ns, 10**9)
    if nanoseconds or not 0 <= seconds < 8**11:
        records.append((b"mtime", _decimal_time(mtime_ns)))
    for key, value, limit in ((b"size", member.size, 8**11), (b"uid", member.uid, 8**7), (b"gid", member.gid, 8**7)):
        if value >= limit:
            records.append((key, b"%d" % value))
    if member.kind in ("socket", "deleted"):
        records.append((_KIND, member.kind.encode()))
    records.extend((_XATTR + key.replace(b"%", b"%25").replace(b"=", b"%3D"), value) for key, value in member.xattrs)
    binary = any(not _is_utf8(value) for _, value in records)
    if binary:
        records.insert(0, (b"hdrcharset", b"BINARY"))
    block = _block(
        name[:100],
        _TYPES[member.kind],
        size=member.size if member.size < 8**11 else 0,
        mode=member.mode & 0o7777,
        uid=member.uid if member.uid < 8**7 else 0,
        gid=member.gid if member.gid < 8**7 else 0,
        mtime=seconds if 0 <= seconds < 8**11 else 0,
        link=member.link[:100],
    )
    if not records:
        return block
    content = b"".join(_record(key, value) for key, value in records)
    extension = _block(b"./PaxHeaders/x", b"x", size=len(content), mode=0o644, uid=0, gid=0, mtime=0, link=b"")
    return extension + content + padding(len(content)) + block


def _fits(name: bytes) -> bool:
    return len(name) <= 100 and name.isascii()


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _within_time(nanoseconds: int) -> int:
    limit = MAX_SECONDS * 10**9
    return max(-limit, min(limit, nanoseconds))


def _decimal_time(nanoseconds: int) -> bytes:
    sign, size = (b"-", -nanoseconds) if nanoseconds < 0 else (b"", nanoseconds)
    return sign + b"%d.%09d" % divmod(size, 10**9)


def _record(key: bytes, value: bytes) -> bytes:
    rest = len(key) + len(value) + 3  # blank, equals sign, newline
    size = rest + len(str(rest))
    while len(str(size)) + rest != size:
        size = rest + len(str(size))
    return b"%d %s=%s\n" % (size, key, value)


def _block(name: bytes, kind: bytes, *, size: int, mode: int, uid: int, gid: int, mtime: int, link: bytes) -> bytes:
    def octal(value: int, width: int) -> bytes:
        return b"%0*o\0" % (width - 1, value)

    fields = (
        name.ljust(100, b"\0"),
        octal(mode, 8),
        octal(uid, 8),
        octal(gid, 8),
        octal(size, 12),
        octal(mtime, 12),
        b" " * 8,
        kind,
        link.ljust(100, b"\0"),
        b"ustar\x0000",
        bytes(64),
        octal(0, 8),
        octal(0, 8),
    )
    raw = b"".join(fields).ljust(BLOCK, b"\0")
    return raw[:148] + b"%06o\0 " % sum(raw) + raw[156:]


class ArchiveReader:
    """Turns the bytes of an archive, cut anywhere, into members and their content.

    `feed` yields a `Member`, then for a file its content as one or more `bytes` that sum up to `size`. Whatever comes after
    the end mark is ignored. Never holds more than one extension block.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._content = 0
        self._skip = 0
        self._extension: bytes | None = None
        self._pending: dict[bytes, bytes] = {}
        self._global: dict[bytes, bytes] = {}
        self._ended = False

    @property
    def ended(self) -> bool:
        """The end mark was seen."""
        return self._ended

    def finish(self) -> None:
        """To be called at the end of the stream: raises ArchiveError when the archive is cut short."""
        if not self._ended:
            raise ArchiveError("the archive is cut short: its end mark is missing")

    def feed(self, data: bytes) -> Iterator[Member | bytes]:
        """Members and content that `data` completes. Must be exhausted before the next call."""
        self._buffer += data
        while not self._ended:
            if self._content:
                if not self._buffer:
                    return
                chunk = bytes(self._buffer[: self._content])
                del self._buffer[: len(chunk)]
                self._content -= len(chunk)
                yield chunk
            elif self._skip:
                if not self._buffer:
                    return
                drop = min(self._skip, len(self._buffer))
                del self._buffer[:drop]
                self._skip -= drop
            elif self._extension is not None:
                member_type, size = self._extension[:1], int(self._extension[1:])
                if len(self._buffer) < size:
                    return
                self._extend(member_type, bytes(self._buffer[:size]))
                del self._buffer[:size]
                self._skip, self._extension = -size % BLOCK, None
            elif len(self._buffer) < BLOCK:
                return
            else:
                block = bytes(self._buffer[:BLOCK])
                del self._buffer[:BLOCK]
                member = self._header(block)
                if member is not None:
                    yield member
        self._buffer.clear()

    def _header(self, block: bytes) -> Member | None:
        if not block.strip(b"\0"):
            if self._pending:
                raise ArchiveError("an extension header without a member")
            self._ended = True
            return None
        if _number(block[148:156], "checksum") != sum(block[:148]) + 8 * 32 + sum(block[156:]):
            raise ArchiveError("wrong checksum in a header")
        kind = block[156:157]
        size = _number(block[124:136], "size")
        if kind in b"xgLK":
            if size > MAX_EXTENSION:
                raise ArchiveError(f"an extension header of {size} bytes, at most {MAX_EXTENSION} are allowed")
            self._extension = kind + b"%d" % size
            return None
        if kind not in _KINDS:
            raise ArchiveError(f"entries of type {kind!r} are not supported")
        return self._member(block, _KINDS[kind], size)

    def _member(self, block: bytes, kind: MemberKind, size: int) -> Member:
        name, link = _text(block[0:100]), _text(block[157:257])
        if block[257:263] == b"ustar\0" and (prefix := _text(block[345:500])):
            name = prefix + b"/" + name
        facts = self._global | self._pending
        self._pending = {}
        name, link = facts.get(b"path", name), facts.get(b"linkpath", link)
        if b"size" in facts:
            size = _decimal(facts[b"size"], "size")
        uid = _decimal(facts[b"uid"], "uid") if b"uid" in facts else _number(block[108:116], "uid")
        gid = _decimal(facts[b"gid"], "gid") if b"gid" in facts else _number(block[116:124], "gid")
        if uid > MAX_ID or gid > MAX_ID:
            raise ArchiveError(f"an owner out of range: {uid}:{gid}")
        mtime = _time(facts[b"mtime"]) if b"mtime" in facts else _number(block[136:148], "mtime") * 10**9
        if _KIND in facts:
            ours = _OURS.get(facts[_KIND])
            if ours is None or ours[1] != block[156:157]:
                raise ArchiveError(f"a member of the kind {facts[_KIND][:40]!r} is not known")
            kind = ours[0]
        xattrs = tuple((_attribute(key), value) for key, value in facts.items() if key.startswith(_XATTR))
        if b"\0" in name or b"\0" in link:
            raise ArchiveError("a name holds a NUL byte")
        if kind == "file" and name.endswith(b"/"):
            kind = "dir"  # how tar wrote directories before ustar
        if kind == "file":
            self._content, self._skip = size, -size % BLOCK
        else:
            size = 0  # such members have no content, whatever the field says
        stripped = name.rstrip(b"/") or name
        return Member(stripped, kind, size, _number(block[100:108], "mode") & 0o7777, uid, gid, _within_time(mtime), link, xattrs)

    def _extend(self, kind: bytes, content: bytes) -> None:
        if kind == b"L":
            self._pending[b"path"] = content.rstrip(b"\0")
        elif kind == b"K":
            self._pending[b"linkpath"] = content.rstrip(b"\0")
        else:
            facts = self._pending if kind == b"x" else self._global
            for key, value in _records(content):
                if key.startswith(b"GNU.sparse."):
                    raise ArchiveError("sparse entries are not supported")
                if key in _FACTS or (kind == b"x" and (key == _KIND or (key.startswith(_XATTR) and len(key) > len(_XATTR)))):
                    facts[key] = value


def _records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 0
    while position < len(content):
        blank = content.find(b" ", position, position + 8)
        if blank < 0:
            raise ArchiveError("a pax record without a length")
        end = position + _decimal(content[position:blank], "pax length")
        record = content[blank + 1 : end]
        key, equals, value = record[:-1].partition(b"=")
        if end > len(content) or not record.endswith(b"\n") or not equals or not key:
            raise ArchiveError("a damaged pax record")
        yield key, value
        position = end


def _attribute(key: bytes) -> bytes:
    return key[len(_XATTR) :].replace(b"%3D", b"=").replace(b"%25", b"%")  # as other programs write them


def _text(field: bytes) -> bytes:
    return field.split(b"\0", 1)[0]


def _number(field: bytes, what: str) -> int:
    if field[0] in (0x80, 0xFF):
        value = int.from_bytes(field[1:], "big", signed=field[0] == 0xFF)
    else:
        text = field.split(b"\0", 1)[0].strip()
        try:
            value = int(text, 8) if text else 0
        except ValueError:
            raise ArchiveError(f"{what} is not an octal number: {field!r}") from None
    if not (0 if what != "mtime" else -MAX_NUMBER) <= value <= MAX_NUMBER:
        raise ArchiveError(f"{what} is out of range: {value}")
    return value


def _decimal(text: bytes, what: str) -> int:
    if not text.isdigit() or len(text) > 19 or int(text) > MAX_NUMBER:
        raise ArchiveError(f"{what} is not a number in range: {text[:40]!r}")
    return int(text)


def _time(text: bytes) -> int:
    sign, digits = (-1, text[1:]) if text.startswith(b"-") else (1, text)
    whole, _, fraction = digits.partition(b".")
    if fraction and not fraction.isdigit():
        raise ArchiveError(f"mtime is not a time in range: {text[:40]!r}")
    return sign * (_decimal(whole, "mtime") * 10**9 + int(fraction[:9].ljust(9, b"0")))
