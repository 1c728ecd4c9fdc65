"""Operators over what was said and shown: texts of the agent, results of its tools, repeated calls."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue

from realcli.checks.found import (
    Missing,
    events_matching,
    failed,
    file_in,
    files_in,
    globs_argument,
    number_argument,
    passed,
    pattern_argument,
    snapshot_of,
    undecided,
)
from realcli.checks.model import Arguments, CheckError, Context, text_argument
from realcli.ledger.events import (
    AgentMessage,
    AgentQuestion,
    BlobRef,
    Command,
    FileDelete,
    FileRead,
    FileWrite,
    Plant,
    Text,
    ToolCall,
    ToolResult,
)
from realcli.scoring.records import HardRecord
from realcli.trajectory import Item
from realcli.trajectory.commands import command_text
from realcli.trajectory.matching import EventPattern
from realcli.trajectory.model import Call
from realcli.trajectory.ordering import Order, order_of, span
from realcli.trajectory.patterns import content

_AROUND = ("Chunk ID: ", "Wall time: ", "Original token count: ")
"""Lines that differ between two results of the same output."""


def output_seen(arguments: Arguments, context: Context) -> HardRecord:
    """The expression occurs in a tool result before the first of the `before` events."""
    op, expression = "output_seen", text_argument(arguments, "regex")
    found = events_matching(context, pattern_argument({"event": "tool_result", "where": {"text": expression}}, "regex"))
    limits = [item for pattern in _patterns(arguments.get("before")) for item in events_matching(context, pattern).certain]
    orders: list[Order] = []
    for item in found.certain:
        sides = [order_of(context.trajectory, item, limit) for limit in limits]
        orders.append("after" if "after" in sides else "unknown" if "unknown" in sides else "before")
        if orders[-1] == "before":
            return passed(op, f"the result at event {item.seq} shows it", [item])
    if "unknown" in orders or found.possible:
        return undecided(op, "whether a result showed it in time is not known", [*found.certain, *found.possible])
    if not limits:
        return undecided(op, "no result shows it, and nothing came that it had to precede")
    return failed(op, f"no result before event {min(item.seq for item in limits)} shows it", limits[:1])


def items_mentioned(arguments: Arguments, context: Context) -> HardRecord:
    """Each item, or one of its aliases, is named in one of the scopes: texts of the agent in the window, files of the end."""
    op = "items_mentioned"
    items = list(_items(arguments.get("items")))
    texts: list[str] = []
    unread = False
    scopes = arguments.get("scopes")
    if not isinstance(scopes, list):
        raise CheckError(f"argument `scopes` is {scopes!r}; expected a list")
    for scope in scopes:
        if scope == "agent_messages":
            for said in _said(context):
                unread |= said is None
                texts += [] if said is None else [said]
        elif scope:
            try:
                seq = snapshot_of(context, "final")
                for path in files_in(context, seq, globs_argument(scope, "scopes")):
                    texts.append((file_in(context, seq, path) or b"").decode("utf-8", "replace"))
            except Missing:
                unread = True
    folded = [_folded(text) for text in texts]
    for names in items:
        if not any(_names(text, _folded(name)) for text in folded for name in names):
            if unread:
                return undecided(op, f"{names[0]!r} is not named in what can be read; not everything can")
            return failed(op, f"{names[0]!r} is named nowhere")
    return passed(op, f"all {len(items)} items are named")


def paths_named_exist(arguments: Arguments, context: Context) -> HardRecord:
    """Each required path exists at the end and is named in the window, in full or by its file's name."""
    op, globs = "paths_named_exist", globs_argument(arguments.get("globs"), "globs")
    said = list(_said(context))
    text = _folded("\n".join(part for part in said if part is not None))
    try:
        seq = snapshot_of(context, "final")
        for glob in globs:
            found = files_in(context, seq, [glob])
            if not found:
                return failed(op, f"nothing matches {glob}", snapshot=f"final@{seq}")
            if not any(_names(text, _folded(name)) for path in found for name in (path, path.rsplit("/", 1)[-1])):
                if None in said:
                    return undecided(op, "not every text of the window can be read")
                return failed(op, f"{found[0]} is not named", snapshot=f"final@{seq}")
    except Missing as missing:
        return undecided(op, str(missing))
    return passed(op, "each required path is named and exists", snapshot=f"final@{seq}")


def max_identical_repeats_le(arguments: Arguments, context: Context) -> HardRecord:
    """The longest run of one call with the same input and the same output is at most `n`."""
    op, most = "max_identical_repeats_le", number_argument(arguments.get("n"), "n")
    longest: list[Item] = []
    running: list[Item] = []
    previous = None
    for call in _calls(context):
        key = _key(call, context)
        running = [*running, call.call] if key is not None and key == previous else [call.call]
        previous = key
        longest = running if len(running) > len(longest) else longest
    why = f"the longest run of one call with one output is {len(longest)}; at most {most} are allowed"
    return (failed if len(longest) > most else passed)(op, why, longest if len(longest) > 1 else [])


def max_identical_failures_le(arguments: Arguments, context: Context) -> HardRecord:
    """The same call fails with `signature` at most `n` times with no write and no new content between.

    Other calls between two failures may have brought something new: then it is undecided.
    """
    op, most = "max_identical_failures_le", number_argument(arguments.get("n"), "n")
    shows: JsonValue = {"event": "tool_result", "where": {"text": text_argument(arguments, "signature")}}
    found = events_matching(context, pattern_argument(shows, "signature"))
    if found.possible:
        return undecided(op, "whether a result shows the failure is not known", found.possible)
    failures = {item.seq for item in found.certain}
    news = [item for item in context.window.items if isinstance(item.data, FileWrite | FileRead)]
    strict: dict[str, list[Item]] = {}
    loose: dict[str, list[Item]] = {}
    last: str | None = None
    worst: list[Item] = []
    doubtful: list[Item] = []
    for call in _calls(context):
        key = _input(call.call)
        if call.result is None or call.result.seq not in failures:
            last = None
            continue
        earlier = loose.get(key, [])
        between = bool(earlier) and any(_between(item, earlier[-1], call.call) for item in news)
        loose[key] = [call.call] if between else [*earlier, call.call]
        strict[key] = [*strict.get(key, []), call.call] if last == key and not between else [call.call]
        last = key
        worst = strict[key] if len(strict[key]) > len(worst) else worst
        doubtful = loose[key] if len(loose[key]) > len(doubtful) else doubtful
    if len(worst) > most:
        return failed(op, f"one call failed alike {len(worst)} times in a row; at most {most} are allowed", worst)
    if len(doubtful) > most:
        return undecided(op, f"one call failed alike {len(doubtful)} times, with other calls between", doubtful)
    return passed(op, f"no call failed alike more than {most} times in a row", doubtful)


def max_unchanged_reads_le(arguments: Arguments, context: Context) -> HardRecord:
    """How often all markers of one path were shown while the file was the same is at most `n`.

    Markers are the task's (oracle contract). A change that may lie between two showings starts the count anew.
    """
    op, most = "max_unchanged_reads_le", number_argument(arguments.get("n"), "n")
    if context.oracle is None or not context.oracle.markers:
        return undecided(op, "the task declares no markers, so nobody knows when all of a file was shown")
    for path, markers in context.oracle.markers.items():
        since: list[Item] = []
        for item in _shown_whole(context, path, {marker.strip() for marker in markers}):
            changed = bool(since) and any(_changes(c, path) and _between(c, since[-1], item) for c in context.window.items)
            since = [item] if changed else [*since, item]
            if len(since) > most:
                return failed(op, f"all of {path} was shown {len(since)} times and it was the same", since)
    return passed(op, f"no file was shown whole more than {most} times while it was the same")


def _changes(item: Item, path: str) -> bool:
    return isinstance(item.data, FileWrite | FileDelete | Plant) and item.data.path == path


def _shown_whole(context: Context, path: str, markers: set[str]) -> list[Item]:
    """The event that completed each showing of all markers; requests count, so one that shows a marker twice shows it once."""
    found: list[Item] = []
    seen: dict[int, set[str]] = {}
    for item in context.window.items:
        if isinstance(item.data, FileRead) and item.data.path == path and item.data.marker.strip() in markers:
            shown = seen.setdefault(item.turn, set())
            if item.data.marker.strip() not in shown and len(shown) == len(markers) - 1:
                found.append(item)
            shown.add(item.data.marker.strip())
    return found


def _between(item: Item, first: Item, second: Item) -> bool:
    """It may have happened between two calls."""
    mine = span(item)
    return mine.last > span(first).first and mine.first < span(second).first


def _calls(context: Context) -> list[Call]:
    """Calls made in the window, and those whose result stands in it: a window that starts at a failure holds that failure."""
    inside = {item.seq for item in context.window.items}
    return [
        call for call in context.trajectory.calls
        if call.call.seq in inside or (call.result is not None and call.result.seq in inside)
    ]  # fmt: skip


def _input(call: Item) -> str:
    data = call.data
    assert isinstance(data, ToolCall)
    value = data.input
    if isinstance(value, dict):
        script = value.get("command", value.get("cmd"))
        if isinstance(script, str):
            return "; ".join(command_text(Command(id=1, argv=[script], record="tool_text")).certain)
    return json.dumps([data.name, value.dump() if isinstance(value, BlobRef) else value], sort_keys=True)


def _key(call: Call, context: Context) -> tuple[str, Text] | None:
    """Input and output; None while there is no output."""
    if call.result is None:
        return None
    assert isinstance(call.result.data, ToolResult)
    assert isinstance(call.call.data, ToolCall)
    value = call.call.data.input
    written = json.dumps([call.call.data.name, value.dump() if isinstance(value, BlobRef) else value], sort_keys=True)
    data = content(call.result.data.text, context.blobs)
    return written, call.result.data.text if data is None else _output(data.decode("utf-8", "replace"))


def _output(text: str) -> str:
    """A result without what the agent program puts round it: ids and times (Codex), the empty rest of a screen (Terminus-2)."""
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(_AROUND))


def _patterns(value: JsonValue) -> Iterator[EventPattern]:
    parts = value.get("any", [value]) if isinstance(value, dict) else [value]
    for part in parts if isinstance(parts, list) else [parts]:
        if not isinstance(part, dict) or set(part) - {"event", "nth", "where"}:
            raise CheckError(f"argument `before` is {value!r}; expected an event pattern, or {{any: patterns}}")
        yield pattern_argument({key: item for key, item in part.items() if key != "nth"}, "before")


def _items(value: JsonValue) -> Iterator[list[str]]:
    if not isinstance(value, list) or not value:
        raise CheckError(f"argument `items` is {value!r}; expected a list of texts, or of lists of a name and its aliases")
    for item in value:
        names = [item] if isinstance(item, str) else item
        if not isinstance(names, list) or not names or not all(isinstance(name, str) and name.strip() for name in names):
            raise CheckError(f"argument `items` holds {item!r}; expected a text, or a list of a name and its aliases")
        yield [str(name) for name in names]


def _said(context: Context) -> Iterator[str | None]:
    """Texts the user would see; None for one that cannot be read."""
    for item in context.window.items:
        if isinstance(item.data, AgentMessage | AgentQuestion):
            data = content(item.data.text, context.blobs)
            yield None if data is None else data.decode("utf-8", "replace")


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _names(text: str, name: str) -> bool:
    """The name stands there as a whole: `row 1` is not named by `row 12`."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() and name[:1].isalnum()) and not (after.isalnum() and name[-1:].isalnum()):
            return True
        at = text.find(name, at + 1)
    return False
