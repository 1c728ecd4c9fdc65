"""Progress of a run: the events of its ledger as they reach storage, the telling ones only."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError

from realcli.ledger.events import EVENT
from realcli.ledger.show import describe
from realcli.storage.paths import AttemptPaths
from realcli.storage.port import ObjectStore

TELLING = frozenset(
    {
        "phase", "agent_start", "user_message", "ask", "approval", "denial", "tool_call", "file_write", "yield",
        "agent_question", "permission_request", "permission_answer", "probe_delivered", "probe_untriggered", "interrupt", "plant",
        "limit", "agent_exit", "error", "quiesce", "state", "final_claim", "episode_end", "storage",
    }
)  # fmt: skip


class Follower:
    """Call it again and again; prints what is new."""

    def __init__(self, store: ObjectStore, paths: AttemptPaths, show: Callable[[str], None], everything: bool = False) -> None:
        self._store = store
        self._paths = paths
        self._show = show
        self._everything = everything
        self._next = 1

    def __call__(self) -> None:
        """Show the segments that have come."""
        while self._store.exists(key := self._paths.segment(self._next)):
            self._next += 1
            for line in self._store.get(key).splitlines():
                try:
                    event = EVENT.validate_json(line)
                except ValidationError as error:
                    self._show(f"a line of {key} is no event: {error.error_count()} fields do not fit")
                    continue
                if self._everything or event.kind in TELLING:
                    self._show(describe(event))
