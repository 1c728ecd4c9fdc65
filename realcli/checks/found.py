"""What operators look for in a window: commands, changes of files, texts, states. Each answer is certain, possible or unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pydantic import JsonValue

from realcli.checks.model import CheckError, Context, SnapshotUnreadable
from realcli.ledger.events import Command, CommandEnd, FileDelete, FileWrite, Snapshot
from realcli.scoring.records import HardRecord
from realcli.trajectory import EventPattern, Item, matches
from realcli.trajectory.commands import command_text
from realcli.trajectory.matching import parse_pattern
from realcli.trajectory.ordering import order_of
from realcli.trajectory.patterns import PatternError, path_matches


class Found(NamedTuple):
    """Events that match, and events of which nobody can tell."""

    certain: list[Item]
    possible: list[Item]


def pattern_argument(value: JsonValue, name: str) -> EventPattern:
    """An event pattern of a hard check; `CheckError` says what is wrong with it."""
    try:
        return parse_pattern(value)
    except PatternError as error:
        raise CheckError(f"event pattern `{name}` is {value!r}: {error}") from error


def events_matching(context: Context, pattern: EventPattern) -> Found:
    """Events of the window that match; commands that another record of the same deed explains are left out."""
    certain: list[Item] = []
    possible: list[Item] = []
    for item in context.window.items:
        answer = matches(pattern, item, context.blobs)
        if answer is not False:
            (certain if answer else possible).append(item)
    if pattern.event == "command":
        return Found(_single(certain), [item for item in possible if not _explained(context, item, certain)])
    return Found(certain, possible)


def commands_matching(context: Context, expression: str) -> Found:
    """Commands of the window in whose normalised text the expression occurs."""
    try:
        pattern = parse_pattern({"event": "command", "where": {"cmd": expression}})
        return events_matching(context, pattern)
    except PatternError as error:
        raise CheckError(str(error)) from error


def _single(matching: list[Item]) -> list[Item]:
    """`timeout 5 make`, which then executes `make`, is one deed with two records."""
    kept: list[Item] = []
    for item in matching:
        data = item.data
        assert isinstance(data, Command)
        wrapped = any(
            isinstance(other.data, Command)
            and data.pid is not None
            and other.data.pid in (data.pid, data.parent)
            and _text(other.data).endswith(_text(data))
            for other in kept
        )
        if not wrapped:
            kept.append(item)
    return kept


def _text(command: Command) -> str:
    return " ".join(command_text(command).certain)


def _explained(context: Context, shell: Item, certain: list[Item]) -> bool:
    """The shell's script ran what matches as a program of its own, which has its own record."""
    data = shell.data
    assert isinstance(data, Command)
    if data.record != "exec" or data.cut:
        return False
    ends = (i.seq for i in context.window.items if isinstance(i.data, CommandEnd) and i.data.id == data.id)
    end = next(ends, context.trajectory.items[-1].seq)
    return any(shell.seq < item.seq <= end for item in certain)


def changes(context: Context, globs: list[str] | None) -> Found:
    """Writes and deletions made in the window; possible: their stretch began before its anchor, so they may be older.

    Changes certainly made before the anchor are left out: they were only noticed in the window.
    """
    anchor = context.trajectory.items[context.anchor - 1]
    certain: list[Item] = []
    possible: list[Item] = []
    for item in context.window.items:
        if not isinstance(item.data, FileWrite | FileDelete) or (globs is not None and not in_globs(item.data.path, globs)):
            continue
        match order_of(context.trajectory, anchor, item) if anchor.seq != item.seq else "before":
            case "before":
                certain.append(item)
            case "unknown":
                possible.append(item)
            case _:
                pass
    return Found(certain, possible)


def in_globs(path: str, globs: Iterable[str]) -> bool:
    """`CheckError` for a glob that is none."""
    try:
        return path_matches(path, list(globs))
    except PatternError as error:
        raise CheckError(str(error)) from error


def globs_argument(value: JsonValue, name: str) -> list[str]:
    """One glob or a list of them; `CheckError` names the argument."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(one, str) and one.startswith("/") for one in found):
        raise CheckError(f"argument `{name}` is {value!r}; expected an absolute path or glob, or a list of them")
    return [str(one) for one in found]


def texts_argument(value: JsonValue, name: str) -> list[str]:
    """One text or a list of them."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(one, str) and one for one in found):
        raise CheckError(f"argument `{name}` is {value!r}; expected a text or a list of texts")
    return [str(one) for one in found]


def number_argument(value: JsonValue, name: str) -> int:
    """A whole number, also written as a text (a binding may be)."""
    try:
        if isinstance(value, int | str) and not isinstance(value, bool):
            return int(value)
    except ValueError:
        pass
    raise CheckError(f"argument `{name}` is {value!r}; expected a whole number")


class Missing(Exception):
    """A state an operator needs is not known; the message says which and why."""


def snapshot_of(context: Context, name: str) -> int:
    """The seq of a snapshot: `s0` and `final` of the run, `anchor` and `response_end` of the instance. `Missing` without one."""
    of = context.instance if name in ("anchor", "response_end") else None
    found = context.trajectory.snapshot(name, of or None)
    if found is None:
        raise Missing(f"the ledger has no snapshot `{name}`: the state at that time is not known")
    return found[0].seq


def files_in(context: Context, seq: int, globs: list[str]) -> list[str]:
    """Files of a snapshot that match. `Missing` where nobody knows: a snapshot holds contract paths alone."""
    for glob in globs:
        if context.oracle is not None and not any(_within(glob, path) for path in context.oracle.paths):
            raise Missing(f"{glob} is below no contract path, so no snapshot holds it: add it to `paths` of the oracle contract")
    for path in _left_out(context, seq):
        if any(may_hold(path, glob) for glob in globs):
            raise Missing(f"{path} is there, but it is not in snapshot {seq}")
    return sorted(path for path in _paths(context, seq) if in_globs(path, globs))


def _paths(context: Context, seq: int) -> list[str]:
    try:
        return context.snapshots.paths(seq)
    except SnapshotUnreadable as error:
        raise Missing(f"snapshot {seq} cannot be read: {error}") from error


def _left_out(context: Context, seq: int) -> list[str]:
    """Paths that are there and not in the archive. `Missing` where there are more than are named."""
    data = context.trajectory.items[seq - 1].data
    if not isinstance(data, Snapshot):
        return []
    if data.skipped_count > len(data.skipped):
        raise Missing(f"snapshot {seq} left out {data.skipped_count} paths, of which {len(data.skipped)} are named")
    return data.skipped


def may_hold(path: str, glob: str) -> bool:
    """`path`, or something below it, may match `glob`."""
    fixed = glob
    for char in "*?[":
        fixed = fixed.split(char, 1)[0]
    return in_globs(path, [glob]) or _within(fixed.rstrip("/") or "/", path) or (fixed != glob and path.startswith(fixed))


def _within(glob: str, path: str) -> bool:
    return glob == path or glob.startswith(path.rstrip("/") + "/")


def file_in(context: Context, seq: int, path: str) -> bytes | None:
    """Content of a file in a snapshot, None if it is not there. `Missing` where nobody knows."""
    data = context.trajectory.items[seq - 1].data
    if isinstance(data, Snapshot) and path in data.changed:
        raise Missing(f"{path} changed while snapshot {seq} was taken")
    try:
        return context.snapshots.read(seq, path)
    except SnapshotUnreadable as error:
        raise Missing(f"{path} cannot be read: {error}") from error


def undecided(op: str, why: str, events: Iterable[Item] = (), snapshot: str | None = None) -> HardRecord:
    """The judge decides."""
    return HardRecord(op=op, result="undecided", why=why, events=_seqs(events), snapshot=snapshot)


def passed(op: str, why: str, events: Iterable[Item] = (), snapshot: str | None = None) -> HardRecord:
    """It holds."""
    return HardRecord(op=op, result="pass", why=why, events=_seqs(events), snapshot=snapshot)


def failed(op: str, why: str, events: Iterable[Item] = (), snapshot: str | None = None) -> HardRecord:
    """It does not."""
    return HardRecord(op=op, result="fail", why=why, events=_seqs(events), snapshot=snapshot)


def _seqs(events: Iterable[Item]) -> list[int]:
    return [item.seq for item in list(events)[:20]]


def running_at(context: Context, seq: int) -> Iterator[Item]:
    """Commands that had started before `seq` and had not ended, as far as is known."""
    started: dict[int, Item] = {}
    for item in context.trajectory.items[: seq - 1]:
        if isinstance(item.data, Command):
            started[item.data.id] = item
        elif isinstance(item.data, CommandEnd):
            started.pop(item.data.id, None)
    yield from started.values()
