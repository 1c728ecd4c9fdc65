"""Seal: everything goes to storage, as long as that may take; the ledger is closed, and `work-seal.json` comes last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from realcli.api.base import sha256_digest
from realcli.api.termination import Result, Termination
from realcli.api.trial import Tokens
from realcli.ledger.events import Data, EpisodeEnd, PhaseChange, RecordGap, SessionError
from realcli.ledger.reserve import SpoolError
from realcli.ledger.seals import WorkSeal
from realcli.storage.port import StorageError, StorageUnavailable
from realcli_session.phases.attempt import Attempt, Happening, need, utc_now
from realcli_session.phases.collab import note
from realcli_session.phases.quiesce import not_wedged
from realcli_session.phases.storage import RUN, Hold
from realcli_session.phases.table import Cause
from realcli_session.runner.errors import RunnerLost
from realcli_session.termination import shorten
from realcli_session.user.events import Cut
from realcli_session.user.machine import step

MAX_DETAIL = 2000
WORK_SEAL = "work-seal.json"


async def seal(attempt: Attempt) -> tuple[Happening, str | None]:
    """The body of the stage, and the digest of the seal if it is in storage."""
    told = attempt.writer.full is None and _tell(attempt, PhaseChange(phase="seal"))
    await _let_go(attempt)
    attempt.writer.use_reserve()
    if attempt.writer.full is not None:
        _tell_of_the_hole(attempt, attempt.writer.full, told)
    _cut_the_user(attempt)
    progress = attempt.progress
    detail = shorten(attempt.redactor.text(progress.detail), MAX_DETAIL)
    attempt.writer.emit("session", EpisodeEnd(reason=need(progress.reason), detail=detail))
    attempt.writer.roll()
    hold = Hold(attempt)
    try:
        await attempt.uploader.drain(hold.left)
        run = attempt.run.canonical()
        await attempt.uploader.put(RUN, run, hold.left)
        for name, path in attempt.files:
            await attempt.uploader.put(name, path, hold.left)
        summary = attempt.writer.close()  # not before: the ledger tells when storage was away
        await attempt.uploader.drain(hold.left)
        made = WorkSeal(
            trial=attempt.trial.identity,
            reason=need(progress.reason),
            valid=progress.valid,
            state=None if progress.state_lost else attempt.state,
            run=sha256_digest(run),
            ledger=summary,
            turns=turns_of(attempt),
            tokens=tokens_of(attempt),
            cost_usd=cost_of(attempt),
            working_seconds=f"{attempt.clock.working:.3f}",
            limit=progress.limit,
            started_at=attempt.started_at,
            ended_at=utc_now(),
            objects=attempt.uploader.objects,
        ).seal()
        await attempt.uploader.put(WORK_SEAL, made, hold.left)
    except StorageUnavailable as error:
        return (Cause.STORAGE_ERROR, f"storage did not come back within limits.spoolHold ({hold.limit}): {error}"), None
    except StorageError as error:
        return (Cause.STORAGE_ERROR, f"storage refuses the attempt's files: {error}"), None
    finally:
        hold.end()
    return (Cause.SEALED, ""), sha256_digest(made)


def termination_of(attempt: Attempt, digest: str | None) -> Termination:
    """What the operator is told."""
    progress = attempt.progress
    return Termination(
        phase="Work",
        result=Result.WORK_SEALED if progress.valid else Result.WORK_INVALID,
        reason=progress.reason,
        message=shorten(attempt.redactor.text(progress.detail)) or None,
        seal=digest,
        turns=turns_of(attempt),
        tokens=tokens_of(attempt),
        cost_usd=cost_of(attempt),
        working_seconds=f"{attempt.clock.working:.3f}",
        throttled=throttled_of(attempt),
        limit=progress.limit,
        node=attempt.settings.node,
    )


def turns_of(attempt: Attempt) -> int:
    """Turns, 0 without a gateway."""
    return 0 if attempt.gateway is None else attempt.gateway.turns


def tokens_of(attempt: Attempt) -> Tokens:
    """Tokens, 0 without a gateway."""
    return Tokens() if attempt.gateway is None else attempt.gateway.tokens


def cost_of(attempt: Attempt) -> str | None:
    """US dollars as a decimal; None where unknown."""
    cost = None if attempt.gateway is None else attempt.gateway.cost_usd
    return None if cost is None else format(cost.normalize(), "f")


def throttled_of(attempt: Attempt) -> str | None:
    """Share of the requests to the provider that were answered 429, a decimal; None if none was sent."""
    share = None if attempt.gateway is None else attempt.gateway.throttled
    return None if share is None else f"{share:.4f}"


async def _let_go(attempt: Attempt) -> None:
    """End gateway, agent and runner: with its connection the runner kills everything and ends. After this nobody emits.

    What cannot be closed is told and keeps nothing from being sealed: the end of the work was decided before.
    """
    await _close(attempt, "gateway", None if attempt.gateway is None else attempt.gateway.stop)
    await _close(attempt, "simulated user", None if attempt.wording is None else attempt.wording.close)
    await _close(attempt, "mock hosts", None if attempt.mock_hosts is None else attempt.mock_hosts.stop)
    await _close(attempt, "record of commands", None if attempt.commands is None else attempt.commands.close)
    await _close(attempt, "runner", None if attempt.runner is None else attempt.runner.close)
    adapter = attempt.adapter

    async def stop() -> None:
        if adapter is not None:
            async with not_wedged(0.0, "end"):
                await adapter.stop(grace=0.0)

    await _close(attempt, "agent program", stop)


async def _close(attempt: Attempt, what: str, close: Callable[[], Awaitable[object]] | None) -> None:
    try:
        if close is not None:
            await close()
    except RunnerLost:
        pass  # which is what was wanted
    except Exception as error:
        _tell(attempt, SessionError(where=f"closing: {what}", message=f"{type(error).__name__}: {error}"))


def _tell(attempt: Attempt, data: Data) -> bool:
    """Whether the disk took it; what it did not take the writer counts."""
    try:
        attempt.writer.emit("session", data)
    except SpoolError:
        return False
    return True


def _tell_of_the_hole(attempt: Attempt, why: str, phase_told: bool) -> None:
    """What the disk refused is not in the evidence, so the attempt counts only if the agent's flood is the cause."""
    attempt.writer.emit("session", RecordGap(record="ledger", count=attempt.writer.lost, reason=shorten(why, MAX_DETAIL)))
    if not phase_told:
        attempt.writer.emit("session", PhaseChange(phase="seal"))
    if attempt.progress.valid and attempt.excess is None:
        attempt.progress = replace(attempt.progress, reason="SessionLost", detail=why, limit=None, state_lost=True)


def _cut_the_user(attempt: Attempt) -> None:
    """Tell what of the script did not happen. Where that fails the evidence is incomplete, so the attempt does not count."""
    if attempt.user is None or attempt.user.exchange == 0:
        return
    acted = turns_of(attempt) > attempt.turns_at_delivery
    try:
        attempt.user, actions = step(attempt.user, Cut(acted))
        for action in actions:
            note(attempt, action)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        attempt.writer.emit("session", SessionError(where="end of the simulated user", message=text))
        attempt.progress = replace(attempt.progress, reason="SessionLost", detail=text, limit=None, state_lost=True)
