"""The index stays small: a row per configuration and per task, whatever the number of trials."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from realcli.api.plan import plan_of
from realcli.api.sweep import Mode
from realcli_judge.pages import SMALL, Site, environment
from realcli_judge.scores import Counted, summarise
from tests.support.synthetic_report import synthetic


def pages(configurations: int, tasks: int, repeats: int, mode: Mode | None = None) -> dict[str, str]:
    """Pages of a synthetic sweep; with `mode` of that one alone."""
    made = synthetic(configurations, tasks, repeats)
    if mode is not None:
        lock = made.lock.model_copy(update={"modes": [mode]})
        plan = plan_of(lock, made.plan.root, made.plan.lock_digest)
        left = sorted((t for t in made.collected.trials.values() if t.cell.mode == mode), key=lambda t: t.member.ordinal)
        numbers = {trial.member.ordinal: ordinal for ordinal, trial in enumerate(left)}
        trials = {o: replace(t, member=t.member.model_copy(update={"ordinal": o})) for o, t in enumerate(left)}
        told = [t.model_copy(update={"ordinal": numbers[t.ordinal]}) for t in made.trials if t.mode == mode]
        made = made._replace(lock=lock, plan=plan, collected=replace(made.collected, trials=trials), trials=told)
    counted = Counted.of(made.lock, made.collected)
    summary = summarise(made.lock, made.plan, made.collected, counted, made.trials)
    return dict(Site(summary, made.collected, "s3://bucket/sweep", environment()).pages())


@pytest.mark.slow
def test_a_large_sweep_is_told_in_pages() -> None:
    found = pages(6, 26, 1)
    assert SMALL < 6 * 26
    kinds = Counter(name.split("/")[0] for name in found)
    assert (kinds["index.html"], kinds["configurations"], kinds["tasks"]) == (1, 6, 26)
    assert "trials/" not in found["index.html"]
    assert found["index.html"].count("<tr") < 25 * 6 + 2 * 26 + 100  # rows by configuration, by task, and the legends
    for ordinal in (0, 100, 6 * 26 * 2 - 1):  # every trial stands on the page of its configuration and of its task
        assert sum(f"trials/{ordinal:05d}.html" in page for name, page in found.items() if name != "index.html") >= 2


def test_a_small_sweep_lists_its_trials_on_the_index() -> None:
    assert "trials/00003.html" in pages(1, 2, 1)["index.html"]


@pytest.mark.parametrize("mode", ["EXEC", "COLLAB"])
def test_a_sweep_of_one_mode_and_one_repeat_compares_nothing(mode: Mode) -> None:
    index = pages(1, 3, 1, mode)["index.html"]
    assert "cannot be compared" in index
    assert not re.search(r'id="flips"|#flips|paired/|Pairs', index)
    assert "not run" in index.split('id="tasks"')[0]  # the other mode
    assert ('id="collaboration"' in index) is (mode == "COLLAB")
