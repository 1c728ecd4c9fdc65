"""Accepted by use: ten questions a person has, answered from the pages alone by clicking from index.html."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from realcli_judge.inputs import Inputs
from realcli_judge.reporting import write_report
from tests.support.judged_sweep import FAULT, SAID, WHY, write_judged


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("judged")
    sweep = write_judged(directory)
    _, _, key = write_report(Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan))
    return directory / key


@pytest.fixture
def page(folder: Path, browser: Browser) -> Iterator[Page]:
    """The index, watched: a report that complains, asks the network or runs something fails the test."""
    found = browser.new_page(viewport={"width": 1280, "height": 900})
    faults: list[str] = []
    found.on("console", lambda message: faults.append(message.text))
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("request", lambda request: faults.append(request.url) if not request.url.startswith("file:") else None)
    found.goto((folder / "index.html").as_uri())
    yield found
    found.close()
    assert faults == []


def row(page: Page, section: str, *words: str):  # type: ignore[no-untyped-def]
    """The row with these words in the first table after a heading."""
    table = page.locator(f"#{section} ~ div table").first
    found = table.locator("tbody tr")
    for word in words:
        found = found.filter(has_text=word)
    return found.first


def trial(page: Page, configuration: str, task: str, mode: str, repeat: int) -> None:
    """Open a trial as a person does: by the pip of its repeat on the page of its configuration."""
    row(page, "main", configuration).get_by_role("link", name=configuration, exact=True).click()
    row(page, "tasks", task).get_by_title(f"{mode}, repeat {repeat}:").click()


def test_which_task_regressed(page: Page) -> None:
    page.get_by_role("link", name="Tasks", exact=True).click()
    expect(row(page, "tasks", "beta")).to_contain_text("regressed")
    expect(row(page, "tasks", "alpha")).not_to_contain_text("regressed")
    row(page, "tasks", "beta").get_by_role("link", name="beta").click()
    expect(page.get_by_text("0 turn from failure to success with a user, 2 the other way round")).to_be_visible()


def test_why_a_trial_got_0_on_a_check(page: Page) -> None:
    trial(page, "claude-code.sonnet", "beta", "COLLAB", 1)
    line = page.get_by_role("row", name="expansion-named")
    expect(line).to_contain_text("✗ 0")
    expect(line).to_contain_text(WHY)
    expect(line.locator(".quote")).to_have_text(SAID)
    line.get_by_role("link", name="exchange 1").click()
    heading = page.locator(page.url[page.url.index("#") :])
    expect(heading).to_have_text("Exchange 1")
    expect(page.locator(".entry.agent .said").first).to_have_text(SAID)


def test_was_the_user_at_fault(page: Page) -> None:
    page.get_by_role("link", name="Simulated user", exact=True).click()
    expect(row(page, "audit", "claude-code.opus")).to_contain_text("none")
    found = row(page, "audit", "claude-code.sonnet")
    expect(found).to_contain_text("S 1 of 12")
    found.get_by_role("link", name="claude-code.sonnet").click()
    page.locator("#audit ~ p").get_by_role("link", name="00002").click()
    expect(page.get_by_role("row", name="sim_no_early_disclosure")).to_contain_text(FAULT)
    expect(page.get_by_text("contaminated: not counted")).to_be_visible()
    page.get_by_role("row", name="sim_no_early_disclosure").get_by_role("link").click()
    assert "#e" in page.url


def test_what_it_cost(page: Page) -> None:
    page.get_by_role("link", name="Costs", exact=True).click()
    expect(row(page, "costs", "claude-code.opus", "COLLAB")).to_contain_text("$3.00")
    expect(row(page, "costs", "claude-code.opus", "EXEC")).to_contain_text("$1.00")
    expect(row(page, "costs", "Judge")).to_contain_text("$0.5000")
    trial(page, "claude-code.opus", "alpha", "COLLAB", 1)
    expect(page.locator("#task ~ dl").first).to_contain_text("$0.50")


def test_who_is_better_at_steering(page: Page) -> None:
    page.get_by_role("link", name="Collaboration", exact=True).click()
    opus = page.locator("#dimensions ~ div table").first.locator("tbody tr").filter(has_text="claude-code.opus")
    sonnet = page.locator("#dimensions ~ div table").first.locator("tbody tr").filter(has_text="claude-code.sonnet")
    expect(opus.locator("data").first).to_have_text("1.000")
    expect(sonnet.locator("data").first).to_have_text("0.000")
    sonnet.locator("data a").first.click()
    expect(page.locator(page.url[page.url.index("#") :])).to_have_text("Steerability")


def test_which_probes_were_never_triggered(page: Page) -> None:
    page.get_by_role("link", name="Scenarios", exact=True).click()
    page.get_by_role("link", name="Never triggered").click()
    items = page.locator("#never + ul li")
    expect(items).to_have_count(2)
    expect(items.first).to_contain_text(
        "u.plan.replan-after-obstacle in claude-code.opus: 6 scheduled, 0 triggered (not_reached 6)"
    )


def test_how_a_trial_ended(page: Page) -> None:
    trial(page, "claude-code.sonnet", "beta", "COLLAB", 2)
    ended = page.locator("#task ~ dl").first
    expect(ended).to_contain_text("TurnLimit: request n+1 was refused")
    expect(ended).to_contain_text("limit that fired: turns")
    expect(ended).to_contain_text("gave-up-or-budget")


def test_which_checks_did_a_judge_decide(page: Page) -> None:
    page.get_by_role("link", name="Judge", exact=True).first.click()
    expect(page.locator("#judge + dl")).to_contain_text("96: 36 by program, 60 by the judge")
    expect(page.locator("#judge + dl")).to_contain_text("uncalibrated")
    trial(page, "claude-code.opus", "alpha", "COLLAB", 1)
    expect(page.get_by_role("row", name="expansion-named")).to_contain_text("by the judge, 3 answers")
    expect(page.get_by_role("row", name="reread-first")).to_contain_text("by program")


def test_did_judge_and_program_disagree(page: Page) -> None:
    page.get_by_role("link", name="Judge", exact=True).first.click()
    page.locator("#judge + dl").get_by_role("link", name="1").click()
    page.locator("#conflicts ~ ul a").click()
    expect(page.get_by_role("row", name="user-edit-kept")).to_contain_text("the judge said otherwise")


def test_exec_against_collab_of_a_task(page: Page) -> None:
    row(page, "tasks", "alpha").get_by_role("link", name="alpha").click()
    line = page.locator("#outcome ~ div table").first.locator("tbody tr").filter(has_text="claude-code.sonnet")
    expect(line.locator("td").nth(1)).to_have_text("1 of 3")
    expect(line.locator("td").nth(4)).to_have_text("3 of 3")
    expect(page.get_by_text("R EXEC 0.667, R COLLAB 1.000; of 6 pairs 2 turn from failure to success")).to_be_visible()


def test_two_configurations_side_by_side(page: Page) -> None:
    row(page, "tasks", "alpha").get_by_role("link", name="1", exact=True).click()
    cells = page.locator(".side .cell:visible .said")
    assert SAID in cells.all_inner_texts()
    page.get_by_label("Right").select_option(label="claude-code.opus")
    assert SAID not in cells.all_inner_texts()
    page.get_by_label("Left").focus()
    page.keyboard.press("ArrowDown")
    assert SAID in page.locator(".side .cell:visible .said").all_inner_texts()
