"""From what was asked (spec, index, platform) to the lock and the plan. Pure; every refusal names the field and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

from realcli.api.agents import PROGRAMS, Agent, Program
from realcli.api.base import Frozen, canonical_json, seconds, sha256_digest
from realcli.api.judge import Calibration
from realcli.api.models import Api, Endpoint, InsecureHttp, Model
from realcli.api.plan import (
    BenchmarkLock,
    ConfigurationLock,
    Deviation,
    Lock,
    Platform,
    SetupLock,
    SweepIdentity,
    TaskLock,
)
from realcli.api.source import SourceRef
from realcli.api.sweep import SweepSpec, UserMode
from realcli.benchmark.models import Index, IndexTask
from realcli.judging.family import related
from realcli_session.gateway.config import EndpointRefused, check_endpoint
from realcli_session.plan.selection import select
from realcli_session.plan.setups import warnings as setup_warnings

API_OF: dict[str, Api] = {program: facts.api for program, facts in PROGRAMS.items()}
LIBC_OF = {program: facts.libc for program, facts in PROGRAMS.items()}
MAX_ORDINALS = 100_000  # five digits
CONTEXT_READER = "terminus-2"  # the one program that is told how long a request may be


class PlanRequest(Frozen):
    """REALCLI_SWEEP."""

    sweep: SweepIdentity
    spec: SweepSpec
    platform: Platform
    source: SourceRef | None = None  # with spec.from: where its source lies


class ConfigurationRefused(Exception):
    """The sweep cannot run as asked. One line per problem: field, what is wrong, what to do."""


def build_lock(
    request: PlanRequest,
    index: Index,
    index_digest: str,
    deviations: Callable[[str], Iterable[Deviation]],
    verifier_version: str,
    created_at: str,
    *,
    setups: Mapping[str, SetupLock] | None = None,
    visible: Callable[[str], str] = lambda _: "",
    parts: Callable[[str], Mapping[str, str]] = lambda _: {},
    allow_loopback: bool = False,
) -> Lock:
    """The lock, or ConfigurationRefused with every problem.

    `deviations(program)`: what its adapter sets differently; `visible(program)`: which of its texts a user sees;
    `parts(program)`: digests of what else it consists of; `setups`: the pinned set-up of an agent, by its name.
    """
    chosen = select(request.spec, index.tasks)
    index = index.model_copy(update={"tasks": chosen.tasks})
    problems = [*chosen.problems, *_problems(request, index, allow_loopback)]
    if problems:
        raise ConfigurationRefused("\n".join(problems))
    spec = request.spec
    assert spec.benchmark.source is not None  # by the problems above
    programs = sorted({agent.resolved_program for agent in spec.agents})
    of_program = {program: list(deviations(program)) for program in programs}
    return Lock(
        sweep=request.sweep,
        spec=spec,
        platform=request.platform,
        benchmark=BenchmarkLock(name=index.name, version=index.version, source=spec.benchmark.source, digest=index_digest),
        tasks=[_task(task, spec, verifier_version) for task in sorted(index.tasks, key=lambda t: t.name)],
        configurations=sorted(
            (
                _configuration(
                    *(a, m, of_program[a.resolved_program], (setups or {}).get(a.name)),
                    *(visible(a.resolved_program), parts(a.resolved_program)),
                )
                for a in spec.agents
                for m in spec.models
            ),
            key=lambda c: c.name,
        ),
        modes=sorted(spec.modes),
        repeats=spec.repeats,
        deviations=[d for program in programs for d in of_program[program]],
        warnings=[*chosen.warnings, *_warnings(spec)],
        created_at=created_at,
    )


def _task(task: IndexTask, spec: SweepSpec, verifier_version: str) -> TaskLock:
    return TaskLock(
        name=task.name,
        digest=task.digest,
        image=task.image,
        public_bundle=task.public_bundle,
        private_bundle=task.private_bundle,
        trust=task.trust,
        needs_setuid=task.needs_setuid,
        mock_hosts=task.mock_hosts,
        libc=task.libc,
        workdir=task.workdir,
        artifacts=task.artifacts,
        watch=task.watch,
        verifier_seconds=min(task.verifier_seconds, seconds(spec.limits.verify)),
        verifier_version=verifier_version,
        resources=task.resources,
        scenarios=task.scenarios,
        category=task.category,
        information_structure=task.information_structure,
    )


def with_answers(lock: Lock, answers: Mapping[tuple[str, Api], str | None], judge: str | None = None) -> Lock:
    """The lock with the id that answered each (model, API)'s test request, and the judge's. None: the answer named none.

    `judge`: "" where its answer named none, so that judge Jobs hold each other to that; None: no judge was asked.
    """
    made = [c.model_copy(update={"resolved_model": answers.get((c.model, c.api))}) for c in lock.configurations]
    warnings = list(lock.warnings)
    for (name, api), answered in sorted(answers.items()):
        asked = next(model.model for model in lock.spec.models if model.name == name)
        where = f"models[{name}].endpoints.{api}"
        if answered is None:
            warnings.append(f"{where}: its answers name no model; whether it stays the same cannot be seen")
        elif answered != asked:
            warnings.append(f"{where}: asked for {asked}, answers as {answered}; the sweep expects that id")
    if judge == "":
        warnings.append("spec.judge.model: its answers name no model; whether it stays the same cannot be seen")
    return lock.model_copy(update={"configurations": made, "warnings": warnings, "judge_model": judge})


def _configuration(
    agent: Agent, model: Model, deviations: list[Deviation], setup: SetupLock | None, visible: str, parts: Mapping[str, str]
) -> ConfigurationLock:
    program = agent.resolved_program
    settings = {
        "program": program,
        "version": agent.resolved_version,
        "permissions": agent.permissions.value,
        "model": model.model,
        "effort": agent.options.effort,
        "visible": visible,
        "setup": None if setup is None else setup.digest,
        "deviations": [d.dump() for d in deviations],
        **({"parts": dict(parts)} if parts else {}),
        **({"contextTokens": model.context_tokens} if program == CONTEXT_READER and model.context_tokens is not None else {}),
    }
    return ConfigurationLock(
        name=_name(agent, model),
        agent=agent.name,
        program=cast(Program, program),
        api=API_OF[program],
        agent_version=agent.resolved_version,
        permissions=agent.permissions.value,
        effort=agent.options.effort,
        visible_text=visible,
        setup=setup,
        model=model.name,
        model_id=model.model,
        accepted_ids=model.accepted_ids,
        key=sha256_digest(canonical_json(settings)),
    )


def _warnings(spec: SweepSpec) -> Iterator[str]:
    for agent in spec.agents:
        yield from setup_warnings(agent)
    yield "egress: Unenforced; there is no network wall around the agent, its results are not those of a sealed environment"
    if "COLLAB" in spec.modes:
        yield from judge_warnings(spec)


def judge_warnings(spec: SweepSpec) -> Iterator[str]:
    """What a person should know of who judges COLLAB runs."""
    judge = spec.judge.model
    if judge is None:
        yield "judge: no judge model; checks that a program cannot decide are unscored"
        return
    for model in spec.models:
        kin = related(judge.model, model.model)
        if kin is not None:
            yield f"judge: {judge.model} judges models[{model.name}] of its own family ({kin}), and may be kinder to it"
    if spec.judge.calibration is Calibration.OFF:
        yield "judge: calibration is Off; how often this judge errs is not known"


def _problems(request: PlanRequest, index: Index, allow_loopback: bool) -> Iterator[str]:
    spec = request.spec
    for field, given in (("agents", spec.agents), ("models", spec.models), ("benchmark.source", spec.benchmark.source)):
        if not given:
            yield f"spec.{field} is missing; only a sweep with spec.from goes without"
    yield from _twice("spec.agents[].name", [a.name for a in spec.agents])
    yield from _twice("spec.models[].name", [m.name for m in spec.models])
    yield from _twice("spec.modes", list(spec.modes))
    yield from _alike(spec)
    if not index.tasks and not (spec.benchmark.tasks.include or spec.benchmark.tasks.categories or spec.benchmark.tasks.exclude):
        yield "spec.benchmark.source: the benchmark has no tasks; publish one that has"
    for agent in spec.agents:
        yield from _agent_problems(agent, request.platform, index)
    for model in spec.models:
        yield from _model_problems(model, spec.agents, request.platform, allow_loopback)
        if spec.limits.trial_budget is not None and model.prices is None:
            yield f"spec.models[{model.name}].prices is missing; limits.trialBudget cannot be counted without prices"
        if spec.budget is not None and spec.budget.usd is not None and model.prices is None:
            yield f"spec.models[{model.name}].prices is missing; budget.usd needs prices: or give budget.tokens"
    yield from _user_problems(spec, request.platform, allow_loopback)
    yield from judge_problems(spec, request.platform, allow_loopback=allow_loopback)
    size = len(index.tasks) * spec.repeats * len(spec.agents) * len(spec.models) * len(spec.modes)
    if size > MAX_ORDINALS:
        yield f"spec: {size} trials; at most {MAX_ORDINALS} have a five-digit ordinal: split the sweep"


def _agent_problems(agent: Agent, platform: Platform, index: Index) -> Iterator[str]:
    program = agent.resolved_program
    field = f"spec.agents[{agent.name}]"
    if program not in API_OF:
        yield f"{field}.program: {program!r} is no agent program of this version; expected one of {', '.join(sorted(API_OF))}"
        return
    if f"{program}/{agent.resolved_version}" not in platform.images.agents:
        known = ", ".join(sorted(platform.images.agents)) or "none"
        yield f"{field}.version: the operator has no image of {program} {agent.resolved_version}; it has {known}"
    if agent.permissions not in PROGRAMS[program].permissions:
        yield f"{field}.permissions: {program} knows {' and '.join(PROGRAMS[program].permissions)}, not {agent.permissions}"
    if agent.options.effort is not None and program == "terminus-2":
        yield f"{field}.options.effort: terminus-2 has no such option; leave it out"
    for task in index.tasks:
        if task.libc not in LIBC_OF[program]:
            yield (
                f"{field}: {program} cannot be started in the image of task {task.name} (libc: {task.libc}); "
                f"it needs {' or '.join(LIBC_OF[program])}: leave the task or the agent out"
            )


def _model_problems(model: Model, agents: list[Agent], platform: Platform, allow_loopback: bool) -> Iterator[str]:
    for agent in agents:
        api = API_OF.get(agent.resolved_program)
        if api is not None and model.endpoints.of(api) is None:
            yield f"spec.models[{model.name}].endpoints.{api} is missing; agent {agent.name} speaks no other API"
    for api, endpoint in model.endpoints.given:
        yield from _endpoint_problems(f"spec.models[{model.name}]", api, endpoint, platform, allow_loopback)


def _user_problems(spec: SweepSpec, platform: Platform, allow_loopback: bool) -> Iterator[str]:
    user = spec.simulated_user
    if user.mode is not UserMode.MODEL:
        return
    if user.model is None:
        yield "spec.simulatedUser.model is missing; mode Model needs one (or use mode Canonical)"
        return
    given = [(api, endpoint) for api, endpoint in user.model.endpoints.given if api in ("anthropic", "chat")]
    if not given:
        yield "spec.simulatedUser.model.endpoints: neither chat nor anthropic; the simulated user speaks no other API"
    for api, endpoint in given:
        yield from _endpoint_problems("spec.simulatedUser.model", api, endpoint, platform, allow_loopback)


def judge_problems(spec: SweepSpec, platform: Platform, *, allow_loopback: bool) -> Iterator[str]:
    """Why `spec.judge` cannot judge."""
    judge = spec.judge
    if judge.budget is not None:
        if judge.model is None:
            yield "spec.judge.budget without spec.judge.model; give the model that judges"
        elif judge.budget.usd is not None and judge.model.prices is None:
            yield "spec.judge.budget.usd needs spec.judge.model.prices; or give budget.tokens"
        if (judge.budget.usd is None) == (judge.budget.tokens is None):
            yield "spec.judge.budget: give either usd or tokens"
    if judge.model is None:
        return
    if judge.model.endpoint is None:
        yield "spec.judge.model.endpoints is empty; give chat, anthropic or responses"
        return
    api, endpoint = judge.model.endpoint
    yield from _endpoint_problems("spec.judge.model", api, endpoint, platform, allow_loopback)


def _endpoint_problems(where: str, api: Api, endpoint: Endpoint, platform: Platform, allow_loopback: bool) -> Iterator[str]:
    try:
        check_endpoint(
            endpoint.url,
            insecure_http=endpoint.insecure_http is InsecureHttp.IN_CLUSTER,
            cluster_domain=platform.cluster_domain,
            allow_loopback=allow_loopback,
        )
    except EndpointRefused as error:
        yield f"{where}.endpoints.{api}.url: {error}"
    if api == "anthropic" and endpoint.url.rstrip("/").endswith("/v1"):
        yield f"{where}.endpoints.anthropic.url: {endpoint.url} ends with /v1; give the base URL without it"


def _name(agent: Agent, model: Model) -> str:
    return f"{agent.name}.{model.name}"


def _alike(spec: SweepSpec) -> Iterator[str]:
    """Names may hold dots, so that two pairs of agent and model can have one between them: their runs could not be told apart."""
    pairs: dict[str, set[tuple[str, str]]] = {}
    for agent in spec.agents:
        for model in spec.models:
            pairs.setdefault(_name(agent, model), set()).add((agent.name, model.name))
    for name, found in sorted(pairs.items()):
        if len(found) > 1:
            told = ", ".join(f"{agent} with {model}" for agent, model in sorted(found))
            yield f"spec.agents, spec.models: {name!r} is the name of more than one configuration ({told}); call one otherwise"


def _twice(field: str, names: list[str]) -> Iterator[str]:
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"{field}: {name!r} stands twice; names must differ"
