"""The table of ends: laws that hold for every combination of facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.api.outcomes import BY_REASON, OUTCOMES, Cause, Effect, Phase, effect_of, is_valid
from realcli_operator.reconcile.endfacts import without_seal
from realcli_operator.reconcile.endmodel import (
    ContainerFacts,
    EndFacts,
    Evicted,
    Overdue,
    Refused,
    Said,
    Seal,
    Stand,
    Taken,
    Vanished,
    Work,
)
from realcli_operator.reconcile.endrows import GAP, ROWS
from realcli_operator.reconcile.ends import End, end_of, is_fault

VALID = [row.reason for row in OUTCOMES if is_valid(row.reason)]
NOT_VALID = [row.reason for row in OUTCOMES if row.effect in (Effect.RETRY, Effect.FINAL)]
NOTED = [row.reason for row in OUTCOMES if row.reason not in ("Suspended", "BreakerOpen", "Cancelled", "VerifierFault")]

containers = st.builds(
    ContainerFacts,
    stand=st.sampled_from(Stand),
    reason=st.sampled_from(["", "Completed", "Error", "OOMKilled", "StartError", "ContainerStatusUnknown", "something new"]),
    exit_code=st.sampled_from([None, 0, 1, 128, 137, 143, 255]),
)


def rarely(strategy: st.SearchStrategy[Any], default: Any) -> st.SearchStrategy[Any]:
    """Mostly the default: rows far down in the table are reached too."""
    return st.sampled_from([False, False, False, False, True]).flatmap(lambda drawn: strategy if drawn else st.just(default))


@st.composite
def any_facts(draw: st.DrawFn, work: Work | None = None) -> EndFacts:
    """Facts as a projection can make them, in every combination."""
    chosen = work or draw(st.sampled_from(Work))
    vanished = draw(rarely(st.sampled_from(Vanished), Vanished.NO)) if chosen is Work.WORK else Vanished.NO
    if vanished is not Vanished.NO:
        noted = draw(st.sampled_from([None, *NOTED]))
        if draw(st.booleans()):
            return EndFacts(vanished=vanished, finished=False, noted=noted)
        sealed_as = draw(st.sampled_from([None, *BY_REASON]))
        return without_seal(noted, sealed_as=sealed_as, anchor=draw(st.sampled_from([None, "sha256:5"])), said="", text="")
    said = draw(
        st.sampled_from([Said.NOTHING, Said.SEALED, Said.INVALID] if chosen is Work.WORK else [Said.NOTHING, Said.NO_VERDICT])
    )
    reasons = {Said.SEALED: VALID, Said.INVALID: NOT_VALID, Said.NO_VERDICT: [None, "nonsense", *BY_REASON]}
    return EndFacts(
        work=chosen,
        finished=draw(st.booleans()),
        scheduled=draw(st.booleans()),
        deadline=draw(rarely(st.booleans(), False)),
        evicted=draw(rarely(st.sampled_from(Evicted), Evicted.NO)),
        taken=draw(rarely(st.sampled_from(Taken), Taken.NO)),
        refused=draw(rarely(st.sampled_from(Refused), Refused.NO)),
        strange=draw(rarely(st.booleans(), False)),
        deleting=draw(rarely(st.booleans(), False)),
        untrusted=draw(containers),
        session=draw(containers),
        init_failed=draw(rarely(st.booleans(), False)),
        trouble=draw(rarely(st.sampled_from(["ImageUnavailable", "ConfigurationError", "SetupTimeout"]), None)),
        said=said,
        said_reason=draw(st.sampled_from(reasons[said])) if said in reasons else None,
        idle=draw(st.booleans()),
        noted=draw(st.sampled_from([None, *NOTED])),
        overdue=draw(rarely(st.sampled_from(Overdue), Overdue.NO)),
    )


def final(facts: EndFacts) -> End:
    """The end as it is when storage turns out to hold nothing."""
    end = end_of(facts)
    if facts.work is Work.WORK and end.phase is Phase.VERIFYING:
        return end_of(without_seal(end.reason, sealed_as=None, anchor=None, said="", text=""))
    return end


@settings(max_examples=120, deadline=None)
@given(facts=any_facts())
def test_every_combination_is_decided(facts: EndFacts) -> None:
    end = end_of(facts)
    assert end.reason in BY_REASON
    assert end.row in [row.name for row in ROWS]
    assert end.retry == (end.phase is Phase.PENDING)
    if facts.work is Work.VERIFY:
        assert end.phase is Phase.VERIFYING, "a verify pod alone neither ends a trial nor gives it a new attempt"
    else:
        assert final(facts).phase in (Phase.SEALED, Phase.PENDING, Phase.INVALID), "storage is asked once"


@settings(max_examples=120, deadline=None)
@given(facts=any_facts(Work.WORK))
def test_what_the_agent_causes_counts_and_nothing_else_does(facts: EndFacts) -> None:
    for end in (end_of(facts), final(facts)):
        assert (end.cause is Cause.AGENT) == is_valid(end.reason)
        if end.cause is Cause.AGENT:
            assert not end.retry
        if end.phase is Phase.SEALED:
            assert effect_of(end.reason) is Effect.AGENT, "an end that only a seal can prove is never sealed without one"


HOSTILE = st.fixed_dictionaries(
    {
        "untrusted": st.builds(
            ContainerFacts,
            stand=st.sampled_from([Stand.RUNNING, Stand.ENDED]),
            reason=st.sampled_from(["", "Completed", "Error", "OOMKilled"]),
            exit_code=st.integers(0, 255),
        ),
        "evicted": st.sampled_from([Evicted.NO, Evicted.AGENT_LIMIT]),
    }
)


@settings(max_examples=150, deadline=None)
@given(facts=any_facts(Work.WORK), hostile=HOSTILE)
def test_nothing_the_agent_does_turns_an_end_into_a_new_attempt(facts: EndFacts, hostile: dict[str, Any]) -> None:
    """Whatever an honest end would be: its own container's end and its own disk use give it no attempt that it had not."""
    honest = replace(facts, untrusted=replace(facts.untrusted, stand=Stand.RUNNING, reason=""), idle=False, evicted=Evicted.NO)
    if honest.vanished is not Vanished.NO or honest.session.stand is Stand.ABSENT:
        return  # no agent has run beside a session
    before, after = final(honest), final(replace(honest, **hostile))
    assert not (after.retry and not before.retry), (before, after)
    if after.retry and before.retry:
        assert effect_of(after.reason) is not Effect.HELD or effect_of(before.reason) is Effect.HELD, "nor a free one"


@pytest.mark.parametrize("said", [Said.NOTHING, Said.SEALED])
@pytest.mark.parametrize("how", ["OOMKilled", "disk"])
def test_a_saboteur_that_runs_with_its_session_gets_none(said: Said, how: str) -> None:
    facts = EndFacts(
        session=ContainerFacts(Stand.ENDED, "Error", 137),
        untrusted=ContainerFacts(Stand.ENDED, how, 137),
        evicted=Evicted.AGENT_LIMIT if how == "disk" else Evicted.NO,
        said=said,
        said_reason="RunnerLost" if said is Said.SEALED else None,
    )
    end, last = end_of(facts), final(facts)
    assert end.phase is Phase.VERIFYING
    assert (last.phase, last.reason, last.cause) == (
        Phase.SEALED, {"OOMKilled": "AgentOutOfMemory", "disk": "AgentDiskLimit"}[how], Cause.AGENT,
    )  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(facts=any_facts())
def test_an_unknown_word_is_a_gap_unless_somebody_tells(facts: EndFacts) -> None:
    plain = replace(
        facts, strange=True, said=Said.NOTHING, said_reason=None, vanished=Vanished.NO, seal=Seal.UNREAD, evicted=Evicted.NO,
        taken=Taken.OTHER, refused=Refused.NO, deleting=False, deadline=False, overdue=Overdue.NO, text="pod x Failed",
    )  # fmt: skip
    end = end_of(plain)
    assert (end.row, end.reason, end.cause, end.gap) == (GAP, "PodLost", Cause.UNKNOWN, True)
    assert "pod x Failed" in end.message
    assert "strange=True" in end.message, "with its facts"


def test_rows_have_names_of_their_own_and_the_last_takes_all() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert names[-1] == GAP
    assert ROWS[-1].when(EndFacts())


RUNS, ENDED = ContainerFacts(Stand.RUNNING), ContainerFacts(Stand.ENDED, "Error", 1)
WAITS, KILLED = ContainerFacts(Stand.WAITING), ContainerFacts(Stand.ENDED, "OOMKilled", 137)
BOTH: dict[str, Any] = {"untrusted": ENDED, "session": ENDED}


def sealed(reason: str) -> dict[str, Any]:
    return BOTH | {"said": Said.SEALED, "said_reason": reason}


def invalid(reason: str) -> dict[str, Any]:
    return BOTH | {"said": Said.INVALID, "said_reason": reason}


def unread(noted: str | None, **values: Any) -> EndFacts:
    return without_seal(noted, **({"sealed_as": None, "anchor": None, "said": "", "text": ""} | values))


def gone(vanished: Vanished, noted: str | None = None) -> EndFacts:
    return EndFacts(vanished=vanished, finished=False, noted=noted)


VERIFY: dict[str, Any] = {"work": Work.VERIFY}
TOLD: dict[str, Any] = {"said": Said.NO_VERDICT, "said_reason": "SessionLost"}
EXAMPLES: list[tuple[str, EndFacts, Phase, str]] = [
    ("sealed, killed for memory", EndFacts(**sealed("RunnerLost") | {"untrusted": KILLED}), Phase.VERIFYING, "AgentOutOfMemory"),
    (
        "sealed, evicted for its own disk",
        EndFacts(**sealed("AgentCrashed"), evicted=Evicted.AGENT_LIMIT), Phase.VERIFYING, "AgentDiskLimit",
    ),
    ("sealed", EndFacts(**sealed("Completed") | {"untrusted": KILLED}), Phase.VERIFYING, "Completed"),
    ("session says why", EndFacts(**invalid("ProviderUnavailable")), Phase.PENDING, "ProviderUnavailable"),
    ("session says why", EndFacts(**invalid("StorageUnavailable")), Phase.VERIFYING, "StorageUnavailable"),
    ("session says why", EndFacts(**invalid("ModelMismatch")), Phase.INVALID, "ModelMismatch"),
    ("invalid seal", unread("NodeLost", sealed_as="SimulatorFailed"), Phase.PENDING, "SimulatorFailed"),
    ("announced seal is missing", unread("Completed", anchor="sha256:5"), Phase.PENDING, "StorageUnavailable"),
    ("no seal of a valid end", unread("Completed"), Phase.PENDING, "SessionLost"),
    ("no seal, pod explained", unread("AgentOutOfMemory"), Phase.SEALED, "AgentOutOfMemory"),
    ("no seal, pod explained", unread("Drained", sealed_as="SessionLost"), Phase.PENDING, "Drained"),
    ("invalid seal of a lost session", unread(None, sealed_as="SessionLost"), Phase.PENDING, "SessionLost"),
    ("no seal, pod gone", unread(None), Phase.PENDING, "PodLost"),
    ("gone, explained", gone(Vanished.YES, "NodeLost"), Phase.VERIFYING, "NodeLost"),
    ("gone while queued", gone(Vanished.QUEUED), Phase.VERIFYING, "Preempted"),
    ("gone", gone(Vanished.YES), Phase.VERIFYING, "PodLost"),
    (
        "node does not answer",
        EndFacts(untrusted=RUNS, session=RUNS, overdue=Overdue.DELETION, deleting=True, taken=Taken.EVICTION_API),
        Phase.VERIFYING, "NodeLost",
    ),
    ("session's disk limit", EndFacts(**BOTH, evicted=Evicted.SESSION_LIMIT), Phase.VERIFYING, "SessionLost"),
    ("session's disk limit", EndFacts(**BOTH, evicted=Evicted.AGENT_LIMIT, idle=True), Phase.VERIFYING, "SessionLost"),
    ("session's disk limit", EndFacts(evicted=Evicted.AGENT_LIMIT, untrusted=WAITS, session=WAITS), Phase.PENDING, "SessionLost"),
    ("agent's disk limit", EndFacts(**invalid("SessionLost"), evicted=Evicted.AGENT_LIMIT), Phase.SEALED, "AgentDiskLimit"),
    ("node pressure", EndFacts(**BOTH, evicted=Evicted.NODE), Phase.VERIFYING, "NodePressure"),
    ("node pressure", EndFacts(evicted=Evicted.OTHER), Phase.PENDING, "NodePressure"),
    ("stopped by the queue", EndFacts(**invalid("SessionLost"), taken=Taken.QUEUE, deleting=True), Phase.PENDING, "Preempted"),
    ("preempted", EndFacts(**BOTH, taken=Taken.SCHEDULER), Phase.VERIFYING, "Preempted"),
    ("preempted by a critical pod", EndFacts(**BOTH, taken=Taken.CRITICAL_POD), Phase.VERIFYING, "Preempted"),
    ("drained", EndFacts(**invalid("SessionLost"), taken=Taken.EVICTION_API, deleting=True), Phase.PENDING, "Drained"),
    ("node shut down", EndFacts(**BOTH, taken=Taken.SHUTDOWN), Phase.VERIFYING, "Drained"),
    ("tainted node", EndFacts(untrusted=RUNS, session=RUNS, taken=Taken.TAINT_MANAGER), Phase.VERIFYING, "NodeLost"),
    ("node gone", EndFacts(untrusted=RUNS, session=RUNS, taken=Taken.POD_GC), Phase.VERIFYING, "NodeLost"),
    ("collected before it had a node", EndFacts(taken=Taken.POD_GC, scheduled=False), Phase.PENDING, "PodLost"),
    ("refused by the node", EndFacts(refused=Refused.NODE), Phase.PENDING, "NodePressure"),
    ("refused by every node", EndFacts(refused=Refused.CONFIGURATION), Phase.INVALID, "ConfigurationError"),
    ("deleted, explained", EndFacts(**BOTH, deleting=True, noted="SessionLost"), Phase.VERIFYING, "SessionLost"),
    ("deleted, explained", EndFacts(session=WAITS, deleting=True, noted="Completed"), Phase.VERIFYING, "Completed"),
    ("deleted", EndFacts(**invalid("SessionLost"), deleting=True), Phase.PENDING, "PodLost"),
    ("verify says why", EndFacts(**VERIFY, **BOTH, said=Said.NO_VERDICT, said_reason="NoReward"), Phase.VERIFYING, "NoReward"),
    ("verify says why", EndFacts(**VERIFY, **BOTH, said=Said.NO_VERDICT, said_reason="a word"), Phase.VERIFYING, "VerifierFault"),
    ("verify over a disk limit", EndFacts(**VERIFY, **BOTH, evicted=Evicted.AGENT_LIMIT), Phase.VERIFYING, "AgentDiskLimit"),
    (
        "verify over the session's disk limit",
        EndFacts(**VERIFY, **BOTH, evicted=Evicted.SESSION_LIMIT), Phase.VERIFYING, "SessionLost",
    ),
    ("not scheduled", EndFacts(finished=False, scheduled=False, overdue=Overdue.PENDING), Phase.PENDING, "SetupTimeout"),
    ("cannot start", EndFacts(session=RUNS, untrusted=WAITS, trouble="ImageUnavailable"), Phase.PENDING, "ImageUnavailable"),
    ("cannot start", EndFacts(session=WAITS, trouble="ConfigurationError"), Phase.INVALID, "ConfigurationError"),
    ("init container failed", EndFacts(session=WAITS, untrusted=WAITS, init_failed=True), Phase.PENDING, "SetupTimeout"),
    ("not started", EndFacts(session=WAITS, untrusted=RUNS, overdue=Overdue.SETUP), Phase.PENDING, "SetupTimeout"),
    ("not started", EndFacts(session=WAITS, untrusted=WAITS, deadline=True), Phase.PENDING, "SetupTimeout"),
    ("memory of the node", EndFacts(session=KILLED, untrusted=KILLED), Phase.VERIFYING, "SessionLost"),
    ("agent's memory limit", EndFacts(session=ENDED, untrusted=KILLED), Phase.VERIFYING, "AgentOutOfMemory"),
    ("agent's memory limit", EndFacts(session=ENDED, untrusted=KILLED, deadline=True), Phase.VERIFYING, "AgentOutOfMemory"),
    ("session's memory limit", EndFacts(session=KILLED, untrusted=ENDED), Phase.VERIFYING, "SessionLost"),
    ("pod deadline", EndFacts(**BOTH, deadline=True), Phase.VERIFYING, "SessionLost"),
    ("verify out of sight", EndFacts(Work.VERIFY, session=ContainerFacts(Stand.UNSEEN)), Phase.VERIFYING, "NodeLost"),
    ("verify told to end", EndFacts(**VERIFY, **BOTH, **TOLD), Phase.VERIFYING, "NodeLost"),
    (
        "verify over a disk limit",
        EndFacts(**VERIFY, **BOTH, **TOLD, evicted=Evicted.AGENT_LIMIT), Phase.VERIFYING, "AgentDiskLimit",
    ),
    ("agent's memory limit", EndFacts(**VERIFY, **TOLD, session=ENDED, untrusted=KILLED), Phase.VERIFYING, "AgentOutOfMemory"),
    ("pod deadline", EndFacts(**VERIFY, **BOTH, **TOLD, deadline=True), Phase.VERIFYING, "SessionLost"),
    ("session out of sight", EndFacts(untrusted=ENDED, session=ContainerFacts(Stand.UNSEEN)), Phase.VERIFYING, "SessionLost"),
    ("session ended", EndFacts(**invalid("SessionLost") | {"untrusted": KILLED}, idle=True), Phase.PENDING, "SessionLost"),
    ("session ended", EndFacts(**BOTH), Phase.VERIFYING, "SessionLost"),
    ("session ended", EndFacts(session=ENDED, untrusted=WAITS), Phase.PENDING, "SessionLost"),
    (GAP, EndFacts(session=WAITS, untrusted=WAITS), Phase.PENDING, "PodLost"),
    (GAP, EndFacts(**BOTH, strange=True), Phase.VERIFYING, "PodLost"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "facts", "phase", "reason"), EXAMPLES, ids=[f"{row}: {reason}" for row, _, _, reason in EXAMPLES]
)
def test_what_a_row_decides(row: str, facts: EndFacts, phase: Phase, reason: str) -> None:
    end = end_of(facts)
    assert (end.row, end.phase, end.reason) == (row, phase, reason)


def test_every_row_has_an_example() -> None:
    assert {row.name for row in ROWS} == {row for row, _, _, _ in EXAMPLES}


def test_outcomes_say_who_causes_them() -> None:
    for row in OUTCOMES:
        assert (row.cause is Cause.AGENT) == (row.effect in (Effect.VERIFIED, Effect.AGENT)), row.reason
        assert is_fault(row.reason) == (row.cause is Cause.AGENT or row.reason in ("SessionLost", "VerifierFault"))
