"""Moments of a running session, seen from outside: how many events it has written."""

from __future__ import annotations

import json
import time

from tests.integration.session.harness import Pod

COMMANDS = ("command", "command_end")  # what an agent program starts by itself varies from run to run: not counted


class Moments:
    """Reads the spool, whose segments go away as they go up."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self._folder = pod.folder / "spool" / "ledger"
        self._counts: dict[str, int] = {}

    def wait(self, events: int) -> None:
        """Until so many are written, or the session is over."""
        while self.count() < events and self._pod.session.poll() is None:
            time.sleep(0.002)  # a file has no other way to tell

    def count(self) -> int:
        """Of all segments seen."""
        for path in sorted(self._folder.glob("*.jsonl")):
            try:
                lines = path.read_bytes().split(b"\n")[:-1]
            except FileNotFoundError:
                continue
            self._counts[path.name] = sum(json.loads(line)["kind"] not in COMMANDS for line in lines)
        return sum(self._counts.values())
