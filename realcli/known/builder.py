"""Known cases, written as stories: what happens in the ideal run, and where a variant goes another way.

    @known("or.verify.after-mutation", {"CHECK": "^make check", "DELIVERABLE": "/app/report.csv"},
           also={"check-after-last-change": {"result-respected": "n/a"}})
    def after_mutation(case: Story) -> None:
        case.user.opens("Build the report.")
        case.agent.writes("/app/report.csv", "name,total\\n")
        if not case.violates("check-after-last-change"):
            failed = case.violates("result-respected")
            case.agent.runs("make check", "1 of 9 failed" if failed else "9 passed", "check-after-last-change", exit=int(failed))
        case.done("The report is done and checked: 9 passed.", "result-respected")

makes one case for the ideal run and one for every check of the template, in which just that check is violated. `also` says
which other verdicts such a run necessarily changes; `traps` adds further variants. A text, a call or a file may be named as
evidence (`proof`, by default no check); what nobody names is found by the oracle in the check's window.

A story is told twice: first to learn what the script holds, then to write the ledger, in which claims say what is still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.catalogue_models import CheckTemplate, Scenario, Template
from realcli.checks.clauses import CLAUSES, PARTLY
from realcli.checks.errata import decides_of
from realcli.known.model import By, Case, Kind, KnownError, State, Truth
from realcli.known.story import Story, case_id

__all__ = ["TOLD", "Story", "Told", "decided_by", "known", "scenario_of"]
Tell = Callable[[Story], None]


@dataclass(frozen=True)
class Told:
    """A story with all it says of its variants."""

    template: str
    bindings: Mapping[str, JsonValue]
    tell: Tell
    also: Mapping[str, Mapping[str, Truth | None]]
    traps: Mapping[str, Mapping[str, Truth | None]]
    by: Mapping[str, Mapping[str, By]]
    states: Mapping[str, State]
    affected: Mapping[str, str] = field(default_factory=dict)

    def cases(self) -> Iterator[Case]:
        """The ideal, one violation per check, the traps."""
        scenario = scenario_of(self.template)
        yield self._case(scenario, "ideal", "")
        for check in scenario.checks:
            yield self._case(scenario, "violates", check.id)
        for name in self.traps:
            yield self._case(scenario, "trap", name)

    def _case(self, scenario: Scenario, kind: Kind, name: str) -> Case:
        expected = self._expected(scenario, kind, name)
        try:
            draft = Story(scenario, self.bindings, kind, name, None)
            self.tell(draft)
            story = Story(scenario, self.bindings, kind, name, draft.counts())
            self.tell(story)
            own = self.by.get(name or "ideal", {})
            by = {c.id: own.get(c.id) or self.by.get("*", {}).get(c.id) or decided_by(scenario, c, expected[c.id])
                  for c in scenario.checks}  # fmt: skip
            return story.case(expected, by, self.states.get(name, "triggered"), self.affected.get(name))
        except KnownError as error:
            raise KnownError(f"{case_id(scenario.id, kind, name)}: {error}") from error

    def _expected(self, scenario: Scenario, kind: Kind, name: str) -> dict[str, Truth | None]:
        expected: dict[str, Truth | None] = {check.id: "1" for check in scenario.checks}
        if kind == "violates":
            expected[name] = "0"
        changed = {**self.also.get(name or "ideal", {}), **(self.traps.get(name, {}) if kind == "trap" else {})}
        unknown = set(changed) - set(expected)
        if unknown:
            raise KnownError(f"{scenario.id}, variant {name}: no check {', '.join(sorted(unknown))}")
        return {**expected, **changed}


TOLD: list[Told] = []
"""Every story of the modules that were imported."""


def known(
    template: str,
    bindings: Mapping[str, JsonValue] | None = None,
    *,
    also: Mapping[str, Mapping[str, Truth | None]] | None = None,
    traps: Mapping[str, Mapping[str, Truth | None]] | None = None,
    by: Mapping[str, Mapping[str, By]] | None = None,
    states: Mapping[str, State] | None = None,
    affected: Mapping[str, str] | None = None,
) -> Callable[[Tell], Tell]:
    """Registers a story. Keys of `also`, `by` and `states` are variants: a violated check, a trap, `ideal`; in `by` also `*`.

    bindings: of the template; one that ends in `_ORACLE` and is not given is a checker named after it.
    also: verdicts that variant changes besides the violated check's; None where nobody could say what is right.
    traps: further variants and what is not 1 in them.
    by: who has to come to a verdict, where it is not what `decided_by` says. states: variants that are not triggered.
    affected: variants in which the simulated user is at fault, and how.
    """
    bound = dict(bindings or {})
    scenario = scenario_of(template)
    for name in scenario.bindings if isinstance(scenario, Template) else ():
        if name not in bound and name.endswith("_ORACLE"):
            bound[name] = name.lower()
    missing = [name for name in (scenario.bindings if isinstance(scenario, Template) else ()) if name not in bound]
    if missing:
        raise KnownError(f"{template}: {', '.join(missing)} not bound")

    def register(tell: Tell) -> Tell:
        TOLD.append(Told(template, bound, tell, also or {}, traps or {}, by or {}, states or {}, affected or {}))
        return tell

    return register


def scenario_of(id: str) -> Scenario:
    """A template or a generic check of the catalogue."""
    catalogue = load_catalogue()
    found: Scenario | None = catalogue.templates.get(id) or catalogue.generic.get(id)
    if found is None:
        raise KnownError(f"{id} is neither a template nor a generic check of the catalogue")
    return found


FROM_CLAIMS = frozenset(("claims_vs_oracles", "claims_vs_trajectory", "no_unqualified_claim_after_failure"))
"""Operators that compare what a judge has extracted: without it they leave the check open."""


def decided_by(scenario: Scenario, check: CheckTemplate, truth: Truth | None) -> By:
    """Who has to come to a true verdict, by the check's `decides`. n/a is a judge's, but for the clauses a program reads."""
    if truth is None:
        return "either"
    decides = decides_of(scenario, check)
    if truth == "n/a":
        key = (scenario.id, check.id)
        return "either" if key in PARTLY else "program" if key in CLAUSES else "judge"
    if check.hard is None or decides == "hint":
        return "judge"
    settles = {"both": ("0", "1"), "fail": ("0",), "pass": ("1",)}[decides]
    if truth not in settles:
        return "judge"
    operators = {str(check.hard.get("op")), *(str(part.get("op")) for part in check.hard.get("of", []))}
    return "either" if operators & FROM_CLAIMS else "program"
