"""Work in COLLAB: carries out what the simulated user's state machine decides, and tells it what happens.

The machine sees every event of the ledger the moment it is written (`LedgerWriter.subscribe`), so a trigger fires at the same
event for it and for the judge. What it asks for then is queued, and done here between the events of the agent program.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from realcli.ledger.events import Data, Event, FileDelete, FileWrite, Interrupt, PhaseChange, ProbeDelivered, SessionError
from realcli.trajectory.model import Item
from realcli_session.agents import port as agent
from realcli_session.phases.attempt import Attempt, Happening, need
from realcli_session.phases.conversation import HandOver, record, take, why
from realcli_session.phases.plants import plant
from realcli_session.phases.table import Cause
from realcli_session.user import events as user
from realcli_session.user import record as record_
from realcli_session.user.machine import step
from realcli_session.user.wording import SimulatorFailed


async def collab_work(attempt: Attempt) -> Happening:
    """Until the state machine accepts a claim, or the agent program ends, or the simulated user fails."""
    attempt.writer.emit("session", PhaseChange(phase="work"))
    conversation = Conversation(attempt)
    attempt.writer.subscribe(conversation.seen)
    try:
        return await conversation.run()
    except agent.AgentUnresponsive as error:
        return await why(attempt, Cause.AGENT_EXIT, str(error))
    except SimulatorFailed as error:
        attempt.writer.emit("session", SessionError(where="simulated user", message=str(error)))
        return Cause.SIMULATOR_FAILED, str(error)


class Conversation:
    """One run's conversation. Single use."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._todo: deque[user.Action] = deque()
        self._wake = asyncio.Event()
        self._question: agent.Question | None = None  # open: the next message answers it
        self._anchored: list[str] = []  # instances whose response runs
        self._following: list[str] = []  # instances whose response is the one after the hand-over
        self._waits = False  # the agent has handed over
        self._after: set[int] = set()  # events (seq) told since, but for changes of files that the response had made

    def seen(self, event: Event, data: Data) -> None:
        """The ledger's subscriber."""
        made = data.before_turn if isinstance(data, FileWrite | FileDelete) else None
        if self._waits and (made is None or made > event.turn):
            self._after.add(event.seq)
        self._queue(self._step(user.Seen(Item.told(event, data))))

    async def run(self) -> Happening:
        """Opener first, then one agent event after the other."""
        attempt = self._attempt
        stream = need(attempt.adapter).events()
        with attempt.clock.user_time():
            self._queue(self._step(user.Start()))
            await self._work_off()
        following = asyncio.ensure_future(_after(stream))
        try:
            while True:
                await self._work_off()
                woken = asyncio.ensure_future(self._wake.wait())
                await asyncio.wait({following, woken}, return_when=asyncio.FIRST_COMPLETED)
                woken.cancel()
                if self._wake.is_set() or not following.done():
                    continue
                event = following.result()
                if event is None:
                    return await why(attempt, Cause.AGENT_EXIT, "the agent program ended")
                following = asyncio.ensure_future(_after(stream))
                ended = await self._take(event)
                if ended is not None:
                    return ended
        finally:
            following.cancel()

    async def _take(self, event: agent.AgentEvent) -> Happening | None:
        if isinstance(event, agent.PermissionRequest) and event.answered is None:
            await self._prompt(event)
            return None
        if isinstance(event, agent.Withdrawn):
            if self._question is not None and self._question.request_id == event.request_id:
                self._question = None
            return None
        taken = await take(self._attempt, event)
        if isinstance(taken, agent.Yield | agent.Question):
            with self._attempt.clock.user_time():
                await self._handed_over(taken)
            return (Cause.COMPLETED, "") if need(self._attempt.user).ended else None
        return taken

    async def _handed_over(self, handed_over: HandOver) -> None:
        """Write it down with all that belongs to it, then answer it."""
        attempt = self._attempt
        record(attempt, handed_over)
        self._waits = True
        await need(attempt.watch).at_yield()  # what is waited for was written, however slow the scan is
        await need(attempt.commands).settle()
        await self._work_off()  # triggers among them: the response is theirs where it had them in it, however late they are told
        anchored, self._anchored, self._following = self._anchored, self._following, []
        for name in anchored:
            await attempt.snapshot("response_end", name)
        if isinstance(handed_over, agent.Question):
            self._question = handed_over
        if isinstance(handed_over, agent.Question) and not handed_over.prose:
            self._queue(self._step(user.Yielded("yielded", handed_over.parts or (handed_over.text,))))
        else:
            interrupted = isinstance(handed_over, agent.Yield) and handed_over.how == "interrupted"
            self._queue(self._step(user.Yielded("interrupted" if interrupted else "yielded")))
        await self._work_off()
        self._queue(self._step(user.Respond()))
        await self._work_off()
        self._waits = False
        self._after.clear()

    async def _prompt(self, prompt: agent.PermissionRequest) -> None:
        adapter = need(self._attempt.adapter)
        asked = user.Prompt(prompt.request_id, prompt.tool, prompt.input)
        with self._attempt.clock.user_time():
            for answer in self._step(asked):
                if not isinstance(answer, user.AnswerPrompt):
                    raise ValueError(f"{answer} is no answer to a permission prompt")
                self._write(record_.of_prompt(asked, answer))
                try:
                    await adapter.answer(prompt.request_id, "allow" if answer.allow else "deny", answer.text)
                except LookupError as error:  # an interrupt has withdrawn it
                    self._attempt.writer.emit("session", SessionError(where="permission prompt", message=str(error)))

    # ---------------------------------------------------------------------------------------------------------- actions
    def _step(self, event: user.Event) -> user.Actions:
        self._attempt.user, actions = step(need(self._attempt.user), event)
        return actions

    def _queue(self, actions: user.Actions) -> None:
        if actions:
            self._todo.extend(actions)
            self._wake.set()

    async def _work_off(self) -> None:
        """Do what was asked for, in order, until nothing is left."""
        while self._todo:
            await self._do(self._todo.popleft())
        self._wake.clear()

    async def _do(self, action: user.Action) -> None:
        attempt = self._attempt
        match action:
            case user.Say():
                await self._say(action)
            case user.PutPlant(probe, edit):
                done = await plant(attempt, probe, edit)
                self._queue(self._step(user.Planted(probe) if done else user.PlantFailed(probe)))
            case user.Stop(probe):
                await self._stop(probe)
            case user.Triggered(instance=instance, of=seq):
                note(attempt, action)
                await attempt.snapshot("anchor", instance)
                (self._following if seq in self._after else self._anchored).append(instance)
            case user.Close():
                self._write(record_.of_close(action))
            case _:
                note(attempt, action)

    async def _stop(self, probe: str) -> None:
        """Stop the running response; the probe is said when its yield is there."""
        try:
            await need(self._attempt.adapter).interrupt()
        except agent.NotWorking as error:
            self._attempt.writer.emit("session", Interrupt(probe=probe, taken=False, detail=str(error)))
            self._queue(self._step(user.Missed(probe)))
        else:
            self._attempt.writer.emit("session", Interrupt(probe=probe, taken=True))

    async def _say(self, say: user.Say) -> None:
        attempt, probe = self._attempt, say.probe
        if say.mid_turn:
            await self._interject(say)
            return
        worded = await need(attempt.wording).word(say, need(attempt.user))
        if probe is not None:
            await attempt.snapshot("anchor", probe.id)
        attempt.writer.exchange = say.exchange
        question, self._question = self._question, None
        self._write(record_.of_say(say, worded.text, "send" if question is None or question.prose else "answer", worded.by))
        attempt.turns_at_delivery = need(attempt.gateway).turns
        adapter = need(attempt.adapter)
        if question is None:
            await adapter.send(worded.text)
            return
        try:
            await adapter.answer(question.request_id, "allow", worded.text)
        except LookupError:  # withdrawn meanwhile: the agent waits for a message like any other
            await adapter.send(worded.text)

    async def _interject(self, say: user.Say) -> None:
        """Into the running response, now and verbatim; only what reached the agent is written down."""
        attempt, probe = self._attempt, need(say.probe)
        await attempt.snapshot("anchor", probe.id)
        attempt.turns_at_delivery = need(attempt.gateway).turns
        try:
            await need(attempt.adapter).send(say.text, mid_turn=True)
        except agent.NotWorking as error:
            attempt.writer.emit("session", Interrupt(probe=probe.id, taken=False, detail=str(error)))
            self._queue(self._step(user.Missed(probe.id)))
        else:
            self._write(record_.of_say(say, say.text, "mid_turn"))

    def _write(self, events: record_.Written) -> None:
        for actor, data in events:
            self._attempt.writer.emit(actor, data)
            if isinstance(data, ProbeDelivered):
                self._anchored.append(data.probe)


def note(attempt: Attempt, action: user.Action) -> None:
    """Write down what needs no doing."""
    if not isinstance(action, record_.Noted):
        raise ValueError(f"{action} has to be done, not noted")
    attempt.writer.emit("session", record_.of_note(action))


async def _after(stream: AsyncIterator[agent.AgentEvent]) -> agent.AgentEvent | None:
    """The next event, None at the end."""
    return await anext(stream, None)
