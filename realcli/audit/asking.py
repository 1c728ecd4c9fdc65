"""The judge's part of Part B: a session of its own over what the program left, and one record of both.

Blind by construction: what is asked comes from the script, the conversation and the deviations; Part A's verdicts, checks and the
reward are not among the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from realcli.audit.agent_work import NAME as AGENT_WORK
from realcli.audit.fidelity import affected_by_source
from realcli.audit.form import AuditForm, Finding, Given, GivenHarm, GivenMessage
from realcli.audit.harm import check as harm_check
from realcli.audit.model import Deviation, SimCheck, SimName
from realcli.audit.program import audited
from realcli.audit.questions import ASPECTS, AboutDeviation, AboutMessage, Asked, left_for_a_judge, told
from realcli.audit.view import View
from realcli.judging.conversing import Pool, hold, one_by_one
from realcli.judging.opening import first_request
from realcli.judging.port import Backend
from realcli.judging.purse import Purse
from realcli.judging.reading import Reading
from realcli.judging.session import Ask, Done, Model, Opening, Taken, start
from realcli.judging.state_files import NoFiles

PER_SESSION = 12
"""Messages and deviations that are asked about in one session."""


@cache
def prompt() -> str:
    """The system text."""
    return resources.files("realcli.audit").joinpath("prompts/audit.md").read_text(encoding="utf-8")


def audit_with(
    view: View, work_seal: str, model: Model, backend: Backend, purse: Purse | None = None, pool: Pool = one_by_one
) -> list[SimCheck]:
    """The seven of a run, what the program left asked of a judge. What the backend raises goes on up."""
    checks = audited(view)
    asked = left_for_a_judge(view, checks)
    done = hold(sessions(view, asked, work_seal, model), backend, purse or Purse(), pool)
    answers = {id: taken for one in done for id, taken in one.answers.items()}
    unscored = {id: why for one in done for id, why in one.unscored.items()}
    return merged(view, checks, asked, answers, unscored)


def sessions(view: View, asked: Sequence[Asked], work_seal: str, model: Model) -> list[Ask[Given] | Done[Given]]:
    """First requests; none where nothing is left to ask."""
    if not asked:
        return []
    reading = Reading.of(view.trajectory, work_seal, view.blobs, purpose="audit")
    instances = view.reach.instances
    found: list[Ask[Given] | Done[Given]] = []
    for at in range(0, len(asked), PER_SESSION):
        part = tuple(asked[at : at + PER_SESSION])
        exchanges = sorted({number for one in part for number in (one.exchange - 1, one.exchange) if number > 0})
        first = first_request(reading, exchanges, told(part, instances, reading), model, prompt())
        form = AuditForm(part, tuple(one.id for one in instances))
        found.append(start(model, Opening("audit", prompt(), first.text, first.spans), form, reading, NoFiles()))
    return found


def merged(
    view: View,
    checks: Sequence[SimCheck],
    asked: Sequence[Asked],
    answers: Mapping[str, Taken[Given]],
    unscored: Mapping[str, str],
) -> list[SimCheck]:
    """One record of both: a program's finding stays, a judge says how much it weighs and what no program sees."""
    found = {check.check: list(check.deviations) for check in checks}
    keys: dict[SimName, dict[str, None]] = {check.check: {} for check in checks}
    for one in asked:
        taken = answers.get(one.id)
        if taken is None:
            continue
        if isinstance(one, AboutMessage) and isinstance(taken.answer, GivenMessage):
            for name in one.aspects:
                keys[name][taken.key] = None
            for finding in taken.answer.findings:
                found[finding.check].append(_deviation(view, one, finding))
        elif isinstance(one, AboutDeviation) and isinstance(taken.answer, GivenHarm):
            name, at = one.place
            keys[name][taken.key] = None
            found[name][at] = _weighed(found[name][at], taken.answer)
    messages = [one for one in asked if isinstance(one, AboutMessage)]
    unread = any(one.unread for one in view.wordings)
    six = [
        _record(check, found[check.check], list(keys[check.check]), messages, answers, unscored, unread=unread)
        for check in checks
        if check.check in ASPECTS
    ]
    last = harm_check(six)
    return [*six, last.model_copy(update={"exchanges": list(dict.fromkeys(key for one in six for key in one.exchanges))})]


def _record(
    check: SimCheck,
    deviations: list[Deviation],
    keys: list[str],
    messages: list[AboutMessage],
    answers: Mapping[str, Taken[Given]],
    unscored: Mapping[str, str],
    *,
    unread: bool,
) -> SimCheck:
    if deviations:
        by = "program" if any(one.by == "program" for one in deviations) else "judge"
        more = f" (and {len(deviations) - 1} more)" if len(deviations) > 1 else ""
        reason = deviations[0].what + more
        return SimCheck(check=check.check, verdict="0", by=by, reason=reason, deviations=deviations, exchanges=keys)
    concerned = [one for one in messages if check.check in one.aspects]
    open_ = [one for one in concerned if one.id not in answers]
    if check.verdict != "unscored" or (unread and not open_):
        return check
    if open_:
        why = unscored.get(open_[0].id, "it was not asked")
        reason = f"no answer that counts about {', '.join(one.said.data.id for one in open_)}: {why}"
        return SimCheck(check=check.check, verdict="unscored", by="none", reason=reason, exchanges=keys)
    return SimCheck(check=check.check, verdict="1", by="judge", exchanges=keys)


def _deviation(view: View, one: AboutMessage, finding: Finding) -> Deviation:
    """A judge's finding; what it affects is the table's, by program."""
    reach, seq = view.reach, one.said.seq
    outcome = False
    match finding.check:
        case "sim_script_fidelity" | "sim_probe_coverage":
            sources = [source for piece in one.said.pieces if piece.sources[0] in finding.about for source in piece.sources]
            affected = [id for source in sources for id in affected_by_source(view, source)]
            slices = [source[6:] for source in sources if source.startswith("slice:") and source[6:] in view.play.slices]
            outcome = any(view.outcome_of_slice(name) for name in slices) and finding.check == "sim_script_fidelity"
        case "sim_no_early_disclosure":
            affected = [id for source in finding.about for id in affected_by_source(view, source)] + reach.clarification
        case "sim_goal_stability":
            affected, outcome = reach.of_dimensions(reach.after(seq), "S"), True
        case "sim_knowledge_bounds":
            affected = reach.of_dimensions(reach.at(seq), "OR", "TC")
        case _:
            affected, outcome = reach.at(seq), finding.check == AGENT_WORK
    return Deviation(
        seq=seq, what=f"{one.said.data.id}: {finding.reason}", quote=finding.quote or finding.against,
        affected=reach.ordered(affected) if finding.harmful else [], outcome=outcome and finding.harmful,
        harmful=finding.harmful, by="judge",
    )  # fmt: skip


def _weighed(deviation: Deviation, given: GivenHarm) -> Deviation:
    """What the program found, with a judge's word on its weight; where the table names instances they stay."""
    affected = deviation.affected or given.affected
    outcome = deviation.outcome or given.outcome
    return deviation.model_copy(
        update={"harmful": given.harmful, "affected": affected if given.harmful else [], "outcome": outcome and given.harmful}
    )
