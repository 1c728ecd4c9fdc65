"""Which tasks run: categories, include, exclude, and a sample that is even, stable and grows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from realcli.benchmark.models import IndexTask
from realcli_session.plan.lock import ConfigurationRefused, build_lock
from realcli_session.plan.selection import sample

DIGEST = "sha256:" + "0" * 64
TASKS = {"a1": "security", "a2": "security", "b1": "games", "b2": "games", "b3": "games", "c1": "data"}


def lock(build: Any, benchmark: dict[str, Any], **spec: Any) -> Any:
    source = build.request().spec.benchmark.dump()
    request = build.request(benchmark=source | {"tasks": benchmark}, **spec)
    index = build.index(*(build.task(name, category=category) for name, category in TASKS.items()))
    return build_lock(request, index, DIGEST, lambda _: [], "realcli/0.1.0", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({}, ["a1", "a2", "b1", "b2", "b3", "c1"]),
        ({"categories": ["security", "data"]}, ["a1", "a2", "c1"]),
        ({"include": ["b3", "a1"]}, ["a1", "b3"]),
        ({"categories": ["data"], "include": ["b2"]}, ["b2", "c1"]),
        ({"exclude": ["b1", "c1"]}, ["a1", "a2", "b2", "b3"]),
        ({"categories": ["games"], "exclude": ["b1"]}, ["b2", "b3"]),
        ({"include": ["b1", "b2"], "exclude": ["b1"]}, ["b2"]),
    ],
)
def test_tasks_are_chosen(build: Any, asked: dict[str, Any], names: list[str]) -> None:
    made = lock(build, asked)
    assert [task.name for task in made.tasks] == names
    said = [warning for warning in made.warnings if warning.startswith("benchmark.tasks")]
    assert said == ([] if len(names) == 6 else [f"benchmark.tasks: {len(names)} of the 6 tasks of the benchmark"])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"include": ["a9"]}, r"spec\.benchmark\.tasks\.include: a9 is not in the benchmark; it has a1, a2, b1"),
        ({"exclude": ["zz"]}, r"spec\.benchmark\.tasks\.exclude: zz is not in the benchmark"),
        ({"categories": ["sport"]}, r"spec\.benchmark\.tasks\.categories: sport is not in .*; it has data, games, security"),
        ({"include": ["a1"], "exclude": ["a1"]}, r"spec\.benchmark\.tasks: no task is left"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(build: Any, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationRefused, match=message):
        lock(build, asked)


def test_a_sample_says_so(build: Any) -> None:
    made = lock(build, {}, sample={"tasks": 3})
    assert Counter(task.category for task in made.tasks) == {"security": 1, "games": 1, "data": 1}
    assert "sample: 3 of 6 tasks; the scores are those of a sample" in made.warnings
    assert len(lock(build, {}, sample={"tasks": 99}).tasks) == 6
    assert [w for w in lock(build, {}, sample={"tasks": 99}).warnings if w.startswith("sample")] == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), st.sampled_from("xyz"), min_size=1, max_size=30), st.data())
def test_a_sample_is_even_stable_and_grows(build: Any, given_: dict[str, str], data: st.DataObject) -> None:
    tasks: list[IndexTask] = [build.task(name, category=category) for name, category in given_.items()]
    size = data.draw(st.integers(1, len(tasks)))
    found = sample(tasks, size)
    names = [task.name for task in found]
    assert len(found) == size
    assert names == sorted(names)
    assert names == [task.name for task in sample(tasks[::-1], size)]
    assert set(names) <= {task.name for task in sample(tasks, size + 1)}
    of, taken = Counter(given_.values()), Counter(task.category for task in found)
    full = max(taken.values())
    assert all(taken[category] >= min(of[category], full - 1) for category in of)
