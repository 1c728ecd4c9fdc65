"""A report of a full sweep: 33 configurations x 101 tasks x 3 repeats in both modes (19,998 trials).

Baseline of opening is what was promised (3 s), of writing a minute; a page is open when Chromium has fired `load` and drawn it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from realcli.ledger.events import AgentMessage, ToolCall, ToolResult  # noqa: E402
from realcli.trajectory import conversation  # noqa: E402
from realcli_judge.details import Detail  # noqa: E402
from realcli_judge.pages import Site, environment, trial_page  # noqa: E402
from realcli_judge.scores import Counted, summarise  # noqa: E402
from realcli_judge.shown import room_for, shown  # noqa: E402
from realcli_judge.summary import TrialSummary  # noqa: E402
from realcli_judge.tables import tables  # noqa: E402
from tests.support.ledgers import Ledger  # noqa: E402
from tests.support.synthetic_report import synthetic  # noqa: E402

OPEN, WRITE = 3.0, 60.0
PAGE = 1.0  # second: 19,998 of them in the six hours a Job may take
PAGES = ("index.html", "scenarios.html", "configurations/codex.model-00.html", "tasks/task-000.html")


def main() -> None:
    """Print the rows."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium in PATH (apt-get install chromium)")
    made = synthetic(33, 101)
    begin = time.perf_counter()
    counted = Counted.of(made.lock, made.collected)
    summary = summarise(made.lock, made.plan, made.collected, counted, made.trials)
    summarised = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        begin = time.perf_counter()
        for name, text in Site(summary, made.collected, "s3://bucket/sweep", environment()).pages():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        tables(summary, counted)
        written = time.perf_counter() - begin
        rows = [
            _row("summary of 19,998 trials, intervals and all tables", summarised, WRITE),
            _row("all pages but trials", written, WRITE),
            _trial(made.lock),
        ]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name in PAGES:
                size = (root / name).stat().st_size
                rows.append(_row(f"open {name} ({size // 1000} kB)", _opened(browser, root / name), OPEN))
            browser.close()
    print(json.dumps(rows))


def _trial(lock: Any) -> dict[str, Any]:
    """The page of a long run, in a report of so many."""
    ledger = Ledger().starts()
    for number in range(600):
        ledger.request().emit(AgentMessage(text="I look at it. " * 10))
        ledger.emit(ToolCall(call_id=f"c{number}", name="Bash", input={"command": "cat file"}))
        ledger.emit(ToolResult(call_id=f"c{number}", text="what <a> tool prints\n" * 200))
    trajectory = ledger.yields().ends().trajectory
    summary = TrialSummary(
        ordinal=0, name="x-00000", configuration=lock.configurations[0].name, task=lock.tasks[0].name, mode="COLLAB", repeat=1,
        phase="Sealed", reason="Completed", success=True, reward="1", attempt=1, invalid_attempts=0, ledger="s3://bucket/x",
    )  # fmt: skip
    templates = environment()
    begin = time.perf_counter()
    for _ in range(10):
        sections, fitted = shown(conversation(trajectory), str, room_for(19_998))
        page = trial_page(Detail(summary, sections, trajectory, fitted=fitted), lock, (None, 1), False, templates)
    return _row(f"page of a run of 600 turns ({len(page) // 1000} kB)", (time.perf_counter() - begin) / 10, PAGE)


def _opened(browser: Any, path: Path) -> float:
    """The middle of three."""
    found = []
    for _ in range(3):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        begin = time.perf_counter()
        page.goto(path.as_uri(), wait_until="load")
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        found.append(time.perf_counter() - begin)
        page.close()
    return sorted(found)[1]


def _row(name: str, ours: float, promised: float) -> dict[str, Any]:
    return {"name": name, "unit": "s", "ours": round(ours, 2), "baseline": promised, "ratio": round(ours / promised, 2)}


if __name__ == "__main__":
    main()
