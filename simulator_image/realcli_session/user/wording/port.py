"""The interface of wording, and wording by nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from realcli_session.user.events import Say
from realcli_session.user.state import State


class SimulatorFailed(Exception):
    """The simulated user cannot go on as the instrument's version says: the run is invalid, never the agent's fault."""


@dataclass(frozen=True, slots=True)
class Worded:
    """A message as it is delivered."""

    text: str
    by: Literal["script", "model"] = "script"


class WordingPort(Protocol):
    """Turns a decided message into its text."""

    async def word(self, say: Say, state: State) -> Worded:
        """`state`: after the decision, so what the message releases counts as released. Raises SimulatorFailed."""

    async def close(self) -> None:
        """Let go of connections. Idempotent."""


class Canonical:
    """The script's texts, verbatim: deterministic, and the lower bound of what a model may do."""

    async def word(self, say: Say, state: State) -> Worded:
        """The canonical text."""
        return Worded(say.text)

    async def close(self) -> None:
        """Nothing is held."""
