"""`realcli compare A B`: what changed, how sure that is, and whether it fails a gate."""

from __future__ import annotations

import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from realcli.ledger.show import printable_json, visible
from realcli.scoring.compare import Change, CompareError, Comparison, check_comparable, compare, match
from realcli.scoring.document import ScoreInput, ScoreInputError
from realcli.scoring.gates import Gate, GateError, parse_gate
from realcli.scoring.intervals import DRAWS, LEVEL
from realcli.scoring.loading import load_score_input
from realcli.scoring.scorerow import decimal, signed
from realcli.storage.port import NotFound
from realcli_cli.main import UserError
from realcli_cli.places import is_address, kubectl_said, object_in_cluster, place_of_uri
from realcli_cli.score import read

RUNS = "tables/runs.json"
LATEST = "latest-good:"
FIRED = 3
"""Exit code of a comparison that a gate failed; 2 is an error."""


def comparison(
    a: Annotated[str, typer.Argument(help="Before: a sweep, latest-good:LABEL=VALUE, a report (folder or s3://), a file.")],
    b: Annotated[str, typer.Argument(help="After: the same.")],
    fail_if: Annotated[list[str] | None, typer.Option(help="Exit with 3 where it fires: 'P(dJ < -0.05) > 0.95'.")] = None,
    configuration: Annotated[list[str] | None, typer.Option(help="NAME, or A=B; those of equal name without.")] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 0,
    endpoint: Annotated[str | None, typer.Option(help="S3 endpoint, where it is not AWS.", envvar="AWS_ENDPOINT_URL")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace of the sweeps.")] = None,
) -> None:
    """Compare two results of one benchmark, task by task: B - A, 95 % intervals, the smallest drop that would have shown."""
    if output not in ("text", "json"):
        raise UserError(f"--output {output}: expected text or json")
    try:
        gates = [parse_gate(text) for text in fail_if or []]
        before, after = _load(a, endpoint, namespace, other=b), _load(b, endpoint, namespace, other=a)
        notes = check_comparable(before, after)
        if before.runs == after.runs:
            if LATEST in (a[: len(LATEST)], b[: len(LATEST)]):
                raise UserError("A and B are the same runs: the latest good sweep is the one it is compared with")
            notes.append("A and B are the same runs")
        found = [compare(before, after, names, seed=seed) for names in match(before, after, configuration or [])]
    except (CompareError, GateError) as error:
        raise UserError(str(error)) from error
    answers = [_ask(one, gate) for one in found for gate in gates]
    if output == "json":
        typer.echo(printable_json(json.dumps(_json(found, answers, notes, seed), indent=2, ensure_ascii=False)))
    else:
        typer.echo("\n".join(map(visible, _text(found, answers, notes))))
    unanswered = list(dict.fromkeys(answer.why_not for answer in answers if answer.why_not is not None))
    if unanswered:  # told below the comparison, which says what is defined
        raise UserError("; ".join(unanswered))
    if any(answer.fired for answer in answers):
        raise typer.Exit(FIRED)


class _Answer(NamedTuple):
    """A gate of a comparison: its probability, or why there is none."""

    of: Comparison
    gate: Gate
    probability: float | None
    why_not: str | None = None

    @property
    def fired(self) -> bool | None:
        return None if self.probability is None else self.gate.fires(self.probability)


def _ask(one: Comparison, gate: Gate) -> _Answer:
    if len(one.tasks) == 1:
        why = "one task is on both sides, and probabilities come from resampling tasks"
        return _Answer(one, gate, None, f"{gate.text!r} cannot be answered: {why}")
    try:
        return _Answer(one, gate, one.changes[gate.measure].probability(gate))
    except GateError as error:
        rate = one.changes.get(f"{gate.measure}_rate")  # of S and J, which may be withheld where their rates are not
        hint = "" if rate is None or rate.interval is None else f"; {rate.measure} is: gate on it"
        return _Answer(one, gate, None, f"{error}{hint}")


def _text(found: list[Comparison], answers: list[_Answer], notes: list[str]) -> list[str]:
    lines = [f"note: {note}" for note in notes]
    for one in found:
        title = one.a if one.a == one.b else f"{one.a} -> {one.b}"
        tasks = f"{len(one.tasks)} task{'' if len(one.tasks) == 1 else 's'}"
        lines += ["", f"{title}: {tasks} on both sides{_left_out(one)}; headline {_headline(one)}"]
        if len(one.tasks) == 1:
            lines.append("  one task: intervals come from resampling tasks, and say nothing here")
        if one.one_sided:
            lines.append(f"  {len(one.one_sided)} runs of these tasks are valid on one side alone: left out on both")
        lines.append(f"  {'':10}{'A':>8}{'B':>8}{'B - A':>9}   {'95 %':^18}  smallest drop found")
        lines += [_row(change) for change in one.changes.values()]
        for answer in (answer for answer in answers if answer.of is one):
            gate, probability = answer.gate, answer.probability
            if probability is None:
                lines.append(f"  NO ANSWER  {gate.text}")
                continue
            drop = one.changes[gate.measure].smallest_drop(gate.bound, gate.probability)
            seen = "" if drop is None else f"; it finds a drop of {drop:.3f} in 80 of 100 cases"
            word = "FIRES" if answer.fired else "does not fire"
            lines.append(f"  {word}  {gate.text}: the probability is {probability:.3f}{seen}")
    return lines


def _row(change: Change) -> str:
    name, difference, limits, drop = change.measure.removeprefix("d"), change.difference, change.interval, change.smallest_drop()
    if difference is None or limits is None:
        why = "not compared" if change.why_not else "not defined"
        return f"  {name:10}{_number(change.a):>8}{_number(change.b):>8}{why:>14}"
    span, found = f"[{_signed(limits.low)}, {_signed(limits.high)}]", "-" if drop is None else f"{drop:.3f}"
    return f"  {name:10}{_number(change.a):>8}{_number(change.b):>8}{signed(difference):>9}   {span:^18}  {found}"


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}"


def _number(value: Fraction | None) -> str:
    return "-" if value is None else decimal(value)


def _left_out(one: Comparison) -> str:
    parts = [f"{len(tasks)} only in {side}" for side, tasks in (("A", one.only_a), ("B", one.only_b)) if tasks]
    return f" ({', '.join(parts)}: left out)" if parts else ""


def _headline(one: Comparison) -> str:
    a, b = one.headlines
    return (a if a == b else f"{a} of A, {b} of B") + (" (development)" if "S_rate" in one.headlines else "")


def _json(found: list[Comparison], answers: list[_Answer], notes: list[str], seed: int) -> dict[str, Any]:
    return {
        "notes": notes,
        "method": {"draws": DRAWS, "level": LEVEL, "seed": seed},
        "comparisons": [
            {
                "a": one.a,
                "b": one.b,
                "tasks": list(one.tasks),
                "onlyA": list(one.only_a),
                "onlyB": list(one.only_b),
                "oneSided": [{"task": task, "mode": mode, "repeat": repeat or None} for task, mode, repeat in one.one_sided],
                "headlines": list(one.headlines),
                "changes": {name: _change(change) for name, change in one.changes.items()},
                "gates": [
                    {
                        "gate": answer.gate.text,
                        "probability": None if answer.probability is None else round(answer.probability, 4),
                        "fired": answer.fired,
                    }
                    for answer in answers if answer.of is one
                ],
            }
            for one in found
        ],
    }  # fmt: skip


def _change(change: Change) -> dict[str, Any]:
    limits, drop = change.interval, change.smallest_drop()
    exact = {name: None if value is None else {"exact": str(value), "value": float(value)}
             for name, value in (("a", change.a), ("b", change.b), ("difference", change.difference))}  # fmt: skip
    return {
        **exact,
        "interval": None if limits is None else limits.written(),
        "smallestDrop": None if drop is None else round(drop, 4),
        "whyNot": change.why_not,
    }


# -- where the runs lie ---------------------------------------------------------------------------------------------------


def _load(place: str, endpoint: str | None, namespace: str | None, other: str) -> ScoreInput:
    """The runs of a file, a report, a sweep, or the newest good sweep with a label."""
    if place.startswith(LATEST):
        return _report(latest_good(place.removeprefix(LATEST), namespace, other), endpoint)
    if Path(place).is_file():
        return read(Path(place))
    if "://" not in place and place.endswith((".json", ".yaml", ".yml")):
        raise UserError(f"{place}: there is no such file")
    if is_address(place):
        return _report(place, endpoint)
    return _report(_report_of(object_in_cluster("benchmarksweeps", place, namespace)), endpoint)


def _report(uri: str, endpoint: str | None) -> ScoreInput:
    if uri.startswith("file://"):
        uri = uri.removeprefix("file://")
    if "://" not in uri and Path(uri).is_file():
        return read(Path(uri))
    place = place_of_uri(uri if uri.endswith("://") else uri.rstrip("/"), endpoint)
    key = place.key if place.key.endswith(".json") else "/".join(part for part in (place.key.strip("/"), RUNS) if part)
    try:
        data = place.store.get(key)
    except NotFound:
        expected = "expected a report that this version wrote (in a sweep's folder: reports/<digest>), or a file of runs"
        raise UserError(f"{uri}: no {RUNS} lies here; {expected}") from None
    try:
        return load_score_input(data, f"{uri}/{RUNS}")
    except ScoreInputError as error:
        raise UserError(str(error)) from error


def _report_of(sweep: dict[str, Any]) -> str:
    status = sweep.get("status") or {}
    uri = status.get("reportURI")
    if not uri:
        raise UserError(f"sweep {sweep['metadata']['name']} has no report yet (state {status.get('state', 'unknown')})")
    return str(uri)


def latest_good(selector: str, namespace: str | None, other: str = "") -> str:
    """Report of the newest sweep with this label that is Complete; `other`, the sweep it is compared with, is none of them."""
    if "=" not in selector:
        raise UserError(f"{LATEST}{selector}: expected a label selector, such as {LATEST}branch=main")
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise UserError(f"{LATEST}{selector} asks the cluster, and kubectl is not installed; give a report or a file instead")
    command = [
        kubectl,
        "get",
        "benchmarksweeps.realcli.dev",
        "-l",
        selector,
        "-o",
        "json",
        *(["-n", namespace] if namespace else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"{LATEST}{selector}: {kubectl_said(done.stderr)}")
    return choose_latest_good(json.loads(done.stdout)["items"], selector, other)


def choose_latest_good(sweeps: list[dict[str, Any]], selector: str, other: str = "") -> str:
    """The report of the sweep that became Complete last; equal times by name. `other`: name or report of one that is left out."""
    good = [
        sweep
        for sweep in sweeps
        if _is_good(sweep.get("status") or {})
        and other.rstrip("/") not in (sweep["metadata"]["name"], sweep["status"]["reportURI"])
    ]
    if not good:
        raise UserError(f"{LATEST}{selector}: none of {len(sweeps)} sweeps with this label is Complete and has a report")
    return str(max(good, key=lambda sweep: (_completed(sweep), sweep["metadata"]["name"]))["status"]["reportURI"])


def _is_good(status: dict[str, Any]) -> bool:
    return status.get("state") == "Complete" and bool(status.get("reportURI"))


def _completed(sweep: dict[str, Any]) -> str:
    """When it became Complete (RFC 3339, so texts sort as times); its creation where no condition says."""
    times = [c.get("lastTransitionTime") for c in sweep["status"].get("conditions", []) if c.get("type") == "Complete"]
    return str(next((time for time in times if time), sweep["metadata"].get("creationTimestamp") or ""))
