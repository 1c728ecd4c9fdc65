"""`realcli judge review`: a person labels checks in a browser, and the labels come back to the judge's verdicts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

from realcli.judging.review import Labels
from realcli_cli.judge import app
from realcli_judge.inputs import Inputs
from realcli_judge.judging import judge_group
from tests.support.sealed_sweep import DEEDS, Deed, SealedSweep, write_sweep
from tests.support.stand_in import JUDGE, StandIn

HOSTILE = "</pre><script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">\u202e"


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SealedSweep:
    deeds = {**DEEDS, ("alpha", "COLLAB", 1): Deed(says=HOSTILE)}
    made = write_sweep(tmp_path / "store", deeds, judge=JUDGE)
    monkeypatch.setattr("realcli_judge.asking.open_backend", lambda model, environ: StandIn())
    for group in range(made.plan.groups):
        judge_group(Inputs(made.config, made.store, made.root, made.lock, made.plan), made.group_input(group), {})
    return made


def review(sweep: SealedSweep, *arguments: str) -> tuple[int, str]:
    folder = str(Path(sweep.directory) / sweep.root)
    result = CliRunner().invoke(app, ["review", folder, *arguments])
    return result.exit_code, result.output if result.exception is None else f"{result.output}{result.exception}"


def test_labels_from_the_page(sweep: SealedSweep, browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "review.html"
    status, said = review(sweep, "--out", str(out), "--per-dimension", "3")
    assert (status, out.is_file()) == (0, True), said
    context = browser.new_context(offline=True, accept_downloads=True)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(out.as_uri())
    count = page.locator("section").count()
    assert count > 5
    text = page.inner_text("body")
    for told in ("a stand-in answers in form", "program", "conflict"):  # nothing of what was judged
        assert told not in text
    page.fill("input[name=rater]", "Ada")
    for number in range(1, count):
        page.check(f'input[name=v{number}][value="1"]')
    with page.expect_download() as download:
        page.click("text=Save labels")
    saved = tmp_path / "labels.json"
    download.value.save_as(saved)
    assert f"{count - 1} of {count} checks are labelled" in page.inner_text("#told")
    assert (page.title(), errors) == ("Label checks", [])
    context.close()
    assert len(Labels.model_validate_json(saved.read_bytes()).labels) == count - 1

    status, said = review(sweep, "--labels", str(saved), "--store")
    assert status == 0, said
    assert "dimension" in said
    stored = [item.key for item in sweep.store.list(f"{sweep.root}/labels/")]
    assert len(stored) == 1
    assert re.search(r"/labels/[0-9a-f]{8}/labels-[0-9a-f]{8}\.json$", stored[0])
    assert review(sweep, "--labels", str(saved), "--store")[0] == 0  # the same labels are the same version
    other = tmp_path / "other.json"
    other.write_text(json.dumps(json.loads(saved.read_text()) | {"judge": "sha256:" + "0" * 64}))
    status, said = review(sweep, "--labels", str(other))
    assert status != 0
    assert "labels the judge sha256:000" in said


def test_what_is_not_there_is_said(sweep: SealedSweep, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    assert "is no file of labels" in review(sweep, "--labels", str(broken))[1]
    result = CliRunner().invoke(app, ["review", str(tmp_path)])
    assert "there is no sweep.json" in str(result.exception)
