"""The page on which people label checks: what was asked and what the run shows, never what was judged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.catalogue_models import CheckTemplate
from realcli.checks.digest import digest8
from realcli.judging.pieces import Piece
from realcli.judging.questions import Question, Scenario, scenario_of
from realcli.judging.review import Asked, Judged, asked_of
from realcli.judging.run import Run, judge_run
from realcli.scoring.records import Group, RepeatJudgement
from realcli.storage.paths import join
from realcli_judge.collect import latest_group, read_record
from realcli_judge.group import open_member, task_side
from realcli_judge.hostile import shorten, visible
from realcli_judge.inputs import Inputs, Refused

LONG = 20_000  # characters of one item that are shown


@dataclass(frozen=True)
class Shown:
    """One check as it is put to a person."""

    asked: Asked
    scenario: Scenario
    question: Question
    run: Run


def judged_checks(inputs: Inputs) -> dict[Asked, Judged]:
    """Every judged check of the sweep, by the judge of its spec. `Refused` where nothing is judged yet."""
    found: dict[Asked, Judged] = {}
    for _, judgement in _judgements(inputs):
        found |= asked_of([judgement])
    if not found:
        raise Refused(
            "NotFound", f"{inputs.root} holds no judgement by the judge of its spec ({digest8(inputs.judge.content_digest())})"
        )
    return found


def evidence_kinds() -> dict[tuple[str, str], str]:
    """(scenario, check) -> trajectory, environment or both."""
    catalogue = load_catalogue()
    scenarios = (*catalogue.templates.values(), *catalogue.generic.values())
    return {(scenario.id, check.id): check.evidence for scenario in scenarios for check in scenario.checks}


def shown(inputs: Inputs, asked: Sequence[Asked]) -> Iterator[Shown]:
    """The checks with their runs, in the given order; a run's evidence is read once and checked against its anchors."""
    runs: dict[str, tuple[Run, dict[str, Scenario]]] = {}
    wanted = {one.work_seal for one in asked}
    for group, judgement in _judgements(inputs):
        if judgement.work_seal in wanted:
            member = next(m for m in group.members if m.ordinal == judgement.ordinal)
            opened = open_member(inputs, member)
            if opened is None:
                raise Refused("EvidenceMissing", f"trial {member.ordinal} has a judgement and no sealed run")
            run = opened.run(task_side(inputs, judgement.task))
            runs[judgement.work_seal] = (run, _scenarios(run))
    for one in asked:
        run, scenarios = runs[one.work_seal]
        scenario = scenarios.get(one.instance)
        question = next((q for q in scenario.questions if q.id == one.id), None) if scenario is not None else None
        if scenario is None or question is None:
            what = f"{one.id} of {one.task}, repeat {one.repeat}, was judged and is no check of the script in the benchmark"
            raise Refused("EvidenceSwapped", f"{what}; expected the benchmark and the sweep as their judge read them")
        yield Shown(one, scenario, question, run)


def _scenarios(run: Run) -> dict[str, Scenario]:
    part = judge_run(run, None, None)
    pairs = zip((*run.instances, *run.generic), (*part.instances, *part.generic), strict=True)
    found = (scenario_of(instance, record, run.trajectory, run.reading) for instance, record in pairs)
    return {scenario.id: scenario for scenario in found if scenario is not None}


def _judgements(inputs: Inputs) -> Iterator[tuple[Group, RepeatJudgement]]:
    judge8 = digest8(inputs.judge.content_digest())
    for number in range(inputs.plan.groups):
        cell = inputs.plan.coordinates(inputs.plan.ordinals_of_group(number)[0])
        folder = inputs.paths.judgements(judge8, cell.configuration, cell.task)
        key = latest_group(inputs, folder)
        if key is None:
            continue
        group = read_record(inputs, key, Group)
        for name in group.judgements.values():
            yield group, read_record(inputs, join(folder, name), RepeatJudgement)


# -- the page


def page(items: Sequence[Shown], judge: str, seed: str) -> str:
    """One HTML file: no network, no verdicts; its button saves the labels as a JSON file."""
    parts = [_item(number, item) for number, item in enumerate(items, 1)]
    keys = json.dumps([[item.asked.work_seal, item.asked.id] for item in items]).replace("<", "\\u003c")
    about = json.dumps({"schema": "realcli.dev/labels/1", "judge": judge, "seed": seed}).replace("<", "\\u003c")
    return _PAGE.replace("@ITEMS@", "".join(parts)).replace("@KEYS@", keys).replace("@ABOUT@", about)


def _item(number: int, item: Shown) -> Markup:
    question, check = item.question, item.question.check
    bound = [(f"in this task, {name}", json.dumps(value, ensure_ascii=False)) for name, value in item.scenario.bound.items()]
    rows = Markup("").join(_clause(name, text) for name, text in (*_clauses(check), *bound))
    pieces = Markup("").join(_piece(piece, item) for piece in _pieces(question, item.run))
    choices = Markup("").join(
        Markup('<label><input type="radio" name="v{}" value="{}"> {}</label> ').format(number, value, told)
        for value, told in (("1", "1: passes"), ("0", "0: fails"), ("n/a", "does not apply"), ("unsure", "unsure"))
    )
    return Markup(
        "<section><h2>{}. {}</h2><p>{}</p><dl>{}</dl><details open><summary>The window: {}</summary>{}</details>"
        '<fieldset><legend>Your label</legend>{}<br><input name="n{}" placeholder="note" size="80"></fieldset></section>'
    ).format(
        number, item.scenario.instance.scenario.name, visible(" ".join(item.scenario.instance.scenario.expected.split())), rows,
        check.window, pieces, choices, number,
    )  # fmt: skip


def _clauses(check: CheckTemplate) -> list[tuple[str, str]]:
    return [("1 when", check.pass_), ("0 when (this decides)", check.zero_when), ("does not apply when", check.na_when)]


def _clause(name: str, text: str) -> Markup:
    return Markup("<dt>{}</dt><dd>{}</dd>").format(name, visible(" ".join(text.split())))


def _pieces(question: Question, run: Run) -> Iterator[Piece]:
    """What lies in the window, and the user's messages of its exchanges."""
    for number in question.exchanges:
        for piece in run.reading.by_exchange[number]:
            inside = any(question.window.first <= part.seq <= question.window.last for part in piece.parts)
            if inside or piece.role == "user":
                yield piece


def _piece(piece: Piece, item: Shown) -> Markup:
    text, left = shorten(piece.text, LONG)
    more = f" ({left} characters left out)" if left else ""
    return Markup('<div class="{}"><b>{} {}{}</b><pre>{}</pre></div>').format(
        piece.role, piece.id, visible(piece.label), more, visible(text)
    )


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>Label checks</title>
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: auto; padding: 1rem; }
section { border-top: 2px solid; margin-top: 2rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border-left: 3px solid gray; padding-left: .6rem; margin: .2rem 0 1rem; }
.user pre { border-color: royalblue; } .agent pre { border-color: darkorange; } .mark pre { border-color: seagreen; }
.hid { font-size: .7em; border: 1px solid; } dt { font-weight: bold; } #save { position: sticky; top: 0; padding: .6rem; }
</style>
<h1>Label checks</h1>
<p>Read what stands in the window and give each check its label by the words of its clauses. What the judge said is not here.
Save when you are done, then: <code>realcli judge review SWEEP --labels FILE</code></p>
<form id="form"><p id="save"><label>Your name: <input name="rater" required maxlength="120"></label> <button>Save labels</button>
<output id="told"></output></p>@ITEMS@</form>
<script>
const keys = @KEYS@, about = @ABOUT@;
document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const data = new FormData(event.target), labels = [];
  keys.forEach(([workSeal, check], at) => {
    const label = data.get("v" + (at + 1));
    if (label) labels.push({workSeal, check, label, note: data.get("n" + (at + 1)) || ""});
  });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify({...about, rater: data.get("rater"), labels}, null, 1)]));
  link.download = "labels.json";
  link.click();
  document.getElementById("told").textContent = labels.length + " of " + keys.length + " checks are labelled";
});
</script>
</html>
"""
