"""The pages: index.html and one page per trial. No script, no network, nothing of the agent's text is markup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from realcli.api.outcomes import BY_REASON
from realcli.trajectory import Entry, Section, conversation
from realcli_judge.evidence import SealedAttempt
from realcli_judge.hostile import shorten, visible
from realcli_judge.summary import Summary, TaskCell, TrialSummary

SAID = 20_000  # characters shown of what user and agent say
SHOWN = 4_000  # of a call, a result, a note
FOLD_LINES = 14

EFFECTS = {
    "Verified": "valid; the tests decide",
    "Agent": "valid, caused by the agent: tested if the state survived, else reward 0",
    "Retry": "invalid; tried again while attempts are left",
    "Final": "invalid; not tried again",
}


class ShownEntry(NamedTuple):
    """An entry with its text resolved and shortened."""

    kind: str
    seq: int
    turn: int
    seconds: str
    title: str
    text: str
    lines: int
    folded: bool


class ShownSection(NamedTuple):
    """An exchange."""

    number: int
    entries: list[ShownEntry]


class TaskRow(NamedTuple):
    """A task of a configuration with its cells and their trials."""

    task: str
    configuration: str
    cells: list[tuple[TaskCell, list[TrialSummary]]]


def duration(text: str) -> str:
    """Seconds for people: 3s, 1m02s, 2h05m."""
    whole = int(float(text))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def environment() -> Environment:
    """Templates with escaping on and undefined names refused."""
    found = Environment(
        loader=PackageLoader("realcli_judge"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found.filters |= {"visible": visible, "duration": duration}
    return found


def index_page(summary: Summary, root: str, templates: Environment) -> str:
    """index.html. `root`: where the sweep lies in storage."""
    modes = sorted({cell.mode for cell in summary.tasks}, reverse=True)
    by_cell: dict[tuple[str, str, str], list[TrialSummary]] = {}
    for trial in summary.trials:
        by_cell.setdefault((trial.configuration, trial.task, trial.mode), []).append(trial)
    cells = {(cell.configuration, cell.task, cell.mode): cell for cell in summary.tasks}
    rows = [
        TaskRow(task, configuration, [(cells[configuration, task, mode], by_cell[configuration, task, mode]) for mode in modes])
        for task, configuration in sorted({(cell.task, cell.configuration) for cell in summary.tasks})
    ]
    return templates.get_template("index.html").render(
        s=summary,
        modes=modes,
        task_rows=rows,
        repeats=max(trial.repeat for trial in summary.trials),
        root=root,
        effects=EFFECTS,
        ended=Counter(trial.reason for trial in summary.trials),
    )


def trial_page(
    trial: TrialSummary,
    attempt: SealedAttempt | None,
    sweep: str,
    neighbours: tuple[int | None, int | None],
    templates: Environment,
) -> str:
    """The page of one trial; `neighbours`: ordinals of the trials before and after it that have a page."""
    row = BY_REASON.get(trial.reason or "")
    return templates.get_template("trial.html").render(
        t=trial,
        happened=row.happened if row is not None else "a reason this version does not know",
        sections=None if attempt is None else shown(conversation(attempt.trajectory), attempt.text),
        sweep=sweep,
        before=neighbours[0],
        after=neighbours[1],
    )


def shown(sections: list[Section], resolve: Callable[..., str]) -> list[ShownSection]:
    """Sections with their texts, shortened where they are long."""
    return [ShownSection(section.number, [_entry(entry, resolve) for entry in section.entries]) for section in sections]


def _entry(entry: Entry, resolve: Callable[..., str]) -> ShownEntry:
    text, _ = shorten(resolve(entry.text), SAID if entry.kind in ("user", "agent") else SHOWN)
    title, _ = shorten(entry.title, 300)
    lines = text.count("\n") + 1
    return ShownEntry(entry.kind, entry.seq, entry.turn, str(entry.seconds), title, text, lines, lines > FOLD_LINES)
