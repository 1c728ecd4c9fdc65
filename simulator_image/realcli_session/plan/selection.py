"""Which tasks of the benchmark a sweep runs: `benchmark.tasks`, then `sample`. Pure, and the same for the same benchmark."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from typing import Generic, NamedTuple, Protocol, TypeVar

from realcli.api.sweep import SweepSpec


class Named(Protocol):
    """What is asked of a task here: of an index, or of a lock."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def category(self) -> str | None:
        """Its category; None: none."""


T = TypeVar("T", bound=Named)


class Selection(NamedTuple, Generic[T]):
    """The tasks, sorted by name; what is wrong with the question; what a reader of the results has to know."""

    tasks: list[T]
    problems: list[str]
    warnings: list[str]


def select(spec: SweepSpec, tasks: list[T]) -> Selection[T]:
    """The tasks that `spec` asks for."""
    asked = spec.benchmark.tasks
    problems = list(_unknown(spec, tasks))
    found = sorted(
        (
            task
            for task in tasks
            if (task.name in asked.include or task.category in asked.categories or not (asked.include or asked.categories))
            and task.name not in asked.exclude
        ),
        key=lambda task: task.name,
    )
    if tasks and not found and not problems:
        problems.append("spec.benchmark.tasks: no task is left; take out some of exclude")
    warnings = []
    if len(found) < len(tasks):
        warnings.append(f"benchmark.tasks: {len(found)} of the {len(tasks)} tasks of the benchmark")
    size = spec.sample.tasks
    if size is not None and size < len(found):
        warnings.append(f"sample: {size} of {len(found)} tasks; the scores are those of a sample")
        found = sample(found, size)
    return Selection(found, problems, warnings)


def sample(tasks: list[T], size: int) -> list[T]:
    """``size`` of the tasks, as evenly over the categories as there are; which of a category is decided by the digest of the
    name, so that a sample of fewer is a part of a sample of more."""
    of_category: dict[str, list[T]] = defaultdict(list)
    for task in sorted(tasks, key=lambda task: hashlib.sha256(task.name.encode()).digest()):
        of_category[task.category or ""].append(task)
    rounds = zip_longest(*(of_category[category] for category in sorted(of_category)))
    order = [task for found in rounds for task in found if task is not None]
    return sorted(order[:size], key=lambda task: task.name)


def _unknown(spec: SweepSpec, tasks: list[T]) -> Iterator[str]:
    asked = spec.benchmark.tasks
    names = {task.name for task in tasks}
    categories = {task.category for task in tasks if task.category}
    for field, given, known in (
        ("include", asked.include, names),
        ("exclude", asked.exclude, names),
        ("categories", asked.categories, categories),
    ):
        strange = sorted(set(given) - known)
        if strange:
            shown = ", ".join(sorted(known)[:20]) + (" …" if len(known) > 20 else "")
            yield f"spec.benchmark.tasks.{field}: {', '.join(strange)} is not in the benchmark; it has {shown or 'none'}"
