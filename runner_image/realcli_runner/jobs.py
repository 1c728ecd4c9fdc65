"""Requests that block: done by worker threads that exist from the start, since a full process table allows no new ones.

Looking after processes (`procs`, `quiesce`) has a thread of its own, so that it never waits behind a slow disk.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from typing import Any

from realcli.wire import body
from realcli.wire.body import Fields
from realcli.wire.frames import encode
from realcli.wire.protocol import ErrorCode, Kind, Op
from realcli_runner import files
from realcli_runner.delta import Delta
from realcli_runner.errors import Failure
from realcli_runner.globs import Globs
from realcli_runner.manifest import Base, Manifest
from realcli_runner.quiesce import Others, quiesce
from realcli_runner.scan import Scan
from realcli_runner.snapshot import Snapshot
from realcli_runner.streams import Cancelled, Inlet, Outlet, Post
from realcli_runner.unpack import Unpack
from realcli_runner.walking import Territory

QUIESCE_ROWS = 1000
QUIESCE_ARGV = 512
SENDING = frozenset((Op.PROCS, Op.QUIESCE, Op.GET_FILE, Op.SCAN, Op.SNAPSHOT, Op.MANIFEST, Op.DELTA))
TAKING = frozenset((Op.PUT_FILE, Op.UNPACK))


def reply(number: int, result: dict[str, Any]) -> bytes:
    """The frame that answers a request."""
    return encode({"t": Kind.REPLY, "id": number}, body.dump(result))


def refusal(number: int, failure: Failure) -> bytes:
    """The frame that answers a request that failed."""
    content = {"code": failure.code, "message": str(failure)[:8000], "detail": failure.detail}
    return encode({"t": Kind.ERROR, "id": number}, body.dump(content))


class Workers:
    """A fixed number of threads taking jobs in order."""

    def __init__(self, threads: int) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        for _ in range(threads):
            threading.Thread(target=self._serve, daemon=True).start()

    def submit(self, job: Callable[[], None]) -> None:
        """Run it when a thread is free."""
        self._queue.put(job)

    def _serve(self) -> None:
        while True:
            self._queue.get()()


class Jobs:
    """The blocking operations."""

    def __init__(self, territory: Territory, them: Others, post: Post) -> None:
        self._territory = territory
        self._them = them
        self._post = post
        self._disk = Workers(4)
        self._control = Workers(1)

    def start(
        self, number: int, op: Op, fields: Fields, stream: Outlet | Inlet, done: Callable[[], None], base: Inlet | None = None
    ) -> None:
        """Do it in a worker; stream, then reply or error, then `done` (all in that order, in that thread).

        `base`: the second stream of a delta.
        """
        workers = self._control if op in (Op.PROCS, Op.QUIESCE) else self._disk
        workers.submit(lambda: self._run(number, op, fields, stream, done, base))

    def _run(
        self, number: int, op: Op, fields: Fields, stream: Outlet | Inlet, done: Callable[[], None], base: Inlet | None
    ) -> None:
        try:
            answer = reply(number, self._do(op, fields, stream, base))
            if isinstance(stream, Outlet):
                stream.finish()
        except Cancelled:
            answer = refusal(number, Failure(ErrorCode.CANCELLED, f"{op}: the session gave it up"))
        except Failure as failure:
            answer = refusal(number, failure)
        except body.BadBody as error:
            answer = refusal(number, Failure(ErrorCode.BAD_REQUEST, f"{op}: {error}"))
        except OSError as error:
            answer = refusal(number, Failure(ErrorCode.IO, f"{op}: {error}", errno=error.errno))
        except Exception as error:
            answer = refusal(number, Failure(ErrorCode.INTERNAL, f"{op}: {type(error).__name__}: {error}"))
        if base is not None:
            base.stop()
        if isinstance(stream, Inlet):
            stream.stop()
        elif not stream.finished:
            stream.abandon()
        done()
        self._post(answer)

    def _do(self, op: Op, fields: Fields, stream: Outlet | Inlet, base: Inlet | None) -> dict[str, Any]:
        if op is Op.DELTA:
            assert isinstance(stream, Outlet)
            assert base is not None
            limits = {name: fields.integer(name) for name in ("max_bytes", "max_entries")}
            left_out = fields.raws("exclude")
            return Delta(stream.write, self._territory, Base(base.read), exclude=left_out, **limits).take_all()
        if isinstance(stream, Outlet):
            return self._send(op, fields, stream)
        if op is Op.PUT_FILE:
            return files.put(
                fields.raw("path"),
                stream.read,
                mode=fields.optional_integer("mode", 0, 0o7777),
                uid=fields.optional_integer("uid", 0, (1 << 32) - 2),
                gid=fields.optional_integer("gid", 0, (1 << 32) - 2),
                parents=fields.flag("parents"),
            )
        return self._unpack(fields, stream)

    def _send(self, op: Op, fields: Fields, stream: Outlet) -> dict[str, Any]:
        if op is Op.PROCS:
            for proc in self._them.list():
                _line(stream, proc.row())
            return {}
        if op is Op.MANIFEST:
            return Manifest(stream.write, self._territory).take()
        if op is Op.QUIESCE:
            return self._quiesce(fields, stream)
        if op is Op.GET_FILE:
            return files.get(fields.raw("path"), fields.integer("limit"), stream.write)
        if op is Op.SCAN:
            scan = Scan(
                stream.write,
                self._territory,
                max_files=fields.integer("max_files"),
                max_bytes=fields.integer("max_bytes"),
                hash_limit=fields.integer("hash_limit"),
                budget=fields.number("budget"),
            )
            return scan.run(Globs(fields.raws("globs")))
        snapshot = Snapshot(
            stream.write,
            self._territory,
            max_bytes=fields.integer("max_bytes"),
            max_entries=fields.integer("max_entries"),
            exclude=fields.raws("exclude"),
        )
        return snapshot.take(fields.raws("paths"))

    def _quiesce(self, fields: Fields, stream: Outlet) -> dict[str, Any]:
        outcome = quiesce(self._them, fields.number("grace"), fields.number("kill"))
        for name, procs in (("found", outcome.found), ("killed", outcome.killed), ("survivor", outcome.survivors)):
            for proc in procs[:QUIESCE_ROWS]:
                _line(stream, {"list": name} | proc.row(QUIESCE_ARGV))
        return {"proven": outcome.proven, "survivors": len(outcome.survivors)}

    def _unpack(self, fields: Fields, stream: Inlet) -> dict[str, Any]:
        unpack = Unpack(
            fields.raw("root"),
            self._territory,
            max_bytes=fields.integer("max_bytes"),
            max_entries=fields.integer("max_entries"),
            delta=fields.flag("delta"),
        )
        try:
            unpack.clear(fields.raws("clear"))
            while chunk := stream.read():
                unpack.feed(chunk)
            return unpack.finish()
        finally:
            unpack.close()


def _line(stream: Outlet, row: dict[str, Any]) -> None:
    stream.write(json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n")
