"""The report in a real browser, from files, with hostile text in it: nothing runs, nothing is fetched, nothing is cut off."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from realcli.api.termination import parse_termination
from realcli_judge.__main__ import main
from realcli_judge.inputs import Inputs
from realcli_judge.reporting import write_report
from tests.support import judged_sweep
from tests.support.sealed_sweep import DEEDS, Deed, write_sweep

HOSTILE = (
    "<script>document.title='owned'</script></div></pre><img src=x onerror=\"document.title='owned'\">"
    "<a href='javascript:document.title=1'>x</a><svg onload=alert(1)><style>body{display:none}</style>"
    "<meta http-equiv=refresh content='0;url=https://example.org'>\x1b[2J\u202egnp.exe\u200b"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    deeds = {**DEEDS, ("alpha", "COLLAB", 1): Deed(says=HOSTILE, prints=HOSTILE + "\n" * 30 + "x" * 500)}
    sweep = write_sweep(folder / "store", deeds)
    log = folder / "log"
    arguments = ["--root", sweep.root, "--lock-digest", sweep.lock_digest]
    for group in range(sweep.plan.groups):
        assert main(["judge", *arguments], sweep.environ(group, log)) == 0
    assert main(["report", *arguments], sweep.environ(None, log)) == 0
    message = parse_termination(log.read_text())
    assert message is not None
    assert message.uri is not None
    return Path(message.uri.removeprefix("file://"))


class Watched:
    """A page, and everything it did that a report must not do."""

    def __init__(self, browser: Browser, width: int, scheme: str) -> None:
        self.page: Page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        self.faults: list[str] = []
        self.page.on("console", lambda message: self.faults.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.faults.append("dialog"), dialog.dismiss())[0])
        self.page.on("request", lambda request: self.faults.append(request.url) if not request.url.startswith("file:") else None)

    def open(self, path: Path) -> Page:
        self.page.goto(path.as_uri())
        return self.page


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_pages_are_still_and_fit(report: Path, browser: Browser, width: int, scheme: str) -> None:
    watched = Watched(browser, width, scheme)
    for path in (report / "index.html", *sorted((report / "trials").iterdir())):
        page = watched.open(path)
        assert page.title() != "owned"
        assert page.locator("script, img, iframe, link, form, base, foreignObject").count() == 0
        # Wide tables scroll inside their own box; the page itself never does.
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
        assert page.locator("main").is_visible()
    watched.page.close()
    assert watched.faults == []


def test_from_the_index_to_a_verdict_and_its_event(report: Path, browser: Browser) -> None:
    watched = Watched(browser, 1280, "light")
    page = watched.open(report / "index.html")
    page.get_by_role("link", name="first-00002").click()
    assert page.get_by_text("its content had not been shown").is_visible()
    page.get_by_role("row", name="reread-first").get_by_role("link").first.click()
    target = page.url.split("#")[1]
    assert page.locator(f"#{target}").get_by_text("written between requests").is_visible()
    page.get_by_role("link", name="← first").click()
    assert page.locator("#rq1").is_visible()
    assert watched.faults == []
    watched.page.close()


def test_hostile_text_reads_as_what_it_is(report: Path, browser: Browser) -> None:
    watched = Watched(browser, 1280, "dark")
    page = watched.open(report / "trials" / "00000.html")
    said = page.locator(".entry.agent .said").first
    assert said.inner_text().startswith("<script>document.title='owned'</script></div></pre><img")
    assert said.locator(".hid").all_inner_texts() == ["U+001B", "U+202E", "U+200B"]
    page.get_by_text("31 lines").click()
    assert page.locator("details[open] pre").is_visible()
    assert watched.faults == []
    watched.page.close()


def test_hostile_words_of_judge_and_audit_are_only_words(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotes, reasons, deviations and labels come from models: on every kind of page they are text, and nothing in them hides."""
    for name in ("SAID", "WHY", "FAULT"):
        monkeypatch.setattr(judged_sweep, name, HOSTILE)
    sweep = judged_sweep.write_judged(tmp_path)
    _, _, key = write_report(Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan))
    watched = Watched(browser, 390, "light")
    paths = [p for p in sorted((tmp_path / key).rglob("*.html")) if p.parent.name != "analyses"]
    kinds = {path.parent.name for path in paths}
    assert kinds >= {"configurations", "tasks", "side", "trials"}
    for path in paths:
        page = watched.open(path)
        assert page.title() != "owned"
        assert page.locator("script, img, iframe, link, form, base, foreignObject").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path.name
        assert not set(path.read_text()) & set("\x1b\u202e\u200b"), path.name
    page = watched.open(tmp_path / key / "trials" / "00002.html")
    assert page.locator(".quote").first.inner_text().startswith("<script>document.title='owned'</script>")
    watched.page.close()
    assert watched.faults == []
