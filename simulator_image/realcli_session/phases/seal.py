"""Seal: everything goes to storage, as long as that may take; the ledger is closed, and `work-seal.json` comes last."""

from __future__ import annotations

import contextlib

from realcli.api.base import sha256_digest
from realcli.api.termination import Result, Termination
from realcli.api.trial import Tokens
from realcli.ledger.events import EpisodeEnd, PhaseChange
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
    attempt.writer.emit("session", PhaseChange(phase="seal"))
    await _let_go(attempt)
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


async def _let_go(attempt: Attempt) -> None:
    """End gateway, agent and runner: with its connection the runner kills everything and ends. After this nobody emits."""
    if attempt.gateway is not None:
        await attempt.gateway.stop()
    if attempt.wording is not None:
        await attempt.wording.close()
    if attempt.mock_hosts is not None:
        await attempt.mock_hosts.stop()
    if attempt.commands is not None:
        await attempt.commands.close()
    if attempt.runner is not None:
        await attempt.runner.close()
    if attempt.adapter is not None:
        with contextlib.suppress(RunnerLost):
            async with not_wedged(0.0, "end"):
                await attempt.adapter.stop(grace=0.0)


def _cut_the_user(attempt: Attempt) -> None:
    if attempt.user is None or attempt.user.exchange == 0:
        return
    acted = turns_of(attempt) > attempt.turns_at_delivery
    attempt.user, actions = step(attempt.user, Cut(acted))
    for action in actions:
        note(attempt, action)
