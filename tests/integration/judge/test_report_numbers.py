"""A crawler: every number of every page of the report stands in summary.json, at the place the page says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from realcli_judge.figures import Number
from realcli_judge.inputs import Inputs
from realcli_judge.pages import duration
from realcli_judge.reporting import write_report
from tests.support.judged_sweep import write_judged

CONSTANT = [
    r"reward [01]\b", r"less than 1\b", r"95 %", r"more than 10 points", r"3/4 threshold", r"22 sub-dimensions", r"as 0 / 1",
    r"1 − S", r"by repeat",
]  # fmt: skip
"""Digits of texts that say how things are counted, not what was counted."""
NUMERALS = """() => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (!/[0-9]/.test(node.data) || !node.parentElement.closest('main')) continue;
    if (node.parentElement.closest('[data-at], code, .name, svg, nav, h1')) continue;
    found.push(node.data.replace(/\\s+/g, ' ').trim());
  }
  return found;
}"""
PLACED = """() => [...document.querySelectorAll('[data-at]')].map(e =>
  ({at: e.dataset.at, text: e.textContent, value: e.tagName === 'DATA' ? e.getAttribute('value') : null}))"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("judged")
    sweep = write_judged(directory)
    _, _, key = write_report(Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan))
    return directory / key


@pytest.fixture(scope="module")
def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    found = browser.new_page()
    yield found
    found.close()


def at(summary: Any, pointer: str) -> Any:
    """RFC 6901."""
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        summary = summary[int(step)] if isinstance(summary, list) else summary[step]
    return summary


def says(value: Any, pointer: str, text: str) -> bool:
    """The text is what stands there."""
    if isinstance(value, dict):
        return text in (value["text"], Number.model_validate(value).signed())
    if isinstance(value, bool):
        return text == ("yes" if value else "no")
    if isinstance(value, int | float):
        return text.replace(",", "") == str(value)
    if pointer.endswith("/workingSeconds"):
        return text == duration(value)
    return text in (value, f"${value}", value.replace("_", " "))


def pages(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.html") if p.parent.name not in ("trials", "side"))


def test_every_number_is_what_the_summary_says_at_its_place(folder: Path, summary: dict[str, Any], page: Page) -> None:
    places: set[str] = set()
    for name in pages(folder):
        page.goto((folder / name).as_uri())
        for found in page.evaluate(PLACED):
            value = at(summary, found["at"])
            assert says(value, found["at"], found["text"]), (name, found, value)
            exact = value["exact"] if isinstance(value, dict) else str(value)
            assert found["value"] in (None, exact), (name, found, value)
            places.add(found["at"])
    assert len(places) > 900
    for wanted in ("/configurations/0/paired/deltaR", "/audits/1/checks/1/rate", "/judge/byJudge", "/taskList/1/passToFail"):
        assert wanted in places


def test_no_number_stands_without_its_place(folder: Path, summary: dict[str, Any], page: Page) -> None:
    names = {c["name"] for c in summary["configurations"]} | {t["name"] for t in summary["trials"]}
    for name in pages(folder):
        page.goto((folder / name).as_uri())
        for text in page.evaluate(NUMERALS):
            left = text
            for known in sorted(names, key=len, reverse=True):
                left = left.replace(known, "")
            for constant in CONSTANT:
                left = re.sub(constant, "", left)
            assert not re.search(r"\d", left), (name, text)


def test_marks_of_charts_say_numbers_of_the_summary(folder: Path, summary: dict[str, Any], page: Page) -> None:
    written = json.dumps(summary)
    page.goto((folder / "index.html").as_uri())
    said = page.evaluate("[...document.querySelectorAll('svg a [aria-label]')].map(e => e.getAttribute('aria-label'))")
    assert len(said) >= 10
    for text in said:
        for number in re.findall(r"\d+\.\d+", text):
            assert f'"{number}"' in written or f'"${number}"' in written, text
