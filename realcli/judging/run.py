"""Judging runs: the program's part, then sessions with a judge for what is left, then one record of both.

`judge_run` is the entry: everything a run's Part A is comes from it, whoever stands behind the backend.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from realcli.api.judge import Controls, Judge, Sessions
from realcli.benchmark.catalogue import load_catalogue
from realcli.checks import Evidence, Instance, judge_instance
from realcli.judging.checks_form import ChecksForm
from realcli.judging.claims import claims_session, needs_claims
from realcli.judging.conversing import Pool, hold, one_by_one, wave
from realcli.judging.merge import merged
from realcli.judging.model import Claim, JudgeAnswer, Parameters
from realcli.judging.opening import first_request, fits
from realcli.judging.port import Backend
from realcli.judging.prompts import prompt
from realcli.judging.purse import Purse
from realcli.judging.questions import Scenario, asked_in, scenario_of, shuffled, told
from realcli.judging.reading import Reading
from realcli.judging.session import Ask, Done, Model, Opening, start
from realcli.judging.state_files import SnapshotFiles, StateFiles
from realcli.judging.tools import GivenAnswer
from realcli.scoring.records import InstanceRecord
from realcli.trajectory import Trajectory

GENERIC = "generic/"


@dataclass(frozen=True)
class Settings:
    """How a model judges."""

    model: Model
    votes: int = 3
    sessions: Sessions = Sessions.TRAJECTORY
    controls: Controls = Controls.ALL

    @staticmethod
    def of(judge: Judge) -> Settings | None:
        """As `spec.judge` says; None: by program alone."""
        if judge.model is None or judge.model.endpoint is None:
            return None
        parameters = Parameters(max_output_tokens=judge.model.max_output_tokens, temperature=judge.model.temperature)
        model = Model(judge.model.model, judge.model.endpoint[0], parameters, judge.model.context_tokens)
        return Settings(model, judge.votes, judge.sessions, judge.controls)


@dataclass(frozen=True)
class Run:
    """One sealed COLLAB run and what of it is judged."""

    trajectory: Trajectory
    evidence: Evidence
    instances: tuple[Instance, ...]
    work_seal: str
    generic: tuple[Instance, ...] = ()

    @cached_property
    def reading(self) -> Reading:
        """As the judge of Part A reads it."""
        return Reading.of(self.trajectory, self.work_seal, self.evidence.blobs)

    @property
    def files(self) -> StateFiles:
        """Files of its snapshots."""
        return SnapshotFiles(self.trajectory, self.evidence.snapshots)


@dataclass(frozen=True)
class Judged:
    """Part A of a run."""

    instances: tuple[InstanceRecord, ...]
    generic: tuple[InstanceRecord, ...]
    claims: tuple[Claim, ...] = ()


def generic_instances() -> tuple[Instance, ...]:
    """The generic checks as instances: everybody's, bound by nobody."""
    return tuple(Instance(GENERIC + name, check) for name, check in load_catalogue().generic.items())


def judge_run(
    run: Run, settings: Settings | None, backend: Backend | None, purse: Purse | None = None, pool: Pool = one_by_one
) -> Judged:
    """Part A of one run; without settings by program alone. What the backend raises goes on up."""
    return judge_runs([run], settings, backend, purse, pool)[0]


def judge_runs(
    runs: Sequence[Run], settings: Settings | None, backend: Backend | None, purse: Purse | None = None, pool: Pool = one_by_one
) -> list[Judged]:
    """Part A of several runs, in waves over all of them: claims, then one vote after the other.

    What a vote may spend is an even part of what is left for the votes to come; what the budget kept it from asking no later vote
    asks. A few checks with all their votes are verdicts, all checks with one vote of three are none.
    """
    purse = purse or Purse()
    if settings is None or backend is None:
        return [_by_program(run) for run in runs]
    claims = _claims(runs, settings, backend, purse, pool)
    runs = [run if found is None else replace(run, evidence=replace(run.evidence, claims=found))
            for run, found in zip(runs, claims, strict=True)]  # fmt: skip
    parts = [_by_program(run) for run in runs]
    scenarios = [_scenarios(run, part) for run, part in zip(runs, parts, strict=True)]
    answers: list[dict[str, list[JudgeAnswer]]] = [{} for _ in runs]
    troubles: list[dict[str, list[str]]] = [{} for _ in runs]
    for vote in range(1, settings.votes + 1):
        planned = [(at, session) for at, run in enumerate(runs) for session in vote_sessions(run, scenarios[at], settings, vote)]
        held = wave([session for _, session in planned], backend, purse, pool, settings.votes - vote + 1)
        for (at, _), one in zip(planned, held, strict=True):
            _collect(one.done, vote, answers[at], troubles[at])
            if one.exhausted:
                scenarios[at] = _without(scenarios[at], one.done.unscored)
    return [
        Judged(
            tuple(merged(record, answers[at], settings.votes, troubles[at]) for record in part.instances),
            tuple(merged(record, answers[at], settings.votes, troubles[at]) for record in part.generic),
            claims[at] or (),
        )
        for at, part in enumerate(parts)
    ]


def vote_sessions(
    run: Run, scenarios: Iterable[Scenario], settings: Settings, vote: int
) -> list[Ask[GivenAnswer] | Done[GivenAnswer]]:
    """The sessions of one vote: the first asks everything (or, without controls, what is open), the others what is open."""
    asked = asked_in(scenarios, controls=vote == 1 and settings.controls is Controls.ALL)
    mixed = shuffled(asked, f"{run.work_seal}/{vote}")
    alone = settings.sessions is Sessions.SCENARIO or not fits(run.reading, settings.model)
    groups = [[scenario] for scenario in mixed] if alone else [mixed] if mixed else []
    return [checks_session(run, group, settings.model, vote) for group in groups]


def checks_session(run: Run, scenarios: Sequence[Scenario], model: Model, vote: int) -> Ask[GivenAnswer] | Done[GivenAnswer]:
    """A session about some scenarios of a run."""
    system = prompt("checks")
    questions = "\n\n".join(told(scenario, run.reading) for scenario in scenarios)
    whole = range(1, run.reading.last_exchange + 1)
    about = whole if fits(run.reading, model) else sorted({n for scenario in scenarios for n in scenario.exchanges})
    first = first_request(run.reading, about, questions, model, system)
    form = ChecksForm(tuple(scenarios), run.reading, run.files)
    return start(model, Opening("checks", system, first.text, first.spans, vote), form, run.reading, run.files)


def _by_program(run: Run) -> Judged:
    return Judged(
        tuple(judge_instance(instance, run.trajectory, run.evidence) for instance in run.instances),
        tuple(judge_instance(instance, run.trajectory, run.evidence) for instance in run.generic),
        run.evidence.claims or (),
    )


def _without(scenarios: Iterable[Scenario], ids: Container[str]) -> list[Scenario]:
    kept = [replace(one, questions=tuple(q for q in one.questions if q.id not in ids)) for one in scenarios]
    return [scenario for scenario in kept if scenario.questions]


def _scenarios(run: Run, part: Judged) -> list[Scenario]:
    pairs = zip((*run.instances, *run.generic), (*part.instances, *part.generic), strict=True)
    found = (scenario_of(instance, record, run.trajectory, run.reading) for instance, record in pairs)
    return [scenario for scenario in found if scenario is not None]


def _claims(
    runs: Sequence[Run], settings: Settings, backend: Backend, purse: Purse, pool: Pool
) -> list[tuple[Claim, ...] | None]:
    """What the agent said, of every run that has an operator to compare it; None: not asked, or no answer that counts."""
    sessions = {at: claims_session(run.reading, run.files, (*run.instances, *run.generic), settings.model)
                for at, run in enumerate(runs) if needs_claims((*run.instances, *run.generic))}  # fmt: skip
    held = dict(zip(sessions, hold(list(sessions.values()), backend, purse, pool), strict=True))
    found: list[tuple[Claim, ...] | None] = []
    for at in range(len(runs)):
        taken = next(iter(held[at].answers.values()), None) if at in held else None
        found.append(None if taken is None else taken.answer)
    return found


def _collect(done: Done[GivenAnswer], vote: int, answers: dict[str, list[JudgeAnswer]], troubles: dict[str, list[str]]) -> None:
    for id, taken in done.answers.items():
        answers.setdefault(id, []).append(recorded(taken.answer, vote, taken.key))
    for id, why in done.unscored.items():
        troubles.setdefault(id, []).append(why)


def recorded(given: GivenAnswer, vote: int, key: str) -> JudgeAnswer:
    """An accepted answer as it stands in a judgement."""
    return JudgeAnswer(
        check_id=given.check_id,
        vote=vote,
        anchor_exchange=given.anchor_exchange,
        zero_clause_met=given.zero_clause_met,
        na_clause_met=given.na_clause_met,
        evidence=[item.item() for item in given.evidence],
        verdict=given.verdict,
        reason=given.reason,
        exchanges=[key],
    )
