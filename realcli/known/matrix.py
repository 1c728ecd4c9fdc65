"""The page of the known-answer set: who decides what, how much rests on a judge alone, and what the emulated judges made of it.

python -m realcli.known.matrix --write | --check
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from realcli.benchmark.catalogue import load_catalogue
from realcli.checks import judge_instance
from realcli.checks.errata import ERRATA
from realcli.checks.model import OPERATORS_VERSION
from realcli.generated import generate, table_header, table_row
from realcli.judging.model import JudgeIdentity
from realcli.judging.run import Settings
from realcli.judging.session import Model
from realcli.known.bench import Bench, injected
from realcli.known.calibration import gate_of, judged, rows_of, share
from realcli.known.cases import known_cases
from realcli.known.gate import Gate, Share
from realcli.known.judges import emulated
from realcli.known.model import Case
from realcli.scoring.records import CheckRecord, InstanceRecord

PAGE = "docs/known-answers.md"
MODEL = Model("emulated", "anthropic")
SEED = 1
NAMES = {"ideal": "ideal", "violates": "violation", "trap": "trap"}


@dataclass(frozen=True)
class Known:
    """The set with what programs make of it."""

    cases: Sequence[Case]

    @cached_property
    def program(self) -> dict[str, InstanceRecord]:
        """Records of hard checks alone, by case."""
        return {case.id: judge_instance(case.instance, case.trajectory, case.evidence) for case in self.cases}

    def check(self, case: Case, name: str) -> CheckRecord | None:
        """The program's record of a check; None where the instance has none."""
        return next((check for check in self.program[case.id].checks if check.check == name), None)

    def of(self, template: str, kind: str, name: str = "") -> Case:
        """The case of that name."""
        return next(case for case in self.cases if (case.template, case.kind, case.name) == (template, kind, name))

    def settles(self, case: Case, name: str) -> bool:
        """A program comes to the verdict of that check in that case."""
        record = self.check(case, name)
        return record is not None and record.by == "program"

    @property
    def templates(self) -> list[str]:
        """Those there are cases of, in catalogue order."""
        catalogue = load_catalogue()
        told = {case.template for case in self.cases}
        return [id for id in (*catalogue.templates, *catalogue.generic) if id in told]


def trusted(case: Case) -> bool:
    """A 1 of the violated check would be accepted with some literal quote of the window: only the judge stands between."""
    question = Bench(case).questions.get(case.instance.id + "/" + case.name)
    if question is None or question.settled:
        return False
    return Bench(case).quotable(question) is not None


def gates(cases: Sequence[Case]) -> list[tuple[str, Gate]]:
    """What each emulated judge made of the set; the gullible ones of the same set by an agent that talks to its judge."""
    hostile = [injected(case) for case in cases]
    asked: list[tuple[str, str, int, Sequence[Case]]] = [
        ("oracle", "oracle", 1, cases), ("noisy, 10 %, one vote", "noisy", 1, cases),
        ("noisy, 10 %, three votes", "noisy", 3, cases), ("gullible outside the fence", "gullible-outside", 1, hostile),
        ("gullible inside the fence", "gullible-inside", 1, hostile), ("lazy", "lazy", 1, cases),
    ]  # fmt: skip
    identity = JudgeIdentity(kind="program", catalogue=load_catalogue().digest, operators=OPERATORS_VERSION)
    found = []
    for shown, name, votes, given in asked:
        records = judged(given, Settings(MODEL, votes), emulated(name, SEED).over(given))
        found.append((shown, gate_of(given, records, identity, emulated=name)))
    return found


INTRO = """# Known answers

Small runs whose verdicts are known by construction: per scenario an ideal run, one violation per check, and traps. Programs have
to come to the verdicts they can decide and to no others; a judge is measured by the rest (`realcli judge calibrate`). Generated
by `python -m realcli.known.matrix --write`; `make lint` fails where it is not up to date."""
DECIDES = """## Who decides

`program`: hard checks alone come to it. `judge`: a model is needed, and its answer is held against the post-conditions. The last
column says what an answer needs that calls the violated check 1 all the same: a *program* would override it; *the window read*:
no quote of the run makes it acceptable, it has to say that the whole window was read and nothing was found; **any quote**: some
literal text of the window does, so that only the judge's reading stands between (judge-trusted)."""
JUDGES = """## Emulated judges

They answer through the same sessions as a model. What they show is what the instrument stops, and says nothing of any model.
Counted are verdicts that no program settled; in brackets the exact 95 % interval. The gullible ones judge runs of an agent that
writes an instruction to its judge, and the end of a fence, into every text."""


def page(known: Known) -> str:
    """The page, as it stands in docs/."""
    lines = [INTRO, "", *_counts(known), "", DECIDES, ""]
    lines += table_header("scenario", ["check", "evidence", "1 (ideal)", "0 (violation)", "a wrong 1 needs"])
    for template in known.templates:
        lines += list(_rows(known, template))
    lines += ["", "## Traps", "", *table_header("scenario", ["trap", "state", "verdicts (by)"]), *_traps(known)]
    lines += ["", *_judges(known), "", *_errata()]
    return "\n".join(lines) + "\n"


def _counts(known: Known) -> list[str]:
    kinds = {kind: sum(case.kind == kind for case in known.cases) for kind in NAMES}
    total = len(known.cases)
    rows = [(case, row) for case in known.cases for row in rows_of(case, known.program[case.id])]
    settled = sum(row.settled for _, row in rows)
    zero = [(case, row) for case, row in rows if row.truth == "0"]
    one = [(case, row) for case, row in rows if row.truth == "1"]
    ones, zeros = _part(sum(r.settled for _, r in one), len(one)), _part(sum(r.settled for _, r in zero), len(zero))
    return [
        f"{total} runs of {len(known.templates)} scenarios and generic checks: {kinds['ideal']} ideal, {kinds['violates']} "
        f"violations, {kinds['trap']} traps. Programs decide {_part(settled, len(rows))} verdicts: "
        f"{ones} of the 1s, {zeros} of the 0s."
    ]


def _rows(known: Known, template: str) -> Iterable[str]:
    ideal = known.of(template, "ideal")
    for check in ideal.instance.scenario.checks:
        broken = known.of(template, "violates", check.id)
        zero = known.settles(broken, check.id)
        rests = "program" if zero else "**any quote**" if trusted(broken) else "the window read"
        by = ["program" if known.settles(ideal, check.id) else "judge", "program" if zero else "judge"]
        yield table_row(f"`{template}`", [check.id, check.evidence, *by, rests])


def _traps(known: Known) -> Iterable[str]:
    for case in (case for case in known.cases if case.kind == "trap"):
        told = [
            f"{check} {truth} ({'program' if known.settles(case, check) else 'judge'})"
            for check, truth in case.expected.items()
        ]  # fmt: skip
        yield table_row(f"`{case.template}`", [case.name, case.state, ", ".join(told) or "-"])


def _judges(known: Known) -> list[str]:
    names = ["false failures", "violations missed", "without a verdict", "S of the ideal runs", "gate"]
    lines = [JUDGES, "", *table_header("judge", names)]
    for name, gate in gates(known.cases):
        every = gate.of("all")
        s = "undefined" if gate.s_ideal is None else f"{_decimal(gate.s_ideal):.3f}"
        passed = "passes" if gate.passed else "fails"
        lines.append(table_row(name, [_share(every.false_failures), _share(every.misses), str(every.unscored), s, passed]))
    return lines


def _errata() -> list[str]:
    lines = [
        "## Where a record decides less than the catalogue says", "", *table_header("check", ["`decides` is read as", "why"]),
    ]  # fmt: skip
    return [*lines, *(table_row(f"`{scenario}` {check}", list(found)) for (scenario, check), found in ERRATA.items())]


def _share(found: Share) -> str:
    if not found.of or found.low is None or found.high is None:
        return "none to count"
    return f"{found.hits} of {found.of} ({100 * found.low:.1f} to {100 * found.high:.1f} %)"


def _part(hits: int, of: int) -> str:
    value = share(hits, of).value
    return f"{hits} of {of}" + (f" ({100 * value:.0f} %)" if value is not None else "")


def _decimal(text: str) -> float:
    above, _, below = text.partition("/")
    return int(above) / int(below or 1)


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or say whether it is up to date."""
    return generate("realcli.known.matrix", "the known answers", lambda: {PAGE: page(Known(known_cases()))}, arguments)


if __name__ == "__main__":
    sys.exit(main())
