"""The pages: index, scenarios, one per configuration, task, trial, and side by side. No script, no network, no foreign markup.

Nothing but the index has to open a sweep: it stays small (a row per configuration and per task), and every number on it leads to
the page that lists what it counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from realcli.api.outcomes import BY_REASON
from realcli.api.plan import Lock
from realcli.scoring.levels import level1
from realcli.scoring.runs import Observation
from realcli_judge.aligned import Column, align, pieces
from realcli_judge.beside import Reference, ScenarioSummary
from realcli_judge.charts import charts
from realcli_judge.collect import Collected, InstanceSeen
from realcli_judge.details import Detail
from realcli_judge.figures import Number
from realcli_judge.hostile import honest, plain, visible
from realcli_judge.joined import observation
from realcli_judge.panels import DIMENSIONS
from realcli_judge.reading import FLAG_TITLES, leading
from realcli_judge.sheets import InstanceSheet, Places, collaboration, final_words, timeline, verdict_marks
from realcli_judge.summary import Summary, TaskCell, TrialSummary, set_up
from realcli_judge.tables import TABLES

EFFECTS = {
    "Verified": "valid; the tests decide",
    "Agent": "valid, caused by the agent: tested if the state survived, else reward 0",
    "Retry": "invalid; tried again while attempts are left",
    "Final": "invalid; not tried again",
}
SMALL = 150
"""The index lists (task, configuration) rows and trials up to about so many; beyond, pages of their own do."""

FAILED_TESTS = 100
"""Failed tests of a run that its page lists; the file beside its verify seal has all."""

Mark = tuple[int, str, str]
"""(ordinal, ✓ ✗ ? ○ ~ n/a, what it is)."""


class TaskRow(NamedTuple):
    """A task of a configuration with its cells, their trials and their place in summary.json."""

    task: str
    configuration: str
    cells: list[tuple[TaskCell, list[TrialSummary], str]]


class Listed(NamedTuple):
    """A sheet with its ids in the page."""

    id: str
    also: str | None
    sheet: InstanceSheet


def duration(text: str) -> str:
    """Seconds for people: 3s, 1m02s, 2h05m."""
    whole = int(float(text))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def grouped(value: object) -> str:
    """Integers of five digits and more in groups of three."""
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)


def pointer(name: str) -> str:
    """A name as a step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


@cache
def environment() -> Environment:
    """Templates with escaping on, hidden characters shown and undefined names refused. One for all: compiling takes longer than
    drawing."""
    found = Environment(
        loader=PackageLoader("realcli_judge"), autoescape=True, undefined=StrictUndefined, finalize=honest, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    found.filters |= {
        "visible": visible, "plain": plain, "duration": duration, "signed": Number.signed, "grouped": grouped, "pointer": pointer,
    }  # fmt: skip
    return found


class Site:
    """The pages of one summary. `collected`: whose instances the marks are of."""

    def __init__(self, summary: Summary, collected: Collected, root: str, templates: Environment) -> None:
        self.summary = summary
        self._root = root
        self._templates = templates
        self.modes = sorted({cell.mode for cell in summary.tasks}, reverse=True)
        self._cells: dict[tuple[str, str, str], tuple[TaskCell, str]] = {
            (cell.configuration, cell.task, cell.mode): (cell, f"/tasks/{at}") for at, cell in enumerate(summary.tasks)
        }
        self._by_cell: dict[tuple[str, str, str], list[TrialSummary]] = {}
        self._by_configuration: dict[str, list[TrialSummary]] = {}
        self._by_task: dict[str, list[TrialSummary]] = {}
        for trial in summary.trials:
            self._by_cell.setdefault((trial.configuration, trial.task, trial.mode), []).append(trial)
            self._by_configuration.setdefault(trial.configuration, []).append(trial)
            self._by_task.setdefault(trial.task, []).append(trial)
        self._scenarios: dict[str, dict[str, tuple[int, ScenarioSummary]]] = {}
        for at, one in enumerate(summary.scenarios):
            self._scenarios.setdefault(one.configuration, {})[one.scenario] = (at, one)
        self._judged = collected.trials
        self._refs = _refs(summary.reference)
        self.sides = {name: self._repeats_judged(name) for name in self._by_task}

    def pages(self) -> Iterable[tuple[str, str]]:
        """(path, page) of all but the trials' and the ones side by side; the one that leads to all others comes last."""
        if "COLLAB" in self.modes:
            yield "scenarios.html", self.scenarios()
        for number in range(len(self.summary.configurations)):
            yield f"configurations/{self.summary.configurations[number].name}.html", self.configuration(number)
        for number, one in enumerate(self.summary.analyses):
            yield f"analyses/{one.id}.html", self.analysis(number)
        for number in range(len(self.summary.task_list)):
            yield f"tasks/{self.summary.task_list[number].name}.html", self.task(number)
        yield "index.html", self.index()

    def index(self) -> str:
        """index.html."""
        s = self.summary
        names = [c.name for c in s.configurations]
        small = len(s.task_list) * len(names) <= SMALL
        rows = [self._row(task.name, name) for task in s.task_list for name in names] if small else []
        observed = {sub for c in s.configurations for sub in c.sub_dimensions}
        return self._render(
            "index.html",
            task_rows=rows,
            root=self._root,
            effects=EFFECTS,
            charts={"outcome": None, "profile": None, "flips": None, "costs": None} | charts(s),
            usd={
                c.name: [(mode, spent.usd) for mode, spent in c.spent.items() if spent.usd is not None] for c in s.configurations
            },
            sides=self.sides,
            sub_dimensions=[(d, sub) for d, subs in self._tree() for sub in subs if sub in observed],
            sim=list(dict.fromkeys(check.check for a in s.audits for check in a.checks)),
            trials=s.trials if len(s.trials) <= 2 * SMALL else [],
            tables=TABLES,
        )

    def analysis(self, number: int) -> str:
        """The page of a further reading."""
        a = self.summary.analyses[number]
        pages = {c.name: f"../configurations/{c.name}.html" for c in self.summary.configurations}
        pages |= {t.name: f"../tasks/{t.name}.html" for t in self.summary.task_list}

        def linked(text: str) -> Markup | None:
            return Markup('<a href="{}">{}</a>').format(pages[text], text) if text in pages else None

        return self._render("analysis.html", a=a, number=number, linked=linked, reference=self._refs[f"analysis.{a.id}"])

    def scenarios(self) -> str:
        """scenarios.html."""
        names = [c.name for c in self.summary.configurations]
        ids = {one.scenario: one.name for one in self.summary.scenarios}
        rows = [
            (id, name, [self._scenarios.get(configuration, {}).get(id, (0, None)) for configuration in names])
            for id, name in sorted(ids.items(), key=lambda item: list(DIMENSIONS).index(_dimension(self.summary, item[0])))
        ]
        conflicts = [
            (ordinal, self.summary.trials[ordinal].name, instance.scenario, check.check)
            for ordinal, trial in sorted(self._judged.items()) if trial.valid
            for instance in (*trial.instances, *trial.generic) for check in instance.checks if check.conflict
        ]  # fmt: skip
        return self._render(
            "scenarios.html",
            rows=rows,
            never=[(at, one) for at, one in enumerate(self.summary.scenarios) if not one.triggered],
            conflicts=conflicts,
        )

    def configuration(self, number: int) -> str:
        """The page of a configuration."""
        c = self.summary.configurations[number]
        trials = self._by_configuration[c.name]
        own = self._scenarios.get(c.name, {})
        audits = [(at, audit) for at, audit in enumerate(self.summary.audits) if audit.configuration == c.name]
        instances: dict[str, list[Mark]] = {id: [] for id in own}
        generic: dict[str, list[Mark]] = {}
        at_fault = []
        for trial in trials:
            judged = self._judged.get(trial.ordinal)
            if judged is None or not judged.valid:
                continue
            for mark, seen in _marks(trial, judged.instances):
                instances.setdefault(seen.scenario, []).append(mark)
            for mark, seen in _marks(trial, judged.generic):
                generic.setdefault(seen.scenario, []).append(mark)
            if judged.audit is not None and any(check.verdict == "0" for check in judged.audit.checks):
                at_fault.append(trial.ordinal)
        pairs: dict[tuple[str, int], dict[str, TrialSummary]] = {}
        for trial in trials:
            pairs.setdefault((trial.task, trial.repeat), {})[trial.mode] = trial
        changed = [
            (pair["EXEC"], pair["COLLAB"])
            for pair in pairs.values()
            if len(pair) == 2 and None not in (pair["EXEC"].success, pair["COLLAB"].success)
            and pair["EXEC"].success != pair["COLLAB"].success
        ]  # fmt: skip
        return self._render(
            "configuration.html",
            c=c,
            number=number,
            scenarios=list(own.values()),
            instances=instances,
            generic=[(at, one) for at, one in enumerate(self.summary.generic) if one.configuration == c.name],
            generic_instances=generic,
            task_rows=[self._row(task.name, c.name) for task in self.summary.task_list],
            changed=changed,
            tree=[(d, [sub for sub in subs if sub in c.sub_dimensions]) for d, subs in self._tree() if d in c.dimensions],
            audit=audits[0][1] if audits else None,
            audit_number=audits[0][0] if audits else 0,
            at_fault=at_fault,
            trials=trials,
        )

    def task(self, number: int) -> str:
        """The page of a task."""
        t = self.summary.task_list[number]
        names = [c.name for c in self.summary.configurations]
        heads: dict[str, None] = {}
        cells: dict[tuple[str, str], list[tuple[int, str, str, str]]] = {}
        for trial in self._by_task[t.name]:
            judged = self._judged.get(trial.ordinal)
            for mark, seen in _marks(trial, judged.instances) if judged is not None and judged.valid else ():
                heads.setdefault(seen.scenario)
                cells.setdefault((trial.configuration, seen.scenario), []).append((*mark, seen.scenario))
        return self._render(
            "task.html",
            t=t,
            number=number,
            sides=self.sides[t.name],
            rows=[self._row(t.name, name) for name in names],
            matrix_heads=list(heads),
            matrix=[(name, [cells.get((name, q), []) for q in heads]) for name in names] if heads else [],
            trials=self._by_task[t.name],
        )

    def _row(self, task: str, configuration: str) -> TaskRow:
        keys = [(configuration, task, mode) for mode in self.modes]
        return TaskRow(task, configuration, [(self._cells[k][0], self._by_cell[k], self._cells[k][1]) for k in keys])

    def _tree(self) -> list[tuple[str, list[str]]]:
        found: dict[str, list[str]] = {}
        for one in self.summary.scenarios:
            subs = found.setdefault(one.dimension, [])
            if one.sub_dimension not in subs:
                subs.append(one.sub_dimension)
        return [(d, found[d]) for d in DIMENSIONS if d in found]

    def _repeats_judged(self, task: str) -> list[int]:
        """Repeats that have a page side by side: of at least two configurations."""
        runs = Counter(t.repeat for t in self._by_task[task] if t.mode == "COLLAB" and t.phase == "Sealed" and t.work_seal)
        return sorted(repeat for repeat, count in runs.items() if count > 1)

    def _render(self, template: str, **values: object) -> str:
        return self._templates.get_template(template).render(
            s=self.summary,
            modes=self.modes,
            collab="COLLAB" in self.modes,
            dimensions=[d for d in DIMENSIONS if any(d in c.dimensions for c in self.summary.configurations)],
            dimension_names=DIMENSIONS,
            flag_titles=FLAG_TITLES,
            lead=leading(self.summary.configurations),
            refs=self._refs,
            **values,
        )


def trial_page(detail: Detail, lock: Lock, neighbours: tuple[int | None, int | None], side: bool, templates: Environment) -> str:
    """The page of one trial. `neighbours`: ordinals before and after it that have a page; `side`: it stands side by side too."""
    trial, judgement, audit = detail.summary, detail.judgement, detail.audit
    row = BY_REASON.get(trial.reason or "")
    places = Places(detail.sections)
    sheets = _listed("i-", collaboration(judgement.instances if judgement is not None else [], audit, places))
    return templates.get_template("trial.html").render(
        t=trial,
        agent=next(one for one in lock.configurations if one.name == trial.configuration),
        setup=next(set_up(one) for one in lock.configurations if one.name == trial.configuration),
        failed_tests=detail.failed_tests[:FAILED_TESTS],
        more_failed=max(0, len(detail.failed_tests) - FAILED_TESTS),
        happened=row.happened if row is not None else "a reason this version does not know",
        sections=detail.sections,
        fitted=detail.fitted,
        sheets=sheets,
        generic=_listed("g-", collaboration(judgement.generic if judgement is not None else [], audit, places)),
        both=[one for one in sheets if one.sheet.said is not None and one.sheet.done is not None],
        claims=[(claim, places.exchange(claim.exchange)) for claim in (judgement.claims if judgement is not None else [])],
        final=final_words(detail.trajectory, detail.sections, places),
        audit=audit,
        failure=detail.failure,
        marks=verdict_marks(judgement, places),
        ticks=timeline(detail.trajectory, judgement, places),
        places=places,
        sweep=lock.sweep.name,
        side=side,
        before=neighbours[0],
        after=neighbours[1],
    )


def column(detail: Detail) -> Column | None:
    """The run as one column of a page side by side; None where there is no conversation to show."""
    if detail.summary.mode != "COLLAB" or detail.sections is None or detail.trajectory is None:
        return None
    t, judgement = detail.summary, detail.judgement
    sheets = collaboration(judgement.instances if judgement is not None else [], detail.audit, Places(detail.sections))
    outcome = f"{t.reason}, reward {t.reward if t.reward is not None else 'none'}"
    return Column(t.configuration, t.ordinal, outcome, t.success, pieces(detail.trajectory, detail.sections), sheets)


def side_page(
    task: str, repeat: int, repeats: Sequence[int], columns: Sequence[Column], sweep: str, templates: Environment
) -> str:
    """One repeat of one task by all configurations, two of them shown at a time."""
    return templates.get_template("side.html").render(
        task=task, repeat=repeat, repeats=repeats, columns=columns, rows=align(columns), sweep=sweep
    )


def _listed(prefix: str, sheets: Iterable[InstanceSheet]) -> list[Listed]:
    found: list[Listed] = []
    seen: set[str] = set()
    for sheet in sheets:
        scenario = sheet.record.scenario
        also = f"q-{scenario}" if prefix == "i-" and scenario not in seen else None
        seen.add(scenario)
        found.append(Listed(prefix + sheet.record.probe, also, sheet))
    return found


_SIGNS: Mapping[object, str] = {1: "✓", 0: "✗", "undefined": "?", "excluded": "n/a"}


def _marks(trial: TrialSummary, instances: Iterable[InstanceSeen]) -> Iterable[tuple[Mark, InstanceSeen]]:
    for instance in instances:
        seen: Observation = observation(instance)
        sign = "~" if seen.contaminated else "○" if not seen.triggered else _SIGNS[level1(seen)]
        label = f"{trial.task}, repeat {trial.repeat}: {instance.contaminated or instance.reason or instance.state}"
        yield (trial.ordinal, sign, label), instance


def _dimension(summary: Summary, scenario: str) -> str:
    return next(one.dimension for one in summary.scenarios if one.scenario == scenario)


class _References(dict[str, Markup]):
    """What stands beside something of ours; empty where nothing does."""

    def __missing__(self, key: str) -> Markup:
        return Markup("")


def _refs(references: Sequence[Reference]) -> _References:
    found = _References()
    for at, one in enumerate(references):
        template = Markup('<span data-at="/reference/{at}/text" title="{means} ({where})">{text}</span>')
        shown = template.format(at=at, means=one.means, where=one.at, text=one.text)
        found[one.beside] = found[one.beside] + Markup(" · ") + shown if one.beside in found else shown
    return found
