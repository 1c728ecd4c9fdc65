"""The warnings at the top of a report, word by word: those the evidence asks for, with its names and counts, and no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from realcli.known.gate import KNOWN_SET, OTHER_SET
from realcli_cli.recount.evidence import Counted, Evidence

Json = Any
NEVER_CALIBRATED = "This judge was not run over the known-answer set."
NAMED = 3
"""Trials that a warning names."""


def flags_of(found: Evidence, summary: Json, gate: Json, kin: Sequence[str]) -> Iterator[str]:
    """Lines that name a warning which is missing, too many, or says something else. `kin`: those of the judge's family."""
    expected = dict(_expected(found, summary, gate, kin))
    said = [flag.get("code") for flag in summary["flags"]]
    if said != list(expected):
        asked = ", ".join(expected)
        yield f"/flags: the report warns of {', '.join(map(str, said)) or 'nothing'}; the evidence asks for {asked}"
    for number, flag in enumerate(summary["flags"]):
        wanted = expected.get(flag["code"])
        if wanted is not None and flag["text"] != wanted:
            yield f"/flags/{number}/text: it says {flag['text']!r}, the evidence gives {wanted!r}"


def opened(gate: Json) -> bool:
    """A gate that was passed, over the known-answer set of this version."""
    return bool(gate and gate.get("passed") and gate["known"] == KNOWN_SET)


def gate_said(gate: Json) -> str:
    """What a report says of the judge's gate."""
    if not gate:
        return NEVER_CALIBRATED
    if gate["known"] == KNOWN_SET:
        return str(gate["told"])
    return f"{OTHER_SET} ({gate['known']}, this version has {KNOWN_SET}): remove it, and calibrate again."


def _expected(found: Evidence, summary: Json, gate: Json, kin: Sequence[str]) -> Iterator[tuple[str, str]]:
    trials, lock, total = found.trials, found.lock, len(found.trials)
    if damaged := [t for t in trials if t.damaged]:
        yield (
            "evidence",
            (
                f"The evidence of {_many(len(damaged), 'trial')} is not what was anchored ({_named(found, damaged)}): "
                "their rewards are "
                "those the operator saw, and nothing supports them."
            ),
        )
    if withdrawn := [t for t in trials if t.withdrawn]:
        yield (
            "withdrawn",
            (
                f"{len(withdrawn)} of {total} trials are left out, for all configurations: the tests of "
                f"{', '.join(sorted({t.task for t in withdrawn}))} fail with the reference solution too, so no run of them says "
                "anything. Every number here is of the other tasks."
            ),
        )
    if missing := sum(t.missing for t in trials):
        groups = len(lock["tasks"]) * len(lock["configurations"])
        unjudged = groups - len(found.groups) - len({(t.configuration, t.task) for t in withdrawn})
        yield (
            "incomplete",
            (
                f"{unjudged} of {groups} groups are not judged: {missing} of {total} trials are missing here. Missing "
                "is never counted "
                "as failure."
            ),
        )
    if invalid := sum(t.judged and not t.valid for t in trials):
        yield (
            "invalid",
            (
                f"{invalid} of {total} trials ended without an outcome, for reasons the agent cannot cause. They are "
                "left out; beside R "
                "stand its values with all of them read as failures and as successes."
            ),
        )
    if faulty := [t for t in trials if t.faulty]:
        ran = any(t.control for t in faulty)
        why = "fail with the reference solution too" if ran else "ended without a verdict, and no control ran"
        tasks = ", ".join(sorted({t.task for t in faulty}))
        yield "suspect", f"The tests of {tasks} {why}. Such runs are invalid, and a task says little until it is mended."
    yield (
        "egress-unenforced",
        ("Egress: Unenforced. There was no network wall around the agent; results are not those of a sealed environment."),
    )
    if "COLLAB" in lock["modes"]:
        yield from _collab(found, summary)
        yield from _judge(found, gate, kin)


def _collab(found: Evidence, summary: Json) -> Iterator[tuple[str, str]]:
    if any(c["sPartial"] for c in summary["configurations"]):
        yield (
            "partial",
            (
                "S is partial: not every sub-dimension was observed in every repeat, so S and J stand apart from the "
                "main table and are "
                "not to be compared. In status and tables such an S is marked ~."
            ),
        )
    if any(c["headline"] == "S_rate" for c in summary["configurations"]):
        yield (
            "development",
            (
                "The median scenario was seen on fewer than 8 tasks, so S_rate (pass rates without the 3/4 threshold) "
                "leads, and S is a "
                "development figure."
            ),
        )
    if flagged := [t for t in found.trials if t.valid and t.audit and "outcomeFlag" in t.audit]:
        yield (
            "simulator",
            (
                f"In {_many(len(flagged), 'run')} the simulated user may have changed the outcome "
                f"({_named(found, flagged)}): read R "
                "with and without them."
            ),
        )


def _judge(found: Evidence, gate: Json, kin: Sequence[str]) -> Iterator[tuple[str, str]]:
    judge = found.lock["spec"]["judge"]
    model = judge.get("model", {}).get("model")
    if model is None:
        yield (
            "uncalibrated",
            (
                "Judged by program alone: no judge model took part and none was calibrated. A check no program can "
                "decide is unscored."
            ),
        )
    elif not opened(gate) and judge.get("calibration") == "Required":
        said, storage = gate_said(gate), found.lock["spec"]["storage"]
        store = "/".join(part for part in (storage["bucket"], storage.get("prefix", "").strip("/")) if part)
        run = f" Run: realcli judge calibrate --sweep FILE --store s3://{store}"
        yield (
            "uncalibrated",
            (
                f"The judge {model} is not calibrated: S and J are as good as its verdicts, and nobody measured those. {said}"
                f"{run if said.startswith((NEVER_CALIBRATED, OTHER_SET)) else ''}"
            ),
        )
    if kin:
        yield "same-family", f"The judge is of the family of {', '.join(kin)}; a judge is kinder to its own kin."
    if any(cost.get("exhausted", False) for cost in found.costs):
        yield "judge-budget", "The judge's budget was spent: what it did not come to is unscored, never 0."


def _named(found: Evidence, trials: Sequence[Counted]) -> str:
    names = [f"{found.lock['sweep']['name']}-{t.ordinal:05d}" for t in trials]
    return ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
