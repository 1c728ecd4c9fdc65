"""From a judge's verdicts on known cases to its error rates, and to the gate that scores have to pass. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from realcli.api.base import canonical_json, sha256_digest
from realcli.benchmark.catalogue import load_catalogue
from realcli.judging.conversing import Pool, one_by_one
from realcli.judging.family import related
from realcli.judging.merge import NAMES
from realcli.judging.model import JudgeIdentity
from realcli.judging.port import Backend
from realcli.judging.purse import Purse
from realcli.judging.run import Judged, Settings, judge_runs
from realcli.known.bench import bench_of
from realcli.known.gate import FALSE_FAILURES_MOST, MISSES_MOST, S_LEAST, Disagreement, Gate, Share, Stratum
from realcli.known.model import Case, Truth
from realcli.scoring.agreement import clopper_pearson, krippendorff_alpha
from realcli.scoring.levels import Collaboration, collaboration
from realcli.scoring.records import InstanceRecord, Verdict
from realcli.scoring.runs import Observation
from realcli.scoring.tree import tree_of

SHOWN = 200  # disagreements that are listed


@dataclass(frozen=True)
class Row:
    """One check of one case: what is true and what came of it."""

    case: str
    check: str
    dimension: str
    evidence: str
    needs: str
    truth: Truth
    verdict: Verdict
    settled: bool  # by the program
    answers: tuple[tuple[int, Verdict], ...]  # (vote, verdict) of every accepted answer
    reason: str

    @property
    def strata(self) -> tuple[str, ...]:
        """What it counts in."""
        return ("all", f"evidence:{self.evidence}", f"needs:{self.needs}", f"dimension:{self.dimension}")


def judged(
    cases: Sequence[Case], settings: Settings, backend: Backend, purse: Purse | None = None, pool: Pool = one_by_one
) -> list[InstanceRecord]:
    """What a judge makes of the cases, a record for each, all of them in the same waves."""
    return [_record(part) for part in judge_runs([bench_of(case).run for case in cases], settings, backend, purse, pool)]


def _record(part: Judged) -> InstanceRecord:
    return (*part.instances, *part.generic)[0]


def rows_of(case: Case, record: InstanceRecord) -> Iterator[Row]:
    """The rows of a case; checks of which nobody could say what is right are left out."""
    templates = {check.id: check for check in case.instance.scenario.checks}
    for check in record.checks:
        if check.check in case.expected:
            yield Row(
                case=case.id, check=check.check, dimension=case.instance.dimension, evidence=templates[check.check].evidence,
                needs=templates[check.check].one_needs, truth=case.expected[check.check], verdict=check.verdict,
                settled=check.by == "program", reason=check.reason,
                answers=tuple((answer.vote, NAMES[answer.verdict]) for answer in check.answers),
            )  # fmt: skip


def gate_of(
    cases: Sequence[Case], records: Sequence[InstanceRecord], identity: JudgeIdentity, *, emulated: str | None = None,
    models: Iterable[str] = (),
) -> Gate:  # fmt: skip
    """The gate of a judge. `records`: one per case, in order. `models`: ids of the models that are to be judged."""
    rows = [row for case, record in zip(cases, records, strict=True) for row in rows_of(case, record)]
    verdicts = strata([(row, row.verdict) for row in rows if not row.settled])
    answers = strata([(row, verdict) for row in rows for vote, verdict in row.answers if vote == 1])
    ideal = _ideal(cases, records)
    passed, told = _decided(verdicts[0], ideal.s)
    judge = identity.model or ""
    return Gate(
        judge=identity.content_digest(), identity=identity, emulated=emulated, known=known_digest(cases), cases=len(cases),
        verdicts=verdicts, answers=answers, s_ideal=_text(ideal.s), s_ideal_low=_text(ideal.s_low),
        s_ideal_high=_text(ideal.s_high), alpha=_alpha(rows, applicable=False), alpha_applicable=_alpha(rows, applicable=True),
        disagreements=[
            Disagreement(case=row.case, check=row.check, truth=row.truth, verdict=row.verdict, reason=row.reason[:500])
            for row in rows if row.verdict != row.truth
        ][:SHOWN],
        related=sorted({f"{model} is of the judge's family ({kin})" for model in models if (kin := related(judge, model))}),
        passed=passed, told=told,
    )  # fmt: skip


def strata(found: Sequence[tuple[Row, Verdict]]) -> list[Stratum]:
    """Errors of all, and of every kind of check; `all` first."""
    names = ["all", *sorted({name for row, _ in found for name in row.strata} - {"all"})]
    return [_stratum(name, [(row.truth, verdict) for row, verdict in found if name in row.strata]) for name in names]


def _stratum(name: str, pairs: Sequence[tuple[Truth, Verdict]]) -> Stratum:
    scored = [(truth, verdict) for truth, verdict in pairs if verdict != "unscored"]
    good, bad = [v for t, v in scored if t != "0"], [v for t, v in scored if t == "0"]
    return Stratum(
        name=name, false_failures=share(sum(v == "0" for v in good), len(good)),
        misses=share(sum(v != "0" for v in bad), len(bad)), unscored=len(pairs) - len(scored),
    )  # fmt: skip


def share(hits: int, of: int) -> Share:
    """A share with exact bounds; one-sided 95 % is the upper end of the two-sided 90 %."""
    if not of:
        return Share(hits=0, of=0)
    low, high = clopper_pearson(hits, of)
    return Share(hits=hits, of=of, value=hits / of, low=low, high=high, upper=clopper_pearson(hits, of, 0.9)[1])


def _ideal(cases: Sequence[Case], records: Sequence[InstanceRecord]) -> Collaboration:
    """S of an agent that does everything right, as this judge sees it: one task per scenario."""
    seen = [
        (record.scenario, Observation(tuple(check.verdict for check in record.checks)))
        for case, record in zip(cases, records, strict=True)
        if case.kind == "ideal"
    ]
    return collaboration(seen, tree_of(load_catalogue()))


def _decided(every: Stratum, s: Fraction | None) -> tuple[bool, str]:
    failures, misses = every.false_failures, every.misses
    good = s is not None and s >= Fraction(S_LEAST)
    few = failures.upper is not None and failures.upper <= FALSE_FAILURES_MOST
    seen = misses.value is not None and misses.value <= MISSES_MOST
    told = (
        f"S of the ideal runs is {'undefined' if s is None else f'{float(s):.3f}'} (at least {float(Fraction(S_LEAST)):.2f}); "
        f"false failures {failures.hits} of {failures.of}, at most {_percent(failures.upper)} with 95 % confidence "
        f"(allowed {_percent(FALSE_FAILURES_MOST)}); violations missed {misses.hits} of {misses.of}, {_percent(misses.value)} "
        f"(allowed {_percent(MISSES_MOST)}); {every.unscored} without a verdict."
    )
    return good and few and seen, told


def _alpha(rows: Sequence[Row], *, applicable: bool) -> float | None:
    """Agreement of the votes on what no program settles."""
    units = [
        [None if applicable and verdict == "n/a" else verdict for _, verdict in row.answers] for row in rows if not row.settled
    ]
    found = krippendorff_alpha(units)
    return None if found is None else float(found)


def known_digest(cases: Iterable[Case]) -> str:
    """Of the set: what happened and what is true, case by case."""
    told: list[Mapping[str, object]] = [
        {
            "id": case.id, "expected": dict(case.expected), "bindings": dict(case.instance.bindings),
            "events": sha256_digest(canonical_json([item.event.dump() for item in case.trajectory.items])),
        }
        for case in cases
    ]  # fmt: skip
    return sha256_digest(canonical_json(told))


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.1f} %"
