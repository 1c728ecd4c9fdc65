"""What the docs say of the agents, made from the drivers, the cases and the code that decides checks.

    python -m tests.integration.conformance.matrix      tables of docs/agents.md; realcli/checks/data/capabilities.json
    python -m realcli.checks.capabilities --write       then docs/capabilities.md

The suite proves it: a case has to pass for every agent but where its driver says otherwise, and then it has to fail; a case that
passes has seen the kinds of events that it claims. `test_docs.py` compares the files with what would be written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from realcli.checks.capabilities import of_conformance
from realcli_session.agents.registry import adapter_class
from tests.integration.conformance.cases import CASES
from tests.integration.conformance.drivers import Driver, drivers

DOCS = Path(__file__).resolve().parents[3] / "docs"
BEGIN, END = "<!-- {} -->", "<!-- end of {} -->"
CAPABILITIES = Path(__file__).resolve().parents[3] / "realcli" / "checks" / "data" / "capabilities.json"


def observed() -> str:
    """realcli/checks/data/capabilities.json: which kinds of events each agent shows, and the cases that prove it."""
    shown = [
        (driver.program, case.title, case.shows)
        for driver in drivers().values()
        for name, case in CASES.items()
        if name not in driver.differs
    ]
    kinds = {kind for case in CASES.values() for kind in case.shows}
    found = {
        driver.program: {kind for agent, _, of in shown if agent == driver.program for kind in of}
        for driver in drivers().values()
    }
    return (
        json.dumps(of_conformance(shown, {agent: sorted(kinds - of) for agent, of in found.items()}), indent=2, sort_keys=True)
        + "\n"
    )


# ------------------------------------------------------------------------------------------------------------------- markdown
def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(row) + " |"


def conformance() -> Iterator[str]:
    """Agents x cases, and a line for each cell that is no plain pass."""
    agents = drivers()
    notes: list[str] = []

    def cell(name: str, driver: Driver) -> str:
        differs = driver.differs.get(name)
        if differs is None:
            return "passes"
        notes.append(f"{driver.program}, {CASES[name].title}: {differs.why} ({differs.reference}).")
        return f"{differs.state} [{len(notes)}]"

    rows = [[case.title, *(cell(name, driver) for driver in agents.values())] for name, case in CASES.items()]
    yield from _table(["case", *(f"{driver.program} {driver.version}" for driver in agents.values())], rows)
    yield ""
    yield from (f"{number}. {note}" for number, note in enumerate(notes, 1))


def visible() -> Iterator[str]:
    """Which texts a user sees."""
    rows = [[name, adapter_class(name).visible_text] for name in drivers()]
    yield from _table(["agent", "the user sees"], rows)


def settings() -> Iterator[str]:
    """Every deviation from a program's defaults."""
    rows = [
        [entry.program, f"`{entry.setting}`", f"`{entry.value}`", entry.reason]
        for name in drivers()
        for entry in adapter_class(name).deviations()
    ]
    yield from _table(["agent", "setting", "value", "why"], rows)


def files() -> dict[Path, str]:
    """Path -> what it should hold."""
    agents = (DOCS / "agents.md").read_text(encoding="utf-8")
    for name, part in (("conformance", conformance()), ("visible text", visible()), ("settings", settings())):
        before, _, rest = agents.partition(BEGIN.format(name) + "\n")
        _, mark, after = rest.partition(END.format(name))
        if not mark:
            raise ValueError(f"docs/agents.md has no part between {BEGIN.format(name)} and {END.format(name)}")
        agents = "".join((before, BEGIN.format(name), "\n", "\n".join(part), "\n", mark, after))
    return {
        DOCS / "agents.md": agents,
        CAPABILITIES: observed(),
    }


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content, encoding="utf-8")
