"""The example of docs/script.md is complete: it passes every check, and runs as the page says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.play import ready
from realcli.benchmark.script_models import Script
from realcli.benchmark.suite import check_task
from realcli.ledger.events import FileWrite, ToolCall
from realcli_session.user import lines, reading
from realcli_session.user.events import Close, Triggered
from realcli_session.user.imagined import check_delivery, play_all
from realcli_session.user.rehearsal import Rehearsal

PAGE = Path(__file__).parents[3] / "docs" / "script.md"
STARTER = Path(__file__).parents[3] / "benchmark" / "starter" / "tasks" / "site-settings"


def block(name: str) -> str:
    found = re.search(rf"^```\w+ {re.escape(name)}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None, name
    return found[1]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "rotate-log"
    shutil.copytree(STARTER, folder)
    (folder / "instruction.md").write_text(block("instruction.md"))
    for name in ("script.json", "oracle_contract.json"):
        (folder / "interaction" / name).write_text(block(name))
    config = (folder / "task.toml").read_text()
    config = config.replace('"/app/site.ini", "/app/summary.json"', '"/app/rotate.sh", "/app/rotate.conf", "/app/CHANGES.md"')
    config = re.sub(r"(?m)^watch = .*$", 'watch = ["/app/**"]', config)
    (folder / "task.toml").write_text(config)
    return folder


def test_the_example_passes_every_check(task: Path) -> None:
    checked, problems = check_task(task, load_catalogue())
    assert checked is not None
    assert [str(problem) for problem in problems] == []
    assert list(check_delivery(play_all(ready(checked.script, load_catalogue())))) == []


def example() -> Rehearsal:
    """The example, its first response stopped."""
    run = Rehearsal(ready(Script.model_validate_json(block("script.json")), load_catalogue())).start()
    calls = [ToolCall(call_id=f"c{n}", name="Bash", input={}) for n in range(6)]
    return run.work(FileWrite(path="/app/rotate.sh", after_turn=1, created=True), *calls)


def test_the_example_runs_as_the_page_says() -> None:
    run = example()
    while not run.state.ended:
        run.hand_over("I have done this part.")
    said = [f"{say.message_id} {say.source_ids[0]}" for say in run.said]
    closer = next(action for action in run.done if isinstance(action, Close))
    shown = [line.split("  ")[0] for line in block("run").splitlines()]
    assert [*said, f"{closer.message_id} closer"] == shown
    assert [action.instance for action in run.done if isinstance(action, Triggered)] == ["handoff"]


def test_the_asking_agent_gets_what_the_page_says() -> None:
    table = PAGE.read_text().partition("| it ends its response with |")[2].splitlines()[2:]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table if line.startswith("|")]
    run = example()
    for says, _ in rows[1:]:
        run.hand_over(says)
    shown = [re.findall(r"`(.*?)`", cell) for _, cell in rows]
    assert [list(say.source_ids) for say in run.said][1:] == shown[:-1]
    assert (run.state.ended, shown[-1]) == (True, ["closer"])


def test_the_page_names_the_fixed_sentences_and_every_bare_word() -> None:
    text = PAGE.read_text()
    for line in (lines.NEUTRAL, lines.REFUSAL, lines.LATER):
        assert f'"{line}"' in text
    listed = re.search(r"Bare words: `(.*?)`", text, re.DOTALL)
    assert listed is not None
    assert frozenset(listed[1].split()) == reading.BARE


def test_every_key_of_the_schema_is_on_the_page() -> None:
    schema: dict[str, Any] = json.loads((PAGE.parent / "schemas" / "script.schema.json").read_text())
    text = PAGE.read_text()
    keys = set(schema["properties"]) | set(schema["$defs"]["Probe"]["properties"]) | set(schema["$defs"]["Slice"]["properties"])
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []


def _read_as(sentence: str) -> str:
    found = reading.read(sentence)
    if not found.requests:
        open_ = any(part.endswith("?") or part.startswith("Let me know which") for part in reading.sentences(sentence))
        return "open" if open_ else "none"
    (request,) = found.requests
    if request.bare:
        return "bare"
    if request.wants == "authorisation":
        return "leave, for an action" if request.leave else "leave, for no action"
    return "information, or leave for an action" if request.leave else "information"


def test_the_sentences_of_the_page_are_read_as_it_says() -> None:
    page = PAGE.read_text()
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \|$", page.split("| sentence | read as |\n|---|---|\n")[1].split("\n\n")[0], re.MULTILINE
    )
    assert len(rows) >= 15
    assert [(sentence, _read_as(sentence)) for sentence, _ in rows] == rows
