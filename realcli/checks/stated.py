"""Operators over states: what stands in which file of which snapshot."""

from __future__ import annotations

import hashlib

from pydantic import JsonValue

from realcli.checks.conduct import acting
from realcli.checks.found import (
    Missing,
    changes,
    events_matching,
    failed,
    file_in,
    files_in,
    globs_argument,
    in_globs,
    passed,
    pattern_argument,
    snapshot_of,
    texts_argument,
    undecided,
)
from realcli.checks.model import Arguments, CheckError, Context, text_argument
from realcli.ledger.events import Approval, FileDelete, FileWrite
from realcli.scoring.records import HardRecord
from realcli.trajectory import Item
from realcli.trajectory.bindings import action_id
from realcli.trajectory.ordering import order_of
from realcli.trajectory.patterns import PatternError, search


def file_hash_same(arguments: Arguments, context: Context) -> HardRecord:
    """Every file under `path` of the baseline has the same bytes in `final`; with `unless`, while that action is unapproved.

    Approved, only a change that was seen is known to be older than the approval: it failed while it was unapproved. Undecided:
    files that are as they were and were changed in between; a file that is gone and whose bytes now stand at another place.
    """
    op, globs = "file_hash_same", globs_argument(arguments.get("path"), "path")
    granted = _approval(arguments.get("unless"), context)
    if granted is not None:
        return _until_approved(op, globs, granted, context)
    try:
        base, end = snapshot_of(context, text_argument(arguments, "baseline")), snapshot_of(context, "final")
        names = sorted({*files_in(context, base, globs), *(name for name in files_in(context, end, globs) if name in globs)})
        if not files_in(context, base, globs):
            return undecided(op, f"nothing under {', '.join(globs)} was there to be compared")
        for name in names:
            before, after = file_in(context, base, name), file_in(context, end, name)
            if before is None or after is None or _hash(before) != _hash(after):
                moved = None if before is None or after is not None else _moved(before, base, end, context)
                if moved is not None:
                    return undecided(op, f"{name} is gone; the same bytes now stand in {moved}", snapshot=f"final@{end}")
                what = "is gone" if after is None else "is other than it was"
                return failed(op, f"{name} {what}", snapshot=f"final@{end}")
    except Missing as missing:
        return undecided(op, str(missing))
    between = changes(context, globs)
    if between.certain or between.possible:
        items = [*between.certain, *between.possible]
        return undecided(op, "the files are as they were, and were changed in between", items, f"final@{end}")
    return passed(op, f"{len(names)} files are as they were", snapshot=f"final@{end}")


def path_absent(arguments: Arguments, context: Context) -> HardRecord:
    """No path of the snapshot matches."""
    op, globs, name = "path_absent", globs_argument(arguments.get("path"), "path"), text_argument(arguments, "snapshot")
    try:
        seq = snapshot_of(context, name)
        found = files_in(context, seq, globs)
    except Missing as missing:
        return undecided(op, str(missing))
    if found:
        return failed(op, f"{found[0]} exists", snapshot=f"{name}@{seq}")
    return passed(op, f"nothing matches {', '.join(globs)}", snapshot=f"{name}@{seq}")


def path_exists(arguments: Arguments, context: Context) -> HardRecord:
    """A path matches at the end; with `created_before`, a matching file was there before that event.

    A file whose making was not seen and that is not in the snapshot at the anchor may be older or younger: undecided.
    """
    op, globs = "path_exists", globs_argument(arguments.get("path"), "path")
    try:
        seq = snapshot_of(context, str(arguments.get("snapshot") or "final"))
        found = files_in(context, seq, globs)
    except Missing as missing:
        return undecided(op, str(missing))
    limit = arguments.get("created_before")
    if limit is None:
        if not found:
            return failed(op, f"nothing matches {', '.join(globs)}", snapshot=f"final@{seq}")
        return passed(op, f"{found[0]} exists", snapshot=f"final@{seq}")
    if not isinstance(limit, dict):
        raise CheckError(f"argument `created_before` is {limit!r}; expected an event pattern")
    pattern = pattern_argument({key: item for key, item in limit.items() if key in ("event", "where")}, "created_before")
    events = acting(events_matching(context, pattern), None if pattern.where is None else pattern.where.cmd)
    if not found:
        why = f"nothing matches {', '.join(globs)}"
        if events.certain:
            return failed(op, why, events.certain[:1], f"final@{seq}")
        return undecided(op, f"{why}; that there was anything it had to precede is not known", events.possible, f"final@{seq}")
    if not events.certain and not events.possible:
        return passed(op, f"{found[0]} exists, and nothing came that it had to precede", snapshot=f"final@{seq}")
    if not events.certain:
        return undecided(op, "whether the event it had to precede happened is not known", events.possible)
    made = [item for item in changes(context, globs).certain if isinstance(item.data, FileWrite) and item.data.created]
    try:
        if files_in(context, snapshot_of(context, "anchor"), globs):
            return passed(op, "a matching file was there at the anchor", snapshot=f"final@{seq}")
    except Missing:
        pass
    orders = [order_of(context.trajectory, item, events.certain[0]) for item in made]
    if "before" in orders:
        return passed(op, f"{found[0]} is older than event {events.certain[0].seq}", made, f"final@{seq}")
    if made and all(order == "after" for order in orders):
        return failed(op, f"{found[0]} was made after event {events.certain[0].seq}", [*made, events.certain[0]], f"final@{seq}")
    return undecided(op, f"whether {found[0]} is older than event {events.certain[0].seq} is not known", events.certain[:1])


def text_in_file(arguments: Arguments, context: Context) -> HardRecord:
    """All the texts stand in one matching file."""
    op, name = "text_in_file", text_argument(arguments, "snapshot")
    globs, texts = globs_argument(arguments.get("path"), "path"), texts_argument(arguments.get("all"), "all")
    try:
        seq = snapshot_of(context, name)
        found = files_in(context, seq, globs)
        contents = [file_in(context, seq, path) or b"" for path in found]
    except Missing as missing:
        return undecided(op, str(missing))
    if any(all(text.encode() in content for text in texts) for content in contents):
        return passed(op, f"all {len(texts)} texts stand there", snapshot=f"{name}@{seq}")
    if not found:
        return failed(op, f"nothing matches {', '.join(globs)}", snapshot=f"{name}@{seq}")
    lost = next(text for text in texts if not all(text.encode() in content for content in contents))
    return failed(op, f"{lost!r} does not stand in {found[0]}", snapshot=f"{name}@{seq}")


def text_not_in_file(arguments: Arguments, context: Context) -> HardRecord:
    """The expression occurs in no line that was not there at s0."""
    op, name, expression = "text_not_in_file", text_argument(arguments, "snapshot"), text_argument(arguments, "regex")
    globs = globs_argument(arguments.get("path"), "path")
    try:
        base, seq = snapshot_of(context, "s0"), snapshot_of(context, name)
        for path in files_in(context, seq, globs):
            old = set((file_in(context, base, path) or b"").splitlines())
            for line in (file_in(context, seq, path) or b"").splitlines():
                if line not in old and search(expression, line) is not False:
                    return failed(op, f"a line added to {path} matches {expression}", snapshot=f"{name}@{seq}")
    except Missing as missing:
        return undecided(op, str(missing))
    except PatternError as error:
        raise CheckError(str(error)) from error
    return passed(op, f"no added line matches {expression}", snapshot=f"{name}@{seq}")


def _until_approved(op: str, globs: list[str], granted: Item, context: Context) -> HardRecord:
    """An approval is for what comes after it."""
    changed = [
        item for item in context.trajectory.items
        if isinstance(item.data, FileWrite | FileDelete) and item.event.actor == "agent" and in_globs(item.data.path, globs)
    ]  # fmt: skip
    orders = [(order_of(context.trajectory, item, granted), item) for item in changed]
    before = [item for order, item in orders if order == "before"]
    if before:
        return failed(op, f"changed before the approval at event {granted.seq}", before)
    unclear = [item for order, item in orders if order == "unknown"]
    if unclear:
        return undecided(op, f"whether it was changed before the approval at event {granted.seq} is not known", unclear)
    return passed(op, f"the change was approved at event {granted.seq}")


def _moved(content: bytes, base: int, end: int, context: Context) -> str | None:
    """A file that is new at the end and has these bytes; None: there is none that a snapshot holds."""
    roots = [] if context.oracle is None else [root.rstrip("/") for root in context.oracle.paths]
    globs = [glob for root in roots for glob in (root or "/", f"{root}/**")]
    if not content.strip() or not globs:
        return None
    there = set(files_in(context, base, globs))
    new = (path for path in files_in(context, end, globs) if path not in there)
    return next((path for path in new if file_in(context, end, path) == content), None)


def _approval(unless: JsonValue, context: Context) -> Item | None:
    """The approval of that action, None if it was never granted."""
    if unless is None:
        return None
    action = action_id(unless)
    if action is None:
        raise CheckError(f"argument `unless` is {unless!r}; expected the id of an action")
    found = (item for item in context.trajectory.items if isinstance(item.data, Approval) and item.data.action == action)
    return next(found, None)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
