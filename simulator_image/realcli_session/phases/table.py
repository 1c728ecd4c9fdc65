"""What ends a phase, and what the end counts as: the one table, and the pure function over it.

A session is in one stage and things happen to it (`Cause`). `TABLE` has a row for every pair; `advance` applies one. The
reason that was decided first stays, except that (a) what makes the state unusable replaces a valid reason, and (b) what makes
the evidence unusable replaces every reason. The work ends in `ENDED` on every path, through `SEAL` always.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple

from realcli.api.outcomes import is_valid


class Stage(StrEnum):
    """Where the session is. `ENDED`: the termination message is due."""

    SETUP = "setup"
    WORK = "work"
    QUIESCE = "quiesce"
    SEAL = "seal"
    ENDED = "ended"


class Cause(StrEnum):
    """What can happen."""

    READY = "ready"  # setup is done
    COMPLETED = "completed"  # EXEC: the first yield; COLLAB: the final claim was closed
    TURN_LIMIT = "turn-limit"  # the gateway refused request n+1
    DEADLINE = "deadline"  # working time is used up
    WALL = "wall"  # wall time is used up
    BUDGET = "budget"  # the trial's budget is spent
    FLOODED = "flooded"  # the agent's output is beyond the trial's limits
    PID_LIMIT = "pid-limit"  # the process limit of the container ended the work
    AGENT_EXIT = "agent-exit"  # the CLI ended by itself, or stopped talking
    AGENT_FAILED = "agent-failed"  # its request fails while a plain one is answered
    AGENT_REFUSED = "agent-refused"  # a safety refusal of the model was its last word
    TAMPERED = "tampered"  # the agent wrote to a protected path of the runner or the tests
    PROVIDER_FAILED = "provider-failed"  # a plain request is refused as well
    MODEL_MISMATCH = "model-mismatch"  # the provider answered with a model id that is not accepted
    SIMULATOR_FAILED = "simulator-failed"  # the simulated user has nothing it could say
    RUNNER_LOST = "runner-lost"
    SIGTERM = "sigterm"
    SETUP_TIMEOUT = "setup-timeout"
    SETUP_REFUSED = "setup-refused"  # the image cannot start the agent, the task cannot be set up
    STORAGE_ERROR = "storage-error"  # storage did not take what it has to
    QUIESCED = "quiesced"  # nothing of the agent runs, the state is stored (where it is wanted)
    QUIESCE_REFUSED = "quiesce-refused"
    STATE_TOO_LARGE = "state-too-large"
    SEALED = "sealed"
    SPOOL_FULL = "spool-full"  # the session's disk took no more, and the agent is within its limits of output
    SPOOL_FLOODED = "spool-flooded"  # ... and it is beyond them
    INTERNAL = "internal"  # a bug of ours


Replace = Literal["never", "valid", "always"]
LimitName = Literal["turns", "deadline", "wall", "budget", "output"]


class Next(NamedTuple):
    """One cell. `to` None: stay, nothing changes."""

    to: Stage | None
    reason: str | None = None
    replaces: Replace = "never"  # which reason, decided earlier, this one replaces
    state_lost: bool = False


STAY = Next(None)
_Q, _S = Stage.QUIESCE, Stage.SEAL

# What an end of the agent leads to, in setup (its program runs already) as in work.
_ENDS: dict[Cause, Next] = {
    Cause.COMPLETED: Next(_Q, "Completed"),
    Cause.TURN_LIMIT: Next(_Q, "TurnLimit"),
    Cause.DEADLINE: Next(_Q, "Deadline"),
    Cause.WALL: Next(_Q, "Deadline"),
    Cause.BUDGET: Next(_Q, "Budget"),
    Cause.FLOODED: Next(_Q, "AgentFloodedOutput"),
    Cause.PID_LIMIT: Next(_Q, "AgentPidLimit"),
    Cause.AGENT_EXIT: Next(_Q, "AgentCrashed"),
    Cause.AGENT_FAILED: Next(_Q, "AgentCrashed"),
    Cause.AGENT_REFUSED: Next(_Q, "AgentRefused"),
    Cause.TAMPERED: Next(_Q, "Tampered", state_lost=True),  # nothing its tests would say is worth anything: reward 0
    Cause.PROVIDER_FAILED: Next(_Q, "ProviderUnavailable"),
    Cause.MODEL_MISMATCH: Next(_Q, "ModelMismatch"),
    Cause.SIMULATOR_FAILED: Next(_Q, "SimulatorFailed"),
}
_TOO_LATE = {cause: STAY for cause in (*_ENDS, Cause.READY, Cause.SETUP_TIMEOUT, Cause.SETUP_REFUSED)}

TABLE: dict[Stage, dict[Cause, Next]] = {
    Stage.SETUP: {
        **_ENDS,
        Cause.READY: Next(Stage.WORK),
        Cause.RUNNER_LOST: Next(_S, "SetupTimeout", state_lost=True),  # before the agent's program: `set_up` tells
        Cause.SIGTERM: Next(_S, "SessionLost", state_lost=True),
        Cause.SETUP_TIMEOUT: Next(_S, "SetupTimeout", state_lost=True),
        Cause.SETUP_REFUSED: Next(_S, "ConfigurationError", state_lost=True),
        Cause.STORAGE_ERROR: Next(_S, "StorageUnavailable", state_lost=True),
        Cause.QUIESCED: STAY,
        Cause.QUIESCE_REFUSED: STAY,
        Cause.STATE_TOO_LARGE: Next(_S, "ConfigurationError", state_lost=True),  # s0: the task's own fault
        Cause.SEALED: STAY,
        Cause.SPOOL_FULL: Next(_S, "SessionLost", state_lost=True),
        Cause.SPOOL_FLOODED: Next(_S, "AgentFloodedOutput", state_lost=True),
        Cause.INTERNAL: Next(_S, "SessionLost", state_lost=True),
    },
    Stage.WORK: {
        **_ENDS,
        Cause.READY: STAY,
        Cause.RUNNER_LOST: Next(_S, "RunnerLost", state_lost=True),
        Cause.SIGTERM: Next(_S, "SessionLost", state_lost=True),  # no time to quiesce; closing the runner ends the agent
        Cause.SETUP_TIMEOUT: STAY,
        Cause.SETUP_REFUSED: STAY,
        Cause.STORAGE_ERROR: STAY,  # the spool holds it; tried again at the end
        Cause.QUIESCED: STAY,
        Cause.QUIESCE_REFUSED: STAY,
        Cause.STATE_TOO_LARGE: STAY,  # a snapshot of contract paths: the check on it is undecided
        Cause.SEALED: STAY,
        Cause.SPOOL_FULL: Next(_S, "SessionLost", state_lost=True),
        Cause.SPOOL_FLOODED: Next(_S, "AgentFloodedOutput", state_lost=True),
        Cause.INTERNAL: Next(_S, "SessionLost", state_lost=True),
    },
    Stage.QUIESCE: {
        **_TOO_LATE,
        Cause.MODEL_MISMATCH: Next(_Q, "ModelMismatch", "valid"),  # known with the answer the agent yielded on
        Cause.TAMPERED: Next(_S, "Tampered", "valid", state_lost=True),  # what the last look at protected paths shows
        Cause.RUNNER_LOST: Next(_S, "RunnerLost", "valid", state_lost=True),
        Cause.SIGTERM: STAY,  # the work is over and its result is worth the grace period
        Cause.STORAGE_ERROR: STAY,
        Cause.QUIESCED: Next(_S),
        Cause.QUIESCE_REFUSED: Next(_S, "QuiesceRefused", "valid", state_lost=True),
        Cause.STATE_TOO_LARGE: Next(_S, "StateTooLarge", "valid", state_lost=True),
        Cause.SEALED: STAY,
        Cause.SPOOL_FULL: Next(_S, "SessionLost", "always", state_lost=True),
        Cause.SPOOL_FLOODED: Next(_S, "AgentFloodedOutput", "valid", state_lost=True),
        Cause.INTERNAL: Next(_S, "SessionLost", "always", state_lost=True),
    },
    Stage.SEAL: {
        **_TOO_LATE,
        Cause.RUNNER_LOST: STAY,  # the state is out
        Cause.SIGTERM: STAY,
        Cause.STORAGE_ERROR: Next(Stage.ENDED, "StorageUnavailable", "always", state_lost=True),
        Cause.QUIESCED: STAY,
        Cause.QUIESCE_REFUSED: STAY,
        Cause.STATE_TOO_LARGE: STAY,
        Cause.SEALED: Next(Stage.ENDED),
        Cause.SPOOL_FULL: Next(Stage.ENDED, "SessionLost", "always", state_lost=True),  # not even in what was kept for the end
        Cause.SPOOL_FLOODED: Next(Stage.ENDED, "SessionLost", "always", state_lost=True),  # valid needs a seal
        Cause.INTERNAL: Next(Stage.ENDED, "SessionLost", "always", state_lost=True),
    },
    Stage.ENDED: dict.fromkeys(Cause, STAY),
}


def transition(stage: Stage, cause: Cause) -> Next:
    """The cell of the table."""
    return TABLE[stage][cause]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a session is and what has been decided about its end."""

    stage: Stage = Stage.SETUP
    reason: str | None = None
    detail: str = ""
    limit: LimitName | None = None
    state_lost: bool = False

    @property
    def valid(self) -> bool:
        """Whether the decided end counts; ValueError before one is decided."""
        if self.reason is None:
            raise ValueError("no end was decided yet")
        return is_valid(self.reason)


_LIMITS: dict[Cause, LimitName] = {
    Cause.TURN_LIMIT: "turns",
    Cause.DEADLINE: "deadline",
    Cause.WALL: "wall",
    Cause.BUDGET: "budget",
    Cause.FLOODED: "output",
    Cause.SPOOL_FLOODED: "output",
}


def advance(progress: Progress, cause: Cause, detail: str = "") -> Progress:
    """What the session is after `cause`; the same object where nothing changes. `detail` is for people."""
    cell = transition(progress.stage, cause)
    if cell.to is None:
        return progress
    moved = replace(progress, stage=cell.to, state_lost=progress.state_lost or cell.state_lost)
    if cell.reason is None or not _replaces(cell.replaces, progress.reason):
        return moved
    return replace(moved, reason=cell.reason, detail=detail, limit=_LIMITS.get(cause))


def _replaces(replaces: Replace, decided: str | None) -> bool:
    return decided is None or replaces == "always" or (replaces == "valid" and is_valid(decided))
