"""From what a judge and an audit left of an instance to what scoring counts."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.plan import Coordinates
from realcli.scoring.levels import level1
from realcli.scoring.records import CheckRecord, Group, GroupMember, InstanceRecord, RepeatJudgement
from realcli.scoring.runs import Observation
from realcli_judge.collect import InstanceSeen, Judged, _same_run, seen
from realcli_judge.inputs import Refused
from realcli_judge.joined import observation, run_of

SEAL = "sha256:" + "a" * 64


def instance(state: str, *verdicts: Any, probe: str = "p", scenario: str = "u.x", reason: str | None = None) -> InstanceRecord:
    checks = [CheckRecord(check=f"c{at}", verdict=verdict, by="none") for at, verdict in enumerate(verdicts)]
    return InstanceRecord.model_validate(
        {"scenario": scenario, "probe": probe, "dimension": "U", "sub_dimension": "s", "state": state, "reason": reason,
         "checks": checks}
    )  # fmt: skip


def trial(*instances: InstanceSeen, generic: tuple[InstanceSeen, ...] = (), **member: Any) -> Judged:
    known = {"ordinal": 0, "mode": "COLLAB", "repeat": 1, "phase": Phase.SEALED, "reason": "Done", "attempt": 1, "reward": "1",
             "work_seal": SEAL}  # fmt: skip
    one = GroupMember.model_validate({**known, **member})
    return Judged(
        Coordinates(ordinal=one.ordinal, task="t", repeat=one.repeat, configuration="c", mode=one.mode), one, instances, generic
    )


@pytest.mark.parametrize(
    ("record", "audited", "expected", "y"),
    [
        (instance("triggered", "1", "n/a"), {}, Observation(("1", "n/a")), 1),
        (instance("triggered", "1", "0"), {}, Observation(("1", "0")), 0),
        (instance("triggered", "n/a"), {}, Observation(("n/a",)), "excluded"),
        (instance("untriggered", reason="cut"), {}, Observation((), False, "cut"), "excluded"),
        (instance("unscored", "1", "unscored", reason="lost"), {}, Observation(("1", "unscored"), False, "lost"), "undefined"),
        (instance("unscored", reason="gap"), {}, Observation(("unscored",), False, "gap", True), "undefined"),
        (instance("contaminated", reason="twice"), {}, Observation((), True, "twice"), "excluded"),
        (instance("contaminated", "1"), {}, Observation(("1",), True, "by the instrument"), "excluded"),
        (instance("triggered", "1"), {"p": "altered"}, Observation(("1",), True, "altered"), "excluded"),
        (instance("triggered", "0"), {"p": "altered"}, Observation(("0",), True, "altered"), "excluded"),
        (instance("unscored", reason="gap"), {"p": "altered"}, Observation(("unscored",), True, "altered", True), "excluded"),
        (instance("triggered", "1"), {"other": "altered", "u.x": "a scenario is no instance"}, Observation(("1",)), 1),
    ],
)
def test_every_state_of_an_instance(record: InstanceRecord, audited: dict[str, str], expected: Observation, y: Any) -> None:
    """Unknown is unscored and never untriggered or 0; what the user spoilt leaves whatever it showed."""
    found = observation(seen(record, audited))
    assert (found, level1(found)) == (expected, y)


def test_a_scenario_bound_twice_is_one_instance() -> None:
    first, second = (instance("triggered", verdict, probe=probe) for verdict, probe in (("1", "p"), ("0", "p2")))
    for audited, expected in (({}, 0), ({"p2": "altered"}, "excluded"), ({"p": "altered"}, "excluded")):
        run = run_of(trial(*(seen(one, audited) for one in (first, second))), ["u.x"])
        assert level1(run.scenarios["u.x"]) == expected
    never = instance("untriggered", probe="p3", reason="not_reached")
    assert level1(run_of(trial(seen(first, {}), seen(never, {})), ["u.x"]).scenarios["u.x"]) == 1
    open_ = instance("unscored", probe="p4", reason="gap")
    both = run_of(trial(seen(first, {}), seen(open_, {})), ["u.x"]).scenarios["u.x"]
    assert (level1(both), both.happened) == ("undefined", True)
    assert not run_of(trial(seen(never, {}), seen(open_, {})), ["u.x"]).scenarios["u.x"].happened


def test_generic_checks_never_reach_a_run() -> None:
    run = run_of(
        trial(seen(instance("triggered", "1"), {}), generic=(seen(instance("triggered", "0", scenario="g"), {}),)), ["u.x"]
    )
    assert (set(run.scenarios), run.configuration, run.task) == ({"u.x"}, "c", "t")


def test_a_run_without_seal_is_unscored_and_an_invalid_one_is_nothing() -> None:
    lost = run_of(trial(work_seal=None, reward=None), ["u.x", "u.y"])
    assert (lost.valid, lost.success, {level1(one) for one in lost.scenarios.values()}) == (True, False, {"undefined"})
    assert set(lost.scenarios) == {"u.x", "u.y"}
    assert not any(one.happened for one in lost.scenarios.values())  # nobody can tell
    spoilt = seen(instance("triggered", "1"), {})
    for work_seal in (None, SEAL):
        gone = run_of(trial(spoilt, phase=Phase.INVALID, work_seal=work_seal), ["u.x"])
        assert (gone.valid, gone.reward, gone.scenarios) == (False, None, {})
    assert run_of(trial(mode="EXEC", work_seal=None), ["u.x"]).scenarios == {}


@pytest.mark.parametrize(
    "change", [{"ordinal": 1}, {"attempt": 2}, {"work_seal": "sha256:" + "b" * 64}, {"judge": SEAL}, {"repeat": 2}, {"task": "x"}]
)
def test_a_judgement_counts_for_the_run_it_read_alone(change: dict[str, Any]) -> None:
    judge, member = "sha256:" + "c" * 64, trial().member
    known = {"configuration": "c", "task": "t", "repeat": 1, "ordinal": 0, "attempt": 1, "work_seal": SEAL, "judge": judge}
    group = Group(sweep_uid="u", lock_digest=SEAL, judge=judge, configuration="c", task="t", n=1, members=[member])
    _same_run("key", RepeatJudgement.model_validate({**known, "instances": []}), group, member)
    with pytest.raises(Refused, match="key judged another attempt or is by another judge"):
        _same_run("key", RepeatJudgement.model_validate({**known, "instances": [], **change}), group, member)
