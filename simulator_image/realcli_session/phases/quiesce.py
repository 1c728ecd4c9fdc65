"""Quiesce: the agent is stopped, its last changes are recorded, nothing of it runs, and its state is taken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from realcli.api.outcomes import is_valid
from realcli.ledger.events import Limit, PhaseChange, Quiesce, StateStored
from realcli_session.agents.port import STATE_DIR
from realcli_session.evidence.protected import SECONDS
from realcli_session.phases.archive import archive, archive_delta
from realcli_session.phases.attempt import Attempt, Happening, need
from realcli_session.phases.limits import (
    QUIESCE_GRACE,
    QUIESCE_KILL,
    STATE_BYTES,
    STATE_ENTRIES,
    STATE_SECONDS,
    STOP_GRACE,
    WEDGED_SECONDS,
)
from realcli_session.phases.table import Cause
from realcli_session.runner.errors import RunnerError, RunnerLost, StateTooLarge

MAX_LISTED = 200
MAX_NAME = 300


async def quiesce(attempt: Attempt) -> Happening:
    """The body of the stage: stop → last scan → quiesce → final snapshot → state. QUIESCED, or what kept the state from us."""
    attempt.writer.emit("session", PhaseChange(phase="quiesce"))
    note_limit(attempt)
    if attempt.gateway is not None:
        attempt.gateway.refuse_all("work_over")
    runner = need(attempt.runner)
    try:
        async with not_wedged(STOP_GRACE, "stop the agent program"):
            if attempt.adapter is not None:
                await attempt.adapter.stop(grace=STOP_GRACE)
        async with not_wedged(0.0, "look at the watched paths"):
            if attempt.watch is not None:
                await attempt.watch.finish()
        async with not_wedged(QUIESCE_GRACE + QUIESCE_KILL, "stop everything"):
            report = await runner.quiesce(grace=QUIESCE_GRACE, kill=QUIESCE_KILL)
            if attempt.commands is not None:
                await attempt.commands.settle()
        attempt.writer.emit(
            "runner",
            Quiesce(
                stopped=[_brief(" ".join(p.argv)) for p in report.found[:MAX_LISTED]],
                survivors=[_brief(" ".join(p.argv)) for p in report.survivors[:MAX_LISTED]],
            ),
        )
        if report.survivors or not report.proven:
            left = ", ".join(f"{p.pid} {' '.join(p.argv)[:80]}" for p in report.survivors[:5]) or "not proven"
            return Cause.QUIESCE_REFUSED, f"after SIGKILL there still runs: {left}"
        async with not_wedged(SECONDS, "look at its own files"):
            touched = await attempt.protected.changed() if attempt.protected is not None else []
        if touched:
            more = f" and {len(touched) - 5} more" if len(touched) > 5 else ""
            return Cause.TAMPERED, f"changed: {', '.join(_brief(path) for path in touched[:5])}{more}"
        async with not_wedged(0.0, "read the contract paths"):
            await attempt.snapshot("final")
        if is_valid(need(attempt.progress.reason)):
            await _store_state(attempt)
    except RunnerLost as lost:
        return Cause.RUNNER_LOST, lost.reason
    except StateTooLarge as error:
        return Cause.STATE_TOO_LARGE, f"{error.limit} at {error.path}: {error}"
    except RunnerError as error:
        return Cause.RUNNER_LOST, f"the runner could not do its part: {error}"
    except TimeoutError:
        return Cause.STATE_TOO_LARGE, f"the state could not be read within {STATE_SECONDS:g} s"
    return Cause.QUIESCED, ""


@contextlib.asynccontextmanager
async def not_wedged(seconds: float, what: str) -> AsyncIterator[None]:
    """RunnerLost if the block takes more than `seconds` and a margin: a runner that does not do its part is none."""
    try:
        async with asyncio.timeout(seconds + WEDGED_SECONDS) as limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise RunnerLost(f"it did not {what} within {seconds + WEDGED_SECONDS:g} s") from None
        raise


def note_limit(attempt: Attempt) -> None:
    """One Limit event if a limit ended the work, with both times."""
    trial, clock = attempt.trial, attempt.clock
    match attempt.progress.limit:
        case "turns":
            turns = trial.lock.spec.limits.turns
            measured = str(turns + 1)
            attempt.writer.emit("session", Limit(limit="turns", allowed=str(turns), measured=measured))
        case "deadline":
            attempt.writer.emit(
                "session", Limit(limit="deadline", allowed=f"{trial.deadline:g}s", measured=f"{clock.working:.3f}s")
            )
        case "wall":
            attempt.writer.emit("session", Limit(limit="wall", allowed=f"{trial.wall:g}s", measured=f"{clock.wall:.3f}s"))
        case "budget":
            budget, cost = need(trial.lock.spec.limits.trial_budget), need(attempt.gateway).cost_usd
            spent = "unknown" if cost is None else f"{cost} USD"
            attempt.writer.emit("session", Limit(limit="budget", allowed=f"{budget.usd} USD", measured=spent))
        case "output":
            allowed, measured = need(attempt.excess)
            attempt.writer.emit("session", Limit(limit="output", allowed=allowed, measured=measured))
        case None:
            pass


async def _store_state(attempt: Attempt) -> None:
    target = attempt.settings.spool / "state.tar.zst"
    runner, limits = need(attempt.runner), {"max_bytes": STATE_BYTES, "max_entries": STATE_ENTRIES}
    async with asyncio.timeout(STATE_SECONDS):
        if attempt.trial.task.trust == "system":
            made = await archive_delta(runner, attempt.baseline, target, exclude=[STATE_DIR], **limits)
        else:
            made = await archive(runner, attempt.trial.task.artifacts, target, exclude=[STATE_DIR], **limits)
    attempt.state = f"sha256:{made.sha256}"
    attempt.files.append(("state.tar.zst", made.path))
    attempt.writer.emit(
        "session",
        StateStored(
            digest=attempt.state,
            size=made.size,
            files=made.report.entries,
            missing=[_brief(path) for path in made.report.missing[:MAX_LISTED]],
            skipped=[_brief(f"{path}: {why}") for path, why in made.report.skipped[:MAX_LISTED]],
        ),
    )


def _brief(text: str) -> str:
    """An agent chooses names and arguments: a line of the ledger has room for all of them only if each is short."""
    return text if len(text) <= MAX_NAME else text[:MAX_NAME] + "…"
