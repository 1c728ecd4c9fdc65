"""The order of admission: a permutation whose beginnings are fair and whose groups complete early."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.api.plan import Plan, PlanConfiguration, PlanTask
from realcli_operator.reconcile.order import interleaved, order_of

FACTORS = st.tuples(st.integers(1, 12), st.integers(1, 4), st.integers(1, 6), st.integers(1, 2))


def coordinates(ordinal: int, factors: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """(task, repeat, configuration, mode) as indices."""
    _, repeats, configurations, modes = factors
    rest, mode = divmod(ordinal, modes)
    rest, configuration = divmod(rest, configurations)
    task, repeat = divmod(rest, repeats)
    return task, repeat, configuration, mode


def group_ends(factors: tuple[int, int, int, int]) -> list[float]:
    """When each group completes, as a share of the order."""
    ordinals = interleaved(*factors).ordinals
    last = {}
    for position, ordinal in enumerate(ordinals, 1):
        task, _, configuration, _ = coordinates(ordinal, factors)
        last[(task, configuration)] = position
    return sorted(position / len(ordinals) for position in last.values())


@given(FACTORS)
def test_it_is_a_permutation_with_its_inverse(factors: tuple[int, int, int, int]) -> None:
    found = interleaved(*factors)
    tasks, repeats, configurations, modes = factors
    assert sorted(found.ordinals) == list(range(tasks * repeats * configurations * modes))
    assert all(found.ordinals[found.rank[ordinal]] == ordinal for ordinal in found.ordinals)


@settings(max_examples=50)
@given(FACTORS)
def test_every_beginning_counts_all_configurations_evenly(factors: tuple[int, int, int, int]) -> None:
    counts: Counter[int] = Counter({configuration: 0 for configuration in range(factors[2])})
    for ordinal in interleaved(*factors).ordinals:
        counts[coordinates(ordinal, factors)[2]] += 1
        assert max(counts.values()) - min(counts.values()) <= 1


@given(FACTORS)
def test_a_group_completes_with_its_block_not_at_the_end(factors: tuple[int, int, int, int]) -> None:
    tasks, repeats, configurations, modes = factors
    ends = group_ends(factors)
    blocks = 1 + int((tasks - 1) ** 0.5)
    largest = -(-tasks // blocks) * repeats * configurations * modes / (tasks * repeats * configurations * modes)
    assert ends[0] <= largest, "the first group is complete when the first block is"


def test_the_full_benchmark_is_judged_all_the_way() -> None:
    ends = group_ends((101, 3, 33, 2))
    assert ends[0] < 0.12
    assert sum(end < 0.5 for end in ends) > 0.4 * len(ends)
    first = [coordinates(ordinal, (101, 3, 33, 2)) for ordinal in interleaved(101, 3, 33, 2).ordinals[: 33 * 10]]
    assert len({task for task, *_ in first}) == 10, "and the first look is at many tasks, of the whole list"
    assert max(task for task, *_ in first) > 90


@pytest.mark.parametrize(("tasks", "repeats"), [(1, 1), (3, 2)])
def test_indices_are_those_of_the_plan(a: Any, tasks: int, repeats: int) -> None:
    names = ("a.x", "b.x", "c.x")
    plan: Plan = a.plan(tasks, repeats).model_copy(
        update={
            "configurations": [
                PlanConfiguration(name=n, agent=n[0], program="claude-code", agent_version="1", model="x") for n in names
            ],
            "tasks": [PlanTask(name=f"t{i}", image="i", verifier_seconds=1) for i in range(tasks)],
        }
    )
    cells = [plan.coordinates(ordinal) for ordinal in order_of(plan).ordinals]
    assert [cell.configuration for cell in cells] == list(names) * (len(cells) // 3)
    assert all(len({(c.task, c.mode, c.repeat) for c in cells[i : i + 3]}) == 1 for i in range(0, len(cells), 3))
