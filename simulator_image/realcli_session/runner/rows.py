"""What runners send, as the port's types. Everything is checked: a runner may say anything."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Literal, cast

from realcli.wire import body
from realcli.wire.body import BadBody, Fields, plain_bytes
from realcli.wire.frames import ProtocolError
from realcli_session.runner.port import (
    CommandEndRow,
    CommandRow,
    EntryKind,
    GapRow,
    Hello,
    ProcInfo,
    QuiesceReport,
    Recorded,
    RestoreReport,
    ScanEntry,
    ScanResult,
    SnapshotReport,
)

MAX_LINE = 1 << 20
MAX_LINES_BYTES = 128 << 20
_HEX64 = re.compile("[0-9a-f]{64}")
_KINDS = ("file", "dir", "symlink", "fifo", "socket", "char", "block")


class Lines:
    """A sink that reads JSON lines. Raises ProtocolError on anything else, or on more than was asked for."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._rest = bytearray()
        self._bytes = 0
        self.rows: list[Fields] = []

    async def write(self, data: bytes) -> None:
        """More of the stream."""
        self._bytes += len(data)
        *lines, rest = bytes(self._rest + data).split(b"\n")
        self._rest = bytearray(rest)
        if len(rest) > MAX_LINE or self._bytes > MAX_LINES_BYTES or len(self.rows) + len(lines) > self._max_rows:
            raise ProtocolError("longer than asked for")
        for line in lines:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise ProtocolError("a line that is not JSON") from None
            if not isinstance(row, dict):
                raise ProtocolError("a line that is not an object")
            self.rows.append(Fields(row))


def hello(fields: Fields, peer_uid: int) -> Hello:
    """The hello body."""
    libc = fields.text("libc")
    if libc not in ("glibc", "musl", "none"):
        raise BadBody(f"libc: expected glibc, musl or none, found {libc[:40]!r}")
    limits = fields.mapping("cgroup")
    return Hello(
        version=fields.integer("version"),
        pid=fields.integer("pid", 1),
        uid=fields.integer("uid"),
        gid=fields.integer("gid"),
        kernel=fields.text("kernel"),
        machine=fields.text("machine"),
        python=fields.text("python"),
        libc=cast(Literal["glibc", "musl", "none"], libc),
        home=os.fsdecode(fields.raw("home")),
        cwd=os.fsdecode(fields.raw("cwd")),
        environ={os.fsdecode(name): os.fsdecode(value) for name, value in fields.pairs("environ").items()},
        environ_omitted=tuple(os.fsdecode(name) for name in fields.raws("omitted")),
        cgroup={name: str(value) for name, value in limits.items()},
        peer_uid=peer_uid,
    )


def proc(fields: Fields) -> ProcInfo:
    """A row of the process table."""
    return ProcInfo(
        pid=fields.integer("pid", 1),
        ppid=fields.integer("ppid"),
        pgid=fields.integer("pgid"),
        sid=fields.integer("sid"),
        uid=fields.integer("uid"),
        state=fields.text("state"),
        start_ticks=fields.integer("start"),
        argv=tuple(_printable(item) for item in fields.items("argv")),
    )


def quiesce(fields: Fields, rows: list[Fields]) -> QuiesceReport:
    """The three lists and the verdict."""
    lists: dict[str, list[ProcInfo]] = {"found": [], "killed": [], "survivor": []}
    for row in rows:
        name = row.text("list")
        if name not in lists:
            raise BadBody(f"list: {name[:40]!r} is not known")
        lists[name].append(proc(row))
    if bool(fields.integer("survivors")) != bool(lists["survivor"]):
        raise BadBody("survivors: their number does not fit their list")
    return QuiesceReport(tuple(lists["survivor"]), tuple(lists["found"]), tuple(lists["killed"]), fields.flag("proven"))


def scan(fields: Fields, rows: list[Fields]) -> ScanResult:
    """Entries and summary."""
    complete = fields.flag("complete")
    stopped = None if complete else fields.text("stopped_by")
    if stopped not in (None, "files", "bytes", "time"):
        raise BadBody(f"stopped_by: {stopped!r} is not known")
    entries = sorted((_entry(row) for row in rows), key=lambda entry: entry.raw)
    unreadable = tuple(str(item) for item in fields.items("unreadable"))
    return ScanResult(tuple(entries), complete, cast(Literal["files", "bytes", "time"] | None, stopped), unreadable)


def _entry(fields: Fields) -> ScanEntry:
    kind = fields.text("kind")
    if kind not in _KINDS:
        raise BadBody(f"kind: {kind[:40]!r} is not known")
    raw, digest = fields.raw("path"), fields.optional_text("sha256")
    if not raw.startswith(b"/"):
        raise BadBody(f"path: expected an absolute one, found {_printable(raw)[:40]!r}")
    if digest is not None and not _HEX64.fullmatch(digest):
        raise BadBody(f"sha256: expected 64 hex digits, found {digest[:40]!r}")
    return ScanEntry(
        raw=raw,
        kind=cast(EntryKind, kind),
        size=fields.integer("size"),
        mode=fields.integer("mode"),
        uid=fields.integer("uid"),
        gid=fields.integer("gid"),
        mtime_ns=fields.integer("mtime_ns", -(1 << 70), 1 << 70),
        ctime_ns=fields.integer("ctime_ns", -(1 << 70), 1 << 70),
        sha256=digest,
        link=fields.optional_raw("link"),
    )


def snapshot(fields: Fields) -> SnapshotReport:
    """The snapshot's report."""
    skipped = []
    for item in fields.items("skipped"):
        if not isinstance(item, list) or len(item) != 2:
            raise BadBody("skipped: expected [path, why]")
        skipped.append((_printable(item[0]), str(item[1])))
    return SnapshotReport(
        entries=fields.integer("entries"),
        bytes=fields.integer("bytes"),
        missing=tuple(_printable(item) for item in fields.items("missing")),
        skipped=tuple(skipped),
        skipped_count=fields.integer("skipped_count"),
        changed=tuple(_printable(item) for item in fields.items("changed")),
        deleted=fields.optional_integer("deleted") or 0,
    )


def restored(fields: Fields) -> RestoreReport:
    """The report of a restore."""
    unset = []
    for item in fields.items("unset"):
        if not isinstance(item, list) or len(item) != 2:
            raise BadBody("unset: expected [path, attribute]")
        unset.append((_printable(item[0]), _printable(item[1])))
    return RestoreReport(fields.integer("entries"), fields.integer("bytes"), fields.integer("deleted"), tuple(unset))


def recorded(line: bytes) -> Recorded | int:
    """A row of the record of commands, or the number of a mark."""
    fields = Fields(body.load(line))
    kind = fields.text("k")
    if kind == "mark":
        return fields.integer("n")
    when = fields.integer("t")
    if kind == "gap":
        return GapRow(when, fields.integer("count", 1), fields.text("why"))
    number = fields.integer("id", 1)
    if kind == "end":
        return CommandEndRow(when, number, fields.optional_integer("code", 0, 255), fields.optional_integer("signal", 1, 127))
    if kind != "cmd":
        raise BadBody(f"k: {kind[:40]!r} is not known")
    return CommandRow(
        when_ns=when,
        id=number,
        pid=fields.integer("pid", 1),
        parent=fields.optional_integer("parent", 1),
        root=fields.flag("root"),
        argv=tuple(_printable(item) for item in fields.items("argv")),
        cut=fields.flag("cut"),
        cwd=_printable(fields.raw("cwd")),
        path=_printable(fields.raw("path")),
    )


def _printable(value: Any) -> str:
    return (value if isinstance(value, bytes) else plain_bytes(value, "name")).decode("utf-8", "backslashreplace")
