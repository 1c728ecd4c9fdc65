"""Wording by a model: it gets what is due alone, its text passes every guard, or the script's own is said (measuring.md 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from realcli.ledger.events import AgentMessage, BlobRef, Data, Event, Guard, UserMessage, WordingRequest
from realcli_session.gateway.port import EventSink
from realcli_session.user.events import Piece, Say
from realcli_session.user.state import State
from realcli_session.user.wording.brief import Brief, Reply
from realcli_session.user.wording.endpoint import Endpoint
from realcli_session.user.wording.guards import Context, hits
from realcli_session.user.wording.port import SimulatorFailed, Worded
from realcli_session.user.wording.withheld import withheld

TRIES = 3  # one, and at most two more
SILENT = 3  # messages in a row without any answer of the endpoint: this run is then no run of this instrument
_WORDED = frozenset(("slice", "probe", "answer", "closure"))


@dataclass
class _Said:
    """The visible conversation."""

    lines: list[tuple[Literal["user", "assistant"], str]]

    def of(self, who: str) -> str:
        return "\n".join(text for speaker, text in self.lines if speaker == who)

    @property
    def before(self) -> str:
        return next((text for who, text in reversed(self.lines) if who == "user"), "")


class Model:
    """One run's wording. `seen` is to be subscribed to the ledger: the visible conversation is what the model may read."""

    def __init__(self, endpoint: Endpoint, sink: EventSink, *, seed: int) -> None:
        self._endpoint = endpoint
        self._sink = sink
        self._seed = seed
        self._said = _Said([])
        self._silent = 0

    def seen(self, event: Event, data: Data) -> None:
        """Keep what both sides could read."""
        if isinstance(data, UserMessage) and data.delivered and not isinstance(data.text, BlobRef):
            self._said.lines.append(("user", data.text))
        elif isinstance(data, AgentMessage) and data.field in ("", "message_to_user") and not isinstance(data.text, BlobRef):
            self._said.lines.append(("assistant", data.text))

    async def word(self, say: Say, state: State) -> Worded:
        """The worded message. Verbatim pieces stay where they are; a message of only such is asked of nobody."""
        free = [piece for piece in say.pieces if not piece.verbatim and piece.kind in _WORDED]
        if not free:
            return Worded(say.text)
        text = await self._try(say, state, free)
        if text is None:
            return Worded(say.text)
        first = say.pieces.index(free[0])
        pieces = [piece.text for piece in say.pieces[:first]] + [text]
        pieces += [piece.text for piece in say.pieces[first:] if piece not in free]
        return Worded("\n\n".join(pieces), "model")

    async def close(self) -> None:
        """Let go of the endpoint."""
        await self._endpoint.close()

    async def _try(self, say: Say, state: State, free: list[Piece]) -> str | None:
        answers = any(piece.kind == "answer" for piece in free) or any(how == "ask" for _, how in say.releases)
        items = tuple((piece.sources[0], piece.text) for piece in free)
        brief = Brief(
            persona=state.play.script.persona,
            conversation=tuple(self._said.lines),
            items=items,
            reply_kind="answer" if answers else "inform",
        )
        context = self._context(state, "\n\n".join(piece.text for piece in free), say.text)
        heard_of = False
        for attempt in range(1, TRIES + 1):
            answer = await self._endpoint.ask(brief.user_text(), self._seed + attempt - 1)
            self._sink.emit(
                "session",
                WordingRequest(
                    message_id=say.message_id, attempt=attempt, status=answer.status, model=answer.model, usage=answer.usage,
                    total_ms=answer.total_ms, error=answer.error,
                ),
            )  # fmt: skip
            heard_of |= answer.text is not None
            found, text = _judge(answer.text, brief, context)
            last = attempt == TRIES
            outcome: Literal["sent", "retry", "canonical"] = "sent" if not found else "canonical" if last else "retry"
            self._sink.emit(
                "session",
                Guard(message_id=say.message_id, attempt=attempt, hits=found, draft=answer.text or "", outcome=outcome),
            )
            if not found:
                self._silent = 0
                return text
        self._silent = 0 if heard_of else self._silent + 1
        if self._silent >= SILENT:
            raise SimulatorFailed(
                f"the endpoint of the simulated user's model gave no answer for {SILENT} messages in a row; "
                "the last error is in the ledger (wording_request)"
            )
        return None

    def _context(self, state: State, canonical: str, whole: str) -> Context:
        script = state.play.script
        licensed = "\n".join([script.opener, *script.user_knows, self._said.of("user"), whole])
        return Context(
            canonical=canonical,
            before=self._said.before,
            licensed=licensed,
            heard=self._said.of("assistant"),
            withheld=withheld(state, licensed),
        )


def _judge(raw: str | None, brief: Brief, context: Context) -> tuple[list[str], str]:
    """Names of what is wrong with an answer, and its text."""
    if raw is None:
        return ["no_answer"], ""
    try:
        reply = Reply.model_validate_json(raw)
    except ValidationError:
        return ["schema"], ""
    found = []
    if sorted(reply.release) != sorted(id for id, _ in brief.items):
        found.append("release")
    if reply.reply_kind != brief.reply_kind:
        found.append("reply_kind")
    return found + hits(reply.text, context), reply.text
