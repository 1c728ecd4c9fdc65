"""The index stays small: a row per configuration and per task, whatever the number of trials."""

from __future__ import annotations

from collections import Counter

import pytest

from realcli_judge.pages import SMALL, Site, environment
from realcli_judge.scores import Counted, summarise
from tests.support.synthetic_report import synthetic


def pages(configurations: int, tasks: int, repeats: int) -> dict[str, str]:
    made = synthetic(configurations, tasks, repeats)
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
