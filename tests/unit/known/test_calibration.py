"""Error rates, their intervals and the gate."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import pytest

from realcli.benchmark.catalogue import load_catalogue
from realcli.judging.model import JudgeIdentity
from realcli.judging.run import Settings
from realcli.judging.session import Model
from realcli.known.calibration import Row, gate_of, judged, known_digest, rows_of, share, strata
from realcli.known.cases import known_cases
from realcli.known.gate import KNOWN_SET, Gate
from realcli.known.judges import Noisy, emulated
from realcli.known.model import Case, Truth
from realcli.scoring.agreement import errorless_labels_needed
from realcli.scoring.records import Verdict

CASES = known_cases()
SOME = [*(case for case in CASES if case.kind == "ideal"), *[case for case in CASES if case.kind != "ideal"][::4]]
"""All ideal runs, as S is of the whole tree, and every fourth of the others: a judge's errors show in fewer as well."""
IDENTITY = JudgeIdentity(kind="model", catalogue=load_catalogue().digest, operators="x", model="claude-judge", api="anthropic")


@cache
def gate(name: str, *, seed: int = 0, votes: int = 1) -> Gate:
    settings = Settings(Model("emulated", "anthropic"), votes)
    records = judged(SOME, settings, emulated(name, seed).over(SOME))
    return gate_of(SOME, records, IDENTITY, emulated=name)


def test_gates_are_held_against_the_set_as_it_is() -> None:
    assert known_digest(CASES) == KNOWN_SET, (
        "write the new digest down in realcli/known/gate.py: it closes every gate made before"
    )
    assert known_digest(SOME) != KNOWN_SET


def test_the_oracle_passes_the_gate() -> None:
    found = gate("oracle", votes=3)
    assert found.passed, found.told
    assert (found.s_ideal, found.alpha, found.disagreements) == ("1", 1.0, [])
    every = found.of("all")
    assert (every.false_failures.hits, every.misses.hits, every.unscored) == (0, 0, 0)
    assert Gate.model_validate_json(found.canonical()) == found


@pytest.mark.parametrize("name", ["noisy", "lazy"])
def test_a_bad_judge_does_not(name: str) -> None:
    found = gate(name)
    assert not found.passed
    assert found.disagreements


def test_votes_make_noise_smaller_and_their_agreement_tells_it() -> None:
    one, three = gate("noisy", seed=3).of("all"), gate("noisy", seed=3, votes=3)
    value = three.of("all").false_failures.value
    assert one.false_failures.value is not None
    assert value is not None
    assert value < one.false_failures.value
    assert three.alpha is not None
    assert 0.3 < three.alpha < 0.9  # two flips of ten in a hundred: far from 0, far from 1


def _recovers(seeds: range, cases: Sequence[Case]) -> tuple[int, int]:
    """In how many seeds the interval of the false failures, and that of the misses, holds the judge's true rate."""
    settings = Settings(Model("emulated", "anthropic"), votes=1)
    inside = [0, 0]
    for seed in seeds:
        records = judged(cases, settings, emulated("noisy", seed).over(cases))
        rows = [row for case, record in zip(cases, records, strict=True) for row in rows_of(case, record)]
        every = strata([(row, verdict) for row in rows for _, verdict in row.answers])[0]
        for at, found in enumerate((every.false_failures, every.misses)):
            inside[at] += found.low is not None and found.high is not None and found.low <= Noisy(0).rate <= found.high
    return inside[0], inside[1]


def test_the_rates_of_a_noisy_judge_are_recovered() -> None:
    assert min(_recovers(range(5), SOME[::3])) >= 4


@pytest.mark.slow
def test_the_rates_of_a_noisy_judge_are_recovered_in_ninety_of_a_hundred_seeds() -> None:
    assert min(_recovers(range(100), SOME)) >= 90


def test_the_gate_needs_as_many_labels_as_a_bound_of_four_percent_does() -> None:
    need = errorless_labels_needed(Fraction(1, 25))
    assert need == 74
    assert share(0, need).upper == pytest.approx(1 - 0.05 ** (1 / 74))
    assert (share(0, need).upper or 1) <= 0.04 < (share(0, need - 1).upper or 0)
    assert share(0, 0).value is None


def row(truth: Truth, verdict: Verdict, *, settled: bool = False, evidence: str = "trajectory") -> tuple[Row, Verdict]:
    return Row("c", "k", "U", evidence, "quote", truth, verdict, settled, (), ""), verdict


def test_what_counts_as_a_false_failure_and_as_a_miss() -> None:
    found = strata([row("1", "0"), row("1", "1"), row("n/a", "0"), row("n/a", "1"), row("0", "0"), row("0", "1"), row("0", "n/a"),
                    row("1", "unscored", evidence="both")])  # fmt: skip
    every = found[0]
    assert (every.name, every.false_failures.hits, every.false_failures.of) == ("all", 2, 4)
    assert (every.misses.hits, every.misses.of, every.unscored) == (2, 3, 1)
    both = next(one for one in found if one.name == "evidence:both")
    assert (both.false_failures.of, both.unscored) == (0, 1)


def test_a_judge_of_a_tested_models_family_is_told() -> None:
    few = SOME[:2]
    records = judged(few, Settings(Model("emulated", "anthropic"), 1), emulated("oracle").over(few))
    found = gate_of(few, records, IDENTITY, models=("claude-haiku", "gpt-x"))
    assert found.related == ["claude-haiku is of the judge's family (Anthropic)"]
