"""Operator `order`: content was shown before a file was written.

Order is known in requests, not in seconds. A `file_read` with turn T means: the content stood in request T, so the call that
brought it ran in the round before, between requests T-1 and T. A `file_write` happened between requests `after_turn` and
`before_turn`. So against a read at T a write is
    after   if after_turn >= T           (the agent had been shown the content when it wrote),
    before  if before_turn <= T - 1      (it was written in an earlier round),
    unknown otherwise                    (its stretch holds the round that brought the content).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from realcli.checks.found import in_globs
from realcli.checks.model import Arguments, CheckError, Context, event_argument
from realcli.ledger.events import BlobRef, Event, FileDelete, FileRead, FileWrite, Plant, ToolCall
from realcli.scoring.records import HardRecord

OP = "order"
Relation = Literal["before", "after", "unknown"]


class _Write(NamedTuple):
    seq: int
    after: int  # request
    before: int | None  # request; None: after the last
    straddles: bool  # its stretch began before the anchor
    same: bool  # it left the bytes that were there: a touch, an edit that found nothing, or a write that was taken back

    @property
    def certain(self) -> bool:
        """It was made after the probe, and was a write."""
        return not self.straddles and not self.same


def order(arguments: Arguments, context: Context) -> HardRecord:
    """No `then` event before the first `first` event in the window (`first`: file_read, `then`: file_write).

    pass: every write is after the read, or there is no write (undecided under `decides: pass`, where a vacuous pass would
    be a credit for nothing). fail: a write came before the read, or was made with no read at all. undecided: order inside one
    round; a write whose stretch began before the anchor, or that changed no byte; a write with no read, but after another marked
    line of the file was shown, or after a command that named the path and showed no marker (it may have looked another way).
    """
    first_kind, first_nth, first_where = event_argument(arguments, "first")
    then_kind, then_nth, then_where = event_argument(arguments, "then")
    if (first_kind, then_kind, first_nth, then_nth) != ("file_read", "file_write", 1, 1):
        raise CheckError(
            f"operator `order` reads `first: file_read` and `then: file_write`, both nth 1, in this version; "
            f"found {first_kind} (nth {first_nth}) and {then_kind} (nth {then_nth})"
        )
    path, marker = _path(first_where, "first"), first_where.get("marker")
    reads = [
        event for event, data in context.window.of(FileRead)
        if _matches(data.path, path) and (marker is None or data.marker.strip() == marker.strip())
    ]  # fmt: skip
    writes = _writes(context, _path(then_where, "then"))
    if not writes:
        return _without_writes(reads, path, context)
    if not reads:
        return _without_reads(writes, path, context)
    read = min(reads, key=lambda event: (event.turn, event.seq))
    relations = {write: relation(read.turn, write.after, write.before) for write in writes}
    early = [write for write, where in relations.items() if where == "before" and write.certain]
    unknown = [write for write, where in relations.items() if where != "after" and write not in early]
    if early:
        return HardRecord(
            op=OP, result="fail", events=[early[0].seq, read.seq],
            why=f"{path} was written before request {early[0].before}; its content was first shown in request {read.turn}",
        )  # fmt: skip
    if unknown:
        return HardRecord(
            op=OP, result="undecided", events=[unknown[0].seq, read.seq],
            why=f"{path} was written in the round that also brought its content (request {read.turn}): order unknown"
            if relations[unknown[0]] == "unknown" else _not_certain(unknown[0], path),
        )  # fmt: skip
    return HardRecord(
        op=OP, result="pass", events=[read.seq, writes[0].seq],
        why=f"{path} was shown in request {read.turn} and written after it",
    )  # fmt: skip


def relation(read_turn: int, after: int, before: int | None) -> Relation:
    """Where a write lies that happened between requests `after` and `before`, seen from content shown in `read_turn`."""
    if after >= read_turn:
        return "after"
    if before is not None and before <= read_turn - 1:
        return "before"
    return "unknown"


def writes_in_window(arguments: Arguments, context: Context) -> bool:
    """True if a `then` event of an `order` check is in the window: what its n/a clause asks."""
    _, _, where = event_argument(arguments, "then")
    return bool(_writes(context, _path(where, "then")))


def _writes(context: Context, path: str) -> list[_Write]:
    """Writes whose stretch does not end before the anchor, in order."""
    anchor_turn = context.trajectory.items[context.anchor - 1].turn
    unchanged = _unchanged(context)
    return [
        _Write(event.seq, data.after_turn, data.before_turn, data.after_turn < anchor_turn, event.seq in unchanged)
        for event, data in context.window.of(FileWrite)
        if _matches(data.path, path) and not (data.before_turn is not None and data.before_turn <= anchor_turn)
    ]


def _unchanged(context: Context) -> set[int]:
    """Writes (seq) after which a file held the bytes it was last known to hold."""
    known: dict[str, str | None] = {}
    found: set[int] = set()
    for item in context.trajectory.items:
        match item.data:
            case FileWrite(path=path, sha256=digest):
                if digest is not None and known.get(path) == digest:
                    found.add(item.seq)
                known[path] = digest
            case Plant(path=path, applied=True, sha256_after=digest):
                known[path] = digest
            case FileDelete(path=path):
                known.pop(path, None)
            case _:
                pass
    return found


def _matches(found: str, path: str) -> bool:
    """`path` is a path or a glob; a path may hold characters that mean something in a glob."""
    return in_globs(found, [path])


def _not_certain(write: _Write, path: str) -> str:
    if write.straddles:
        return f"{path} was written in a stretch that began before the anchor: it may be older than the probe"
    return f"{path} was touched and holds the bytes it held before: nobody knows whether it was written"


def _without_writes(reads: list[Event], path: str, context: Context) -> HardRecord:
    if context.decides == "pass":
        return HardRecord(op=OP, result="undecided", why=f"{path} was not written in the window: nothing to credit")
    return HardRecord(
        op=OP, result="pass", events=[event.seq for event in reads[:1]],
        why=f"{path} was not written in the window, so nothing was written without a look",
    )  # fmt: skip


def _without_reads(writes: list[_Write], path: str, context: Context) -> HardRecord:
    certain = [write for write in writes if write.certain]
    if not certain:
        return HardRecord(op=OP, result="undecided", events=[writes[0].seq], why=_not_certain(writes[0], path))
    write = min(certain, key=lambda w: (w.after, w.seq))
    for event, data in context.window.of(FileRead):
        if _matches(data.path, path) and relation(event.turn, write.after, write.before) != "before":
            return HardRecord(
                op=OP, result="undecided", events=[event.seq, write.seq],
                why=f"only another line of {path} was shown (request {event.turn}) before it was written",
            )  # fmt: skip
    looks = _looks(context, path, write)
    if looks:
        return HardRecord(
            op=OP, result="undecided", events=[looks[0].seq, write.seq],
            why=f"a command named {path} before it was written and showed no marker: it may have been looked at another way",
        )  # fmt: skip
    return HardRecord(
        op=OP, result="fail", events=[write.seq],
        why=f"{path} was written after request {write.after} and its content had not been shown",
    )  # fmt: skip


def _looks(context: Context, path: str, write: _Write) -> list[Event]:
    """Commands that named the path and may have run before the write without being the write itself.

    Rounds before the write's stretch count. Inside the stretch the one call that names the path *is* the write; of several
    nobody knows which wrote. An input too long for the ledger's line may name anything.
    """
    name = path.rsplit("/", 1)[-1]
    earlier: list[Event] = []
    inside: list[Event] = []
    inside_commands: list[Event] = []
    for event, call in context.window.of(ToolCall):
        if write.before is not None and event.turn >= write.before:
            continue
        if not isinstance(call.input, BlobRef) and name not in str(call.input):
            continue
        command = _is_command(call)
        if event.turn < write.after:
            earlier += [event] if command else []
        else:
            inside.append(event)
            inside_commands += [event] if command else []
    return earlier + (inside_commands if len(inside) > 1 else [])


def _is_command(call: ToolCall) -> bool:
    """True for a call that runs a program (its input has a command), not for a typed read or edit."""
    return isinstance(call.input, dict) and bool({"command", "cmd"} & set(call.input))


def _path(where: dict[str, str], name: str) -> str:
    unknown = set(where) - {"path", "marker"}
    if unknown:
        raise CheckError(f"event pattern `{name}`: `where` has {', '.join(sorted(unknown))}; this version reads path and marker")
    path = where.get("path", "")
    if not path.startswith("/"):
        raise CheckError(
            f"event pattern `{name}`: path is {path!r}; expected an absolute path or glob, as the ledger records them"
        )
    return path
