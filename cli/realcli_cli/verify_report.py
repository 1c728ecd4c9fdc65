"""`realcli verify-report`: every number of a report counted again, offline, from ledgers and judgements."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from realcli.api.faults import first_fault
from realcli.api.plan import Lock
from realcli.benchmark.catalogue import load_catalogue
from realcli.known.gate import Gate
from realcli.ledger.show import visible
from realcli.scoring.document import ScoreInput, ScoreInputError
from realcli.scoring.loading import read_score_input
from realcli.scoring.runs import Run
from realcli.scoring.tree import tree_of
from realcli_cli.main import UserError
from realcli_cli.recount import parquets
from realcli_cli.recount.csvs import csvs_of
from realcli_cli.recount.digests import digest
from realcli_cli.recount.evidence import Evidence, read_sweep
from realcli_cli.recount.expected import RETENTION, Recount
from realcli_cli.recount.files import files_of, leftovers, shown_of
from realcli_cli.recount.held import held
from realcli_cli.recount.rounds import gate_of, input_digest
from realcli_cli.recount.words import words

SCHEMA = "realcli.dev/summary/2"
SHOWN = 50
MAX_DIGITS = 64  # of a reward in a seal


def verify_report(
    directory: Annotated[str, typer.Argument(help="Folder of a downloaded sweep (it holds sweep.json), or of a report.")],
    sweep: Annotated[str | None, typer.Option(help="Folder of the sweep, where the report lies somewhere else.")] = None,
) -> None:
    """Count every number of a report again from sealed ledgers, judgements and audits. Exit code 1 if any differs."""
    root, report = places(_folder(directory), None if sweep is None else _folder(sweep))
    summary = _summary(report / "summary.json")
    try:
        Lock.model_validate_json((root / "sweep.json").read_bytes())
    except ValidationError as error:
        raise UserError(f"{root / 'sweep.json'} is no lock of this version: {first_fault(error)}") from error
    try:
        found = read_sweep(root, summary)
        count, wrong = _counted(found, root, report, summary)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        # Records were held against their models; what is left to be of another form is summary.json, whose model is the writer's.
        told = f"{type(error).__name__}: {error}"
        raise UserError(f"{report / 'summary.json'} has not the form of {SCHEMA} ({told}), so nothing was counted") from error
    except OSError as error:
        raise UserError(f"{error.filename} cannot be read: {error.strerror}") from error
    for line in (*_superseded(found), *(f"NOTE {line}" for line in found.notes), *(f"WRONG {line}" for line in wrong[:SHOWN])):
        typer.echo(visible(line))
    if len(wrong) > SHOWN:
        typer.echo(f"… and {len(wrong) - SHOWN} more")
    ledgers = sum(t.seal is not None for t in found.trials)
    told = f"{count} numbers counted again from {len(found.objects)} records and {ledgers} sealed ledgers"
    typer.echo(f"{told}; {len(wrong)} things are wrong" if wrong else f"{told}; all are what the report says")
    raise typer.Exit(1 if wrong else 0)


def _superseded(found: Evidence) -> list[str]:
    """A report that was right when it was made, and is not the last."""
    newer = found.round.newer
    if not newer:
        return []
    more = f" and {len(newer) - 1} more" if len(newer) > 1 else ""
    return [f"SUPERSEDED {newer[0]}{more} came after this report: it is held against what there was before, another is newer"]


def _summary(path: Path) -> Any:
    """The summary as plain JSON; UserError for a file that is none of this version."""
    try:
        summary = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON: {error}") from error
    schema = summary.get("schema") if isinstance(summary, dict) else None
    if schema != SCHEMA:
        raise UserError(f"{path} is {schema!r}; this version counts {SCHEMA}")
    return summary


def _counted(found: Evidence, root: Path, report: Path, summary: Any) -> tuple[int, list[str]]:
    """(numbers counted again, everything that is wrong)."""
    if summary["judge"]["identity"]["catalogue"] != load_catalogue().digest:
        raise UserError(f"{report} was made with another scenario catalogue; use the realcli of its operator version")
    given = _document(found, summary)
    count, told, wrong = _said(found, root, summary, given)
    found.notes += [
        f"{name} is a file that a Job did not finish: it belongs to no report and was not read" for name in leftovers(report)
    ]
    files = [*files_of(report, summary), *shown_of(report, summary), *csvs_of(report, summary)]
    if parquets.readable():
        files += parquets.parquets_of(report, summary)
    else:
        found.notes.append(parquets.UNREAD)
    return count, [*found.wrong, *told, *_runs(report, given), *files, *wrong]


def _said(found: Evidence, root: Path, summary: Any, given: ScoreInput) -> tuple[int, list[str], list[str]]:
    """(numbers counted again, words of the summary that are wrong, its numbers that are)."""
    catalogue = load_catalogue()
    gate = _gate(found, root, summary) if found.round.gated else None
    evidence = {c.id: c.evidence for t in catalogue.templates.values() if t.sub_dimension == RETENTION for c in t.checks}
    tree = {dimension: dict(subs) for dimension, subs in tree_of(catalogue).items()}
    recount = Recount(found, summary, tree, given, evidence)
    count, wrong = held(summary, recount.everything())
    told = words(found, summary, None if gate is None else json.loads(gate), recount.tables)
    return count, [*_inputs(found, gate, summary), *told], wrong


def _folder(given: str) -> Path:
    """A folder of this machine; a Path would make `s3:/…` of an address."""
    if "://" in given:
        sweep = given.split("/reports/")[0].rstrip("/")
        raise UserError(
            f"{given} is an address, and this reads folders only; copy the sweep (aws s3 sync {sweep} ./sweep) and name ./sweep"
        )
    found = Path(given)
    if not found.is_dir():
        raise UserError(f"{given} is no folder; expected that of a downloaded sweep (it holds sweep.json) or of a report")
    return found


def places(directory: Path, sweep: Path | None) -> tuple[Path, Path]:
    """(folder of the sweep, folder of the report). UserError says what was expected."""
    if sweep is not None and not (sweep / "sweep.json").is_file():
        raise UserError(f"--sweep {sweep} holds no sweep.json; expected the folder of one sweep, sweeps/<namespace>/<name>-<id>")
    if (directory / "summary.json").is_file():
        root = sweep or next((p for p in directory.resolve().parents if (p / "sweep.json").is_file()), None)
        if root is None:
            raise UserError(f"{directory} is a report, but its sweep is not above it; name it with --sweep")
        return root, directory
    roots = [directory] if (directory / "sweep.json").is_file() else sorted(p.parent for p in directory.rglob("sweep.json"))
    if len(roots) != 1:
        raise UserError(f"{directory}: {len(roots)} sweeps lie here; expected the folder of one (it holds sweep.json)")
    reports = sorted(p.parent for p in (roots[0] / "reports").glob("*/summary.json"))
    if len(reports) != 1:
        raise UserError(f"{roots[0]} holds {len(reports)} reports; name the folder of one, {roots[0] / 'reports'}/<digest>")
    return roots[0], reports[0]


_LETTERS = {"1": 1, "0": 0, "n/a": "n", "unscored": "u"}


def _document(found: Evidence, summary: Any) -> ScoreInput:
    """The judged runs in the form of `realcli score`."""
    runs = []
    for t in found.trials:
        if not t.judged:
            continue
        scenarios = {
            name: {"checks": [_LETTERS[v] for v in seen.verdicts], "contaminated": seen.contaminated, "unknown": seen.unknown}
            if seen.contaminated or seen.unknown else [_LETTERS[v] for v in seen.verdicts] or "-"
            for name, seen in sorted(t.scenarios.items())
        }  # fmt: skip
        reward = None if not t.valid or t.reward is None else _exact(t.reward)
        facts = {"facts": t.facts} if t.facts else {}
        runs.append({"configuration": t.configuration, "task": t.task, "mode": t.mode, "repeat": t.repeat, "valid": t.valid,
                     "reward": reward, "scenarios": scenarios, **facts})  # fmt: skip
    labels = {"category": "category", "informationStructure": "informationStructure"}
    return read_score_input(
        {
            "tree": {d: {s: list(q) for s, q in subs.items()} for d, subs in tree_of(load_catalogue()).items()},
            "benchmark": found.lock["benchmark"]["digest"],
            "judge": summary["judge"]["digest"],
            "tasks": {t["name"]: {k: t[k] for k in labels if k in t} for t in found.lock["tasks"]},
            "configurations": {c["name"]: {"framework": c["program"], "model": c["model"]} for c in found.lock["configurations"]},
            "runs": runs,
        }
    )


def _exact(reward: Fraction) -> Decimal:
    """The decimal of a seal: a double of it may be the 1 that it is not."""
    with localcontext(prec=2 * MAX_DIGITS):
        return Decimal(reward.numerator) / Decimal(reward.denominator)


def _as_written(reward: Fraction | None) -> float | None:
    """As JSON holds it: the nearest double, but never the 1 it is not."""
    number = None if reward is None else float(reward)
    return math.nextafter(1, 2 if reward > 1 else 0) if number == 1 and reward is not None and reward != 1 else number


def _gate(found: Evidence, root: Path, summary: Any) -> bytes | None:
    """The judge's gate beside `sweeps/`, None where there is none."""
    beside = gate_of(root, found.lock, summary)
    if beside is None:
        return None
    path, data = beside[1], beside[1].read_bytes()
    try:
        gate = Gate.model_validate_json(data)
    except ValidationError as error:
        raise UserError(f"{path} is no gate of this version: {first_fault(error)}") from error
    if gate.judge != summary["judge"]["digest"]:
        raise UserError(f"{path} is the gate of judge {gate.judge}, the report's is {summary['judge']['digest']}")
    why = gate.contradiction()
    if why is not None:
        raise UserError(f"{path} is no gate of this judge: {why}")
    return data


def _inputs(found: Evidence, gate: bytes | None, summary: Any) -> list[str]:
    """The report's own name: over every record it counts from, and the judge's gate."""
    prefix = found.lock["spec"]["storage"].get("prefix", "").strip("/")
    name = f"calibrations/{summary['judge']['digest'][7:15]}/gate.json"
    objects = dict(found.objects)
    if gate is not None:
        objects["/".join(part for part in (prefix, name) if part)] = digest(gate)
    made = input_digest(objects.items())
    if made == summary["inputDigest"]:
        return []
    told = "" if gate is not None else f"; if this judge was calibrated, {name} is missing beside sweeps/"
    return [f"/inputDigest: the report counts from {summary['inputDigest']}, the records here are {made}{told}"]


def _runs(report: Path, given: ScoreInput) -> list[str]:
    """tables/runs.json holds the runs that were read here, and no other."""
    path = report / "tables" / "runs.json"
    if not path.is_file():
        return ["tables/runs.json does not exist"]
    try:
        document = read_score_input(json.loads(path.read_bytes()))
    except (ScoreInputError, ValueError, RecursionError) as error:
        return [f"tables/runs.json cannot be read: {error}"]
    told, here = ({_cell(run): _content(run) for run in one.runs} for one in (document, given))
    wrong = [
        f"tables/runs.json: {', '.join(map(str, cell))} is another run than the evidence gives"
        for cell in dict.fromkeys([*here, *told])
        if told.get(cell) != here.get(cell)
    ]
    for name in ("tree", "threshold", "benchmark", "judge", "tasks", "configurations"):
        if getattr(document, name) != getattr(given, name):
            wrong.append(f"tables/runs.json: its {name} is not that of the sweep")
    return wrong


def _cell(run: Run) -> tuple[str, str, str, int]:
    return run.configuration, run.task, run.mode, run.repeat


def _content(run: Run) -> object:
    return (
        run.valid,
        _as_written(run.reward),
        run.facts,
        {name: (seen.verdicts, seen.contaminated, seen.unknown) for name, seen in run.scenarios.items()},
    )
