"""What a report says in words: who ran, how each trial ended, what stands in each list, who judged, which warnings there are.

A list that is shorter than the evidence is as wrong as a number, so every list is held entry by entry.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from realcli.api.outcomes import OUTCOMES, Effect
from realcli.benchmark.catalogue import load_catalogue
from realcli.judging.family import related
from realcli.scoring.analyses.table import Table
from realcli.scoring.paper import references
from realcli_cli.recount.evidence import Counted, Evidence
from realcli_cli.recount.flags import flags_of, gate_said, opened
from realcli_cli.recount.held import at

Json = Any
TRIGGER_SPREAD = 0.1


def words(found: Evidence, summary: Json, gate: Json, tables: Iterable[Table]) -> list[str]:
    """Lines that name what is otherwise. `gate`: the judge's calibration, None without one; `tables`: all analyses."""
    wrong: list[str] = []
    expected = [*_given(found), *_configurations(found), *_trials(found), *_tasks(found), *_judge(found, gate), *_panels(found)]
    expected += _analyses(tables)
    for pointer, value in expected:
        said = at(summary, pointer)
        told = None if not isinstance(said, str | list | dict | bool | int | float) else said
        if told != value:
            wrong.append(f"{pointer}: the report says {_short(told)}, the evidence gives {_short(value)}")
    for pointer, key, entries in _lists(found, tables):
        said = at(summary, pointer)
        listed = [key(entry) for entry in said] if isinstance(said, list) else []
        if listed != entries:
            more = [one for one in listed if one not in entries]
            odd = [one for one in entries if one not in listed] or more or ["their order"]
            counts = f"the report lists {len(listed)} and the evidence gives {len(entries)}"
            wrong.append(f"{pointer}: {counts}; what differs: {_short(odd)}")
    return [*wrong, *_rows(summary), *flags_of(found, summary, gate, _kin(found, _model(found))), *_reading(found, summary)]


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 200 else f"{text[:200]} …"


def _given(found: Evidence) -> Iterator[tuple[str, Any]]:
    lock = found.lock
    for name in ("sweep", "benchmark", "egress", "createdAt"):
        yield f"/{name}", lock[name]
    yield "/operatorVersion", lock["platform"]["operatorVersion"]
    source = lock.get("source")
    yield "/source", source and {name: source[name] for name in ("sweep", "lockDigest", "benchmark", "phases")}
    yield "/deviations", lock.get("deviations", [])
    yield "/reference", [one._asdict() for one in references()]
    yield "/state", "Complete" if all(t.valid for t in found.trials) else "Incomplete"


def _configurations(found: Evidence) -> Iterator[tuple[str, Any]]:
    for number, one in enumerate(found.lock["configurations"]):
        for name in ("agent", "program", "agentVersion", "permissions", "model", "modelId", "key"):
            yield f"/configurations/{number}/{name}", one[name]
        yield f"/configurations/{number}/effort", one.get("effort")
        own = one.get("setup")
        yield f"/configurations/{number}/setup", own and {
            "digest": own["digest"], "files": own["files"], "mcpServers": [server["name"] for server in own["mcpServers"]],
            "toolImages": [f"{image['image']} at {image['mountPath']}" for image in own["toolImages"]], "inReach": own["inReach"],
        }  # fmt: skip


def _tasks(found: Evidence) -> Iterator[tuple[str, Any]]:
    for number, one in enumerate(found.lock["tasks"]):
        for name in ("category", "informationStructure"):
            yield f"/taskList/{number}/{name}", one.get(name)
        own = [t for t in found.trials if t.task == one["name"] and t.faulty]
        where = ", ".join(sorted({t.configuration for t in own}))
        ran = any(t.control for t in own)
        why = "fail with the reference solution too" if ran else "ended without a verdict, and no control ran"
        yield f"/taskList/{number}/suspect", f"its tests {why}, in {where}" if own else None
        gone = next((task for task in found.withdrawn if task["task"] == one["name"]), None)
        yield f"/taskList/{number}/withdrawn", gone and _withdrawn_because(gone)
        yield f"/taskList/{number}/suspectTrials", [t.ordinal for t in own]


def _withdrawn_because(task: Json) -> str:
    where = ", ".join(task["configurations"]) + (f" and {task['more']} more" if task.get("more") else "")
    detail = (task.get("control") or {}).get("detail")
    return f"its own tests fail with the reference solution{f' ({detail})' if detail else ''}; met by {where}"


def _trials(found: Evidence) -> Iterator[tuple[str, Any]]:
    for t in found.trials:
        base, member = f"/trials/{t.ordinal}", t.member or {}
        yield f"{base}/name", f"{found.lock['sweep']['name']}-{t.ordinal:05d}"
        yield from ((f"{base}/{key}", getattr(t, key)) for key in ("configuration", "task", "mode"))
        yield f"{base}/phase", "Withdrawn" if t.withdrawn else member.get("phase", "Missing")
        yield f"{base}/control", t.control or None
        yield from ((f"{base}/{key}", member.get(key)) for key in ("reason", "workSeal", "seal"))
        yield f"{base}/failure", (t.failure or {}).get("label")
        yield f"{base}/outcomeFlag", (t.audit or {}).get("outcomeFlag")
        if not t.damaged:
            yield f"{base}/trouble", None
            yield from ((f"{base}/{key}", (t.seal or {}).get(key)) for key in ("workingSeconds", "limit"))


def _judge(found: Evidence, gate: Json) -> Iterator[tuple[str, Any]]:
    judge = found.lock["spec"]["judge"]
    for group in found.groups:
        if "identity" in group:
            yield "/judge/identity", group["identity"]
    passed, asked = opened(gate), judge.get("calibration") == "Required"
    yield "/judge/calibration", "calibrated" if passed else "uncalibrated" if asked else "not asked for"
    yield "/judge/gate", gate_said(gate)
    yield "/judge/sameFamily", _kin(found, _model(found))
    yield "/judge/cost/exhausted", any(cost.get("exhausted", False) for cost in found.costs)


def _model(found: Evidence) -> str | None:
    found_model: str | None = found.lock["spec"]["judge"].get("model", {}).get("model")
    return found_model


def _kin(found: Evidence, model: str | None) -> list[str]:
    if model is None:
        return []
    ids = {c["name"]: [c[key] for key in ("modelId", "resolvedModel") if c.get(key)] for c in found.lock["configurations"]}
    return [name for name, own in ids.items() if any(related(model, id) for id in own)]


def _analyses(tables: Iterable[Table]) -> Iterator[tuple[str, Any]]:
    for number, table in enumerate(t for t in tables if t.rows):
        yield f"/analyses/{number}/columns", list(table.columns)


def _panels(found: Evidence) -> Iterator[tuple[str, Any]]:
    spread: dict[str, list[float]] = {}
    known = {**load_catalogue().templates, **{one.id: one for one in load_catalogue().generic.values()}}
    for number, (configuration, scenario) in enumerate(_scenarios(found)):
        template = known[scenario]
        yield f"/scenarios/{number}/name", template.name
        yield f"/scenarios/{number}/dimension", getattr(template, "dimension", None)
        yield f"/scenarios/{number}/subDimension", getattr(template, "sub_dimension", None)
        clean = [
            s for t in _collab(found, configuration) if (s := t.scenarios.get(scenario)) and not s.contaminated and not s.unknown
        ]
        if clean:
            spread.setdefault(scenario, []).append(sum(bool(s.verdicts) for s in clean) / len(clean))
    yield "/triggerFlags", [name for name, rates in spread.items() if max(rates) - min(rates) > TRIGGER_SPREAD + 1e-12]
    for number, (_, scenario) in enumerate(_generic(found)):
        yield f"/generic/{number}/name", known[scenario].name


def _collab(found: Evidence, configuration: str) -> list[Counted]:
    return found.collab[configuration]


def _names(found: Evidence) -> list[str]:
    return [c["name"] for c in found.lock["configurations"]]


def _modes(found: Evidence) -> list[str]:
    return sorted(found.lock["modes"], reverse=True)


def _scenarios(found: Evidence) -> list[tuple[str, str]]:
    return [
        (name, scenario)
        for name in _names(found)
        for scenario in load_catalogue().templates
        if any(scenario in t.scenarios for t in _collab(found, name))
    ]


def _generic(found: Evidence) -> list[tuple[str, str]]:
    return [
        (name, scenario)
        for name in _names(found)
        for scenario in sorted({item["scenario"] for t in _collab(found, name) for item in t.generic})
    ]


def _failures(found: Evidence) -> list[tuple[str, str, str | None]]:
    """By configuration and mode, the most frequent label first, those without one last."""
    cells: list[tuple[str, str, str | None]] = []
    for name, mode in ((name, mode) for name in _names(found) for mode in _modes(found)):
        own = [t for t in found.trials if (t.configuration, t.mode) == (name, mode) and t.failure is not None]
        counts = Counter(t.failure.get("label") for t in own)
        ordered = sorted(counts, key=lambda label: (label is None, -counts[label], label or ""))
        cells += [(name, mode, label) for label in ordered]
    return cells


Key = Callable[[Json], Any]


def _lists(found: Evidence, tables: Iterable[Table]) -> Iterator[tuple[str, Key, list[Any]]]:
    """(place, what names an entry, the entries there should be)."""
    names, tasks = _names(found), [task["name"] for task in found.lock["tasks"]]
    cells = [(name, task, mode) for name in names for task in tasks for mode in _modes(found)]
    yield "/configurations", lambda one: one.get("name"), names
    yield "/taskList", lambda one: one.get("name"), tasks
    yield "/tasks", lambda one: (one.get("configuration"), one.get("task"), one.get("mode")), cells
    yield "/trials", lambda one: one.get("ordinal"), [t.ordinal for t in found.trials]
    yield "/scenarios", lambda one: (one.get("configuration"), one.get("scenario")), _scenarios(found)
    yield "/generic", lambda one: (one.get("configuration"), one.get("scenario")), _generic(found)
    yield "/audits", lambda one: one.get("configuration"), names if "COLLAB" in found.lock["modes"] else []
    for number, name in enumerate(names if "COLLAB" in found.lock["modes"] else []):
        checks = dict.fromkeys(c["check"] for t in _collab(found, name) if t.audit for c in t.audit["checks"])
        flagged = [t.ordinal for t in _collab(found, name) if t.audit and "outcomeFlag" in t.audit]
        yield f"/audits/{number}/checks", lambda one: one.get("check"), list(checks)
        yield f"/audits/{number}/outcomeFlagged", lambda one: one, flagged
    yield "/failures", lambda one: (one.get("configuration"), one.get("mode"), one.get("label")), _failures(found)
    yield (
        "/outcomes",
        lambda one: (one.get("reason"), one.get("effect"), one.get("happened")),
        [(o.reason, o.effect.value, o.happened) for o in OUTCOMES if o.effect is not Effect.HELD],
    )
    shown = [table for table in tables if table.rows]
    yield "/analyses", lambda one: one.get("id"), [table.name for table in shown]
    for number, table in enumerate(shown):
        yield f"/analyses/{number}/rows", lambda one: len(one), [len(row) for row in table.rows]


def _rows(summary: Json) -> Iterator[str]:
    """The row of a configuration in the sweep's status: the same numbers, as texts."""
    for number, one in enumerate(summary["configurations"]):
        whole = one["headline"] == "S"
        s, j = (one.get("s"), one.get("j")) if whole else (one.get("sRate"), one.get("jRate"))
        mark = "~" if one["sPartial"] or not whole else ""
        row = {
            "configuration": one["name"],
            "rExec": _text((one.get("exec") or {}).get("r")),
            "rCollab": _text((one.get("collab") or {}).get("r")),
            "s": None if s is None else s["text"] + mark,
            "j": _text(j),
        }
        told = {key: value for key, value in row.items() if value is not None}
        if one["row"] != told:
            yield f"/configurations/{number}/row: the report says {one['row']}, its own numbers say {told}"


def _text(number: Json) -> str | None:
    return None if number is None else str(number["text"])


def _reading(found: Evidence, summary: Json) -> Iterator[str]:
    """The two sentences: their numbers in order."""
    configurations = summary["configurations"]
    rates = [c for c in configurations if "collab" in c]
    use = "s" if configurations and all(c["headline"] == "S" for c in configurations) else "sRate"
    seen = {s["scenario"] for s in summary["scenarios"] if s["n"]}
    first: list[str] = [] if not rates else [*_solved(rates, use), str(len(seen)), str(summary["catalogueScenarios"])]
    paired = [c for c in configurations if c["paired"]["pairs"]]
    up, down, pairs = (sum(c["paired"][key] for c in paired) for key in ("failToPass", "passToFail", "pairs"))
    second: list[str] = []
    if len(paired) > 1:
        second = [str(up), str(pairs), str(down), str(len(paired))]
    elif paired:
        delta = paired[0]["paired"]["deltaR"]["text"].lstrip("-")
        second = ([delta] if paired[0]["paired"]["deltaR"]["value"] else []) + [str(pairs), str(up), str(down)]
    for name, wanted in (("rq1", first), ("rq2", second)):
        text = summary["reading"][name]
        for known in sorted(_names(found), key=len, reverse=True):
            text = text.replace(known, "")
        told = re.findall(r"\d+(?:\.\d+)?", text)
        if told != wanted:
            yield f"/reading/{name}: its numbers are {', '.join(told) or 'none'}, the report's own {', '.join(wanted) or 'none'}"


def _solved(rates: Sequence[Json], use: str) -> list[str]:
    if len(rates) == 1:
        one = rates[0]
        r = one["collab"].get("r")
        return [*([r["text"]] if r else []), str(one["collab"]["valid"]), *([one[use]["text"]] if use in one else [])]
    found = [str(len(rates))]
    for values in ([c["collab"]["r"] for c in rates if "r" in c["collab"]], [c[use] for c in rates if use in c]):
        ordered = sorted(values, key=lambda value: value["value"])
        ends = [*ordered[:1], *(ordered[-1:] if ordered and ordered[0]["exact"] != ordered[-1]["exact"] else [])]
        found += [value["text"] for value in ends]
    return found
