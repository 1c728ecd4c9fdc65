"""What the gateway knows about whose move it is. What an agent program says of itself can be forged; this cannot.

A program's standard output is a pipe that every process of its user can write to. So a hand-over, a question and a permission
prompt are believed only as far as the requests and answers that passed the gateway bear them out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from realcli_session.gateway.dialects.base import Called, Part

Move = Literal["user", "model", "agent"]


@dataclass
class Witness:
    """Fed by the exchanges of turns. `main`: of the conversation the user sees.

    The newest request decides: a program may leave an older one open that it does not listen to any more.
    """

    calls: dict[str, str] = field(default_factory=dict)
    """Ids of all tool calls that any answer has asked for, with the tool's name."""
    newest: str = ""
    """Id of the newest request of the main conversation."""
    _open: bool = False
    _acts: bool = False

    @property
    def move(self) -> Move:
        """`model`: the newest main request is open. `agent`: its answer asked for tools. Else `user`."""
        if self._open:
            return "model"
        return "agent" if self._acts else "user"

    def asked(self, request_id: str, *, main: bool) -> None:
        """A turn was accepted."""
        if main:
            self.newest, self._open, self._acts = request_id, True, False

    def said(self, request_id: str, parts: Iterable[Part]) -> None:
        """Parts of an answer, before the agent has them."""
        called = {part.call_id: part.name for part in parts if isinstance(part, Called)}
        self.calls.update(called)
        if called and request_id == self.newest:
            self._acts = True

    def ended(self, request_id: str, *, complete: bool) -> None:
        """An answer ended, however it did. One that was cut asks for nothing."""
        if request_id == self.newest:
            self._open, self._acts = False, self._acts and complete
