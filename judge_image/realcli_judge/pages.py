"""The pages: index.html and one page per trial. No script, no network, nothing of the agent's text is markup."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from realcli.api.outcomes import BY_REASON
from realcli_judge.hostile import visible
from realcli_judge.shown import ShownSection
from realcli_judge.summary import Number, Summary, TaskCell, TrialSummary

EFFECTS = {
    "Verified": "valid; the tests decide",
    "Agent": "valid, caused by the agent: tested if the state survived, else reward 0",
    "Retry": "invalid; tried again while attempts are left",
    "Final": "invalid; not tried again",
}


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
    found.filters |= {"visible": visible, "duration": duration, "signed": Number.signed}
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
    sections: list[ShownSection] | None,
    sweep: str,
    neighbours: tuple[int | None, int | None],
    templates: Environment,
) -> str:
    """The page of one trial; `sections`: its conversation, None where there is none to show.

    `neighbours`: ordinals of the trials before and after it that have a page.
    """
    row = BY_REASON.get(trial.reason or "")
    return templates.get_template("trial.html").render(
        t=trial,
        happened=row.happened if row is not None else "a reason this version does not know",
        sections=sections,
        sweep=sweep,
        before=neighbours[0],
        after=neighbours[1],
    )
