"""The event stream of an attempt without what may differ between two runs of the same thing: times, retries, ids, random values.

A turn that was asked for again counts once: the first request, the last answer, and nothing of what the cut answers said.

What an agent program does in parallel (its own commands, beside the ones it was asked for) has no order of its own: commands are
compared as a bag. Codex looks at the shell's set-up beside its work: a command that comes before it has finished runs in a login
shell, a later one in a shell that is given the set-up. Which of them, the machine's pace decides.

Between which requests a file was written the ledger says with a window: a look at the files that comes late on a busy machine
makes it wider. Windows are compared by whether the write can have been at the same place in both runs.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from realcli.ledger.events import Event
from realcli.ledger.reader import StoreReader
from realcli.ledger.seals import RunJson
from tests.integration.session.moments import COMMANDS
from tests.integration.session.states import read_archive

RETRIES = ("storage",)  # that storage was away
SAID = ("agent_message", "tool_call")  # by an answer
_TIMES = {"firstByteMs", "totalMs", "waitedMs", "attempts", "seconds", "mono", "t", "measured"}
_WINDOW = {"afterTurn", "beforeTurn"}
_IDS = {
    "id",
    "pid",
    "parent",
    "requestId",
    "callId",
    "bodySha256",
    "bodyBytes",
    "size",
    "seq",
    "prev",
    "attempt",
    "digest",
    "requests",
}
_VARYING = [
    (re.compile(r"\b(?:toolu_01|msg_01|req_01|call_|resp_|fc_|rs_|msg_|chatcmpl-)[0-9a-f]{20,}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"snapshot-bash-\d+-\w+"), "snapshot-bash-<n>"),
    (re.compile(r"PATH_END_\w+"), "PATH_END_<n>"),
    (re.compile(r"/tmp/claude-[0-9a-f]{4}-cwd"), "/tmp/claude-<n>-cwd"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z?"), "<time>"),
    (re.compile(r"Chunk ID: [0-9a-f]+|Wall time: [\d.]+ seconds"), "<chunk>"),
    (re.compile(r"cch=[0-9a-f]+"), "cch=<n>"),
    (re.compile(r"[0-9a-f]{64}"), "<digest>"),
    (re.compile(r"\b1[0-9]{18}\b"), "<nanoseconds>"),
]


def asked_once(events: Sequence[Event]) -> Iterator[Event]:
    """Without what a repeated turn has twice."""
    requests: dict[int | None, list[str]] = {}
    for event in events:
        if event.kind == "model_request":
            requests.setdefault(event.turn, []).append(str(event.data.get("requestId")))
    again = {one for asked in requests.values() for one in asked[1:]}
    cut = {one for asked in requests.values() for one in asked[:-1]}
    cut_now: set[int | None] = set()  # turns of which an answer that will be cut is being given
    for event in events:
        request = str(event.data.get("requestId"))
        if event.kind == "model_request":
            (cut_now.add if request in cut else cut_now.discard)(event.turn)
            if request not in again:
                yield event
        elif event.kind == "model_reply" and request in cut:
            cut_now.discard(event.turn)
        elif event.kind not in SAID or event.turn not in cut_now:
            yield event


def commands_of(program: str, events: Iterable[Event]) -> list[Event]:
    """The commands of an agent program that have to be the same in every run: of Codex not those that depend on its pace."""
    found = [event for event in events if event.kind == "command"]
    if program != "codex":
        return found
    return [command for command in map(in_a_plain_shell, found) if command is not None]


def in_a_plain_shell(command: Event) -> Event | None:
    """The command as it runs in a shell that is given its set-up; None for what only finds that out."""
    argv = command.data.get("argv")
    if not isinstance(argv, list) or argv == ["id", "-u"] or str(argv[-1]).startswith("__CODEX_SNAPSHOT_OVERRIDE"):
        return None
    if argv[:2] == ["/bin/bash", "-lc"]:
        return command.model_copy(update={"data": {**command.data, "argv": ["/bin/bash", "-c", *argv[2:]]}})
    return command


class Stream:
    """One attempt's, ready to be compared."""

    def __init__(self, reader: StoreReader, events: Iterable[Event], program: str) -> None:
        self._reader = reader
        run = RunJson.model_validate_json(reader.read("run.json") or b"")
        self._values = [(run.instance_id, "<instance>"), (run.nonce, "<nonce>"), (str(run.seed), "<seed>")]
        kept = [event for event in events if event.kind not in RETRIES]
        kept = list(asked_once(kept))
        self.lines = [self._line(event) for event in kept if event.kind not in COMMANDS]
        self.commands = sorted(self._line(event) for event in commands_of(program, kept))
        self.windows = [
            (str(e.data["path"]), e.data["afterTurn"], e.data.get("beforeTurn")) for e in kept if "afterTurn" in e.data
        ]

    def _line(self, event: Event) -> str:
        data = self._value(event.data)
        place = "" if event.kind in COMMANDS else f"t{event.turn} x{event.exchange} "
        return f"{place}{event.actor} {event.kind} {json.dumps(data, sort_keys=True, ensure_ascii=False)}"

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            if set(value) == {"blob", "size"}:
                return self._blob(value["blob"])
            if {"name", "sha256", "size"} <= set(value):  # a snapshot: what is in it counts, not how it is packed
                value = {key: item for key, item in value.items() if key not in ("sha256", "size")}
            return {key: self._value(item) for key, item in value.items() if key not in _TIMES | _IDS | _WINDOW}
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for found, name in self._values:
            text = text.replace(found, name)
        for pattern, name in _VARYING:
            text = pattern.sub(name, text)
        return text

    def _blob(self, digest: str) -> str:
        data = self._reader.read(f"blobs/{digest}") or b"(missing)"
        text = self._text(data.decode("utf-8", "replace"))
        return f"blob {hashlib.sha256(text.encode()).hexdigest()[:16]} {text[:60]}"

    def state(self) -> dict[str, str]:
        """The files of the sealed state."""
        data = self._reader.read("state.tar.zst")
        return (
            {}
            if data is None
            else {name: self._text(text.decode("utf-8", "replace")) for name, text in read_archive(data).items()}
        )


def difference(undisturbed: Stream, disturbed: Stream) -> str:
    """Empty if they are equal, else a diff to read."""
    parts = [
        difflib.unified_diff(undisturbed.lines, disturbed.lines, "undisturbed", "disturbed", lineterm="", n=2),
        difflib.unified_diff(
            undisturbed.commands, disturbed.commands, "its commands", "its commands, disturbed", lineterm="", n=0
        ),
    ]
    files = [] if undisturbed.state() == disturbed.state() else [f"states differ: {undisturbed.state()} != {disturbed.state()}"]
    return "\n".join([*(line for part in parts for line in part), *apart(undisturbed.windows, disturbed.windows), *files])


Window = tuple[str, int, int | None]


def apart(one: Sequence[Window], other: Sequence[Window]) -> Iterator[str]:
    """Writes of one file that cannot have been between the same two requests. None: after the last request."""
    for (path, after, before), (_, later, sooner) in zip(one, other, strict=False):  # that they are as many, the lines say
        ends = [end for end in (before, sooner) if end is not None]
        if ends and max(after, later) >= min(ends):
            yield f"{path} was written between {after} and {before}, disturbed between {later} and {sooner}"
