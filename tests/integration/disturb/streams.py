"""The event stream of an attempt without what may differ between two runs of the same thing: times, retries, ids, random values.

What an agent program does in parallel (its own commands, beside the ones it was asked for) has no order of its own: commands are
compared as a bag.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from realcli.ledger.events import Event
from realcli.ledger.reader import StoreReader
from realcli.ledger.seals import RunJson
from tests.integration.session.moments import COMMANDS
from tests.integration.session.states import read_archive

RETRIES = ("storage",)  # that storage was away
_TIMES = {"firstByteMs", "totalMs", "waitedMs", "attempts", "seconds", "mono", "t", "measured"}
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


class Stream:
    """One attempt's, ready to be compared."""

    def __init__(self, reader: StoreReader, events: Iterable[Event]) -> None:
        self._reader = reader
        run = RunJson.model_validate_json(reader.read("run.json") or b"")
        self._values = [(run.instance_id, "<instance>"), (run.nonce, "<nonce>"), (str(run.seed), "<seed>")]
        kept = [event for event in events if event.kind not in RETRIES]
        last = {event.turn: event.seq for event in kept if event.kind == "model_request"}
        again = {event.data.get("requestId") for event in kept if event.kind == "model_request" and last[event.turn] != event.seq}
        kept = [event for event in kept if event.data.get("requestId") not in again or not event.kind.startswith("model_")]
        self.lines = [self._line(event) for event in kept if event.kind not in COMMANDS]
        self.commands = sorted(self._line(event) for event in kept if event.kind == "command")

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
            return {key: self._value(item) for key, item in value.items() if key not in _TIMES | _IDS}
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
    return "\n".join([*(line for part in parts for line in part), *files])
