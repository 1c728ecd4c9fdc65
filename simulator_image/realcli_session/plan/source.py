"""`spec.from`: the lock of a sweep that verifies or judges again what another has sealed.

What ran is the source's: tasks, configurations, modes and repeats come from its lock, what counted from its newest group files.
Nothing is taken over that is not there as it was sealed; every refusal names the object, what was expected and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from realcli.api.base import sha256_digest
from realcli.api.outcomes import Phase
from realcli.api.plan import BenchmarkLock, Lock, Plan, SourceLock, TaskLock, plan_of
from realcli.api.source import From, ModeEnds, Settled, SourceRef
from realcli.api.sweep import Benchmark, SweepSpec
from realcli.scoring.sources import Source, group_digest
from realcli.storage.paths import SweepPaths, parse_s3_uri
from realcli.storage.port import NotFound, ObjectStore
from realcli_session.plan.lock import PlanRequest, judge_problems, judge_warnings
from realcli_session.plan.mended import Benchmarks, mended_tasks
from realcli_session.plan.runs import Found, SourceRefused, at_once, check_seals, runs_of
from realcli_session.plan.selection import select

RAN = ("turns", "exec", "collab", "wall_factor", "spool_hold", "trial_budget")
"""Limits of the work, which is done. Those of the verify pods are the new sweep's."""


def plan_again(
    request: PlanRequest, asked: From, store: ObjectStore, root: str, benchmarks: Benchmarks, verifier: str, created_at: str
) -> Lock:
    """The lock of the new sweep, with its source.json files stored. Raises SourceRefused; errors of storage pass.

    `benchmarks`: how the source's benchmark and a newer version of it are read; `verifier`: the version that verifies now.
    """
    found = find_source(request.source, request.spec, store)
    spec = request.spec
    problems = [*_repeated(spec, found.lock), *judge_problems(spec, request.platform, allow_loopback=benchmarks.allow_loopback)]
    withdrawn = set() if request.source is None else set(request.source.withdrawn)
    chosen = select(spec, [task for task in found.lock.tasks if asked.verify or task.name not in withdrawn])
    problems += chosen.problems
    if problems:
        raise SourceRefused("ConfigurationError", "\n".join(problems))
    benchmark, tasks = _benchmark(found, chosen.tasks, asked, spec, benchmarks, verifier)
    merged = _merged(spec, found.lock, benchmark)
    base = found.lock.model_copy(
        update={
            "sweep": request.sweep,
            "spec": merged,
            "platform": request.platform,
            "benchmark": benchmark,
            "tasks": tasks,
            "judge_model": None,
            "warnings": [
                _told(found, asked),
                *chosen.warnings,
                *_left_out(withdrawn, asked),
                *_kept_warnings(found.lock, merged),
            ],
            "source": None,
            "created_at": created_at,
        }
    )
    plan = plan_of(base, root, found.digest)  # of its factors alone
    sources = runs_of(store, found, plan, spec.storage.bucket, withdrawn)
    check_seals(store, found, sources, verify=asked.verify)
    paths = SweepPaths(root)
    at_once(lambda item: store.put_once(paths.source(item[0]), item[1].canonical()), sources.items())
    return base.model_copy(update={"source": _pinned(found, asked, plan, sources)})


def find_source(ref: SourceRef | None, spec: SweepSpec, store: ObjectStore) -> Found:
    """The lock of the source, by the digest its status has. Raises SourceRefused."""
    if ref is None:
        raise SourceRefused("ConfigurationError", "spec.from without a place in storage; the operator and this image must match")
    bucket, root = parse_s3_uri(ref.uri)
    if bucket != spec.storage.bucket:
        raise SourceRefused(
            "ConfigurationError",
            f"spec.storage.bucket: {spec.storage.bucket}, but the source lies in {bucket}; use the bucket (and the credentials) "
            "of the source: what is made of it is kept beside it",
        )
    key = SweepPaths(root).lock
    try:
        data = store.get(key)
    except NotFound:
        raise SourceRefused(
            "SourceNotFound", f"spec.from: {key} does not exist in {store.describe()}; correct the address, or restore the files"
        ) from None
    digest = sha256_digest(data)
    if ref.lock_digest is not None and digest != ref.lock_digest:
        raise SourceRefused(
            "SourceChanged",
            f"spec.from: {key} has the digest {digest}, expected {ref.lock_digest}: the lock was changed; restore it",
        )
    try:
        return Found(root, digest, Lock.model_validate_json(data))
    except ValidationError as error:
        raise SourceRefused(
            "SourceChanged",
            f"spec.from: {key} is no lock of this version ({error.error_count()} fields do not fit); use the release that "
            "wrote it",
        ) from error


# -- what the source says and the new sweep need not


def _repeated(spec: SweepSpec, lock: Lock) -> Iterator[str]:
    """What is given and is not what ran. A default counts as not given."""
    for field in ("agents", "models"):
        if getattr(spec, field):
            yield f"spec.{field}: leave it out, spec.from has those of its source"
    if sorted(spec.modes) not in (sorted(_default("modes")), lock.modes):
        yield f"spec.modes: {', '.join(spec.modes)}; the source ran {', '.join(lock.modes)}: leave it out"
    if spec.repeats not in (_default("repeats"), lock.repeats):
        yield f"spec.repeats: {spec.repeats}; the source has {lock.repeats}: leave it out"
    if spec.simulated_user not in (_default("simulated_user"), lock.spec.simulated_user):
        yield "spec.simulatedUser: another than the source's; what was said is said: leave it out"
    for name in RAN:
        given = getattr(spec.limits, name)
        if given not in (getattr(_default("limits"), name), getattr(lock.spec.limits, name)):
            alias = type(spec.limits).model_fields[name].alias or name
            yield f"spec.limits.{alias}: another than the source's, whose agents have run: leave it out"


def _default(name: str) -> Any:
    return SweepSpec.model_fields[name].default


def _merged(spec: SweepSpec, lock: Lock, benchmark: BenchmarkLock) -> SweepSpec:
    """The spec as run: what the source ran, judged and verified as the new sweep says."""
    ran = lock.spec
    limits = spec.limits.model_copy(update={name: getattr(ran.limits, name) for name in RAN})
    return spec.model_copy(
        update={
            "benchmark": Benchmark(source=benchmark.source, digest=benchmark.digest, tasks=spec.benchmark.tasks),
            "agents": ran.agents,
            "models": ran.models,
            "modes": ran.modes,
            "repeats": ran.repeats,
            "simulated_user": ran.simulated_user,
            "limits": limits,
        }
    )


def _told(found: Found, asked: From) -> str:
    what = "verified and judged again" if asked.verify else "judged again"
    return f"from: the runs are those of {found.name} ({found.digest}), {what}; no agent ran"


def _left_out(withdrawn: Iterable[str], asked: From) -> Iterator[str]:
    if names := sorted(withdrawn):
        what = "what its runs sealed is verified again" if asked.verify else "so not taken over"
        yield f"from: {', '.join(names[:20])}{' …' if len(names) > 20 else ''}: withdrawn by the source, {what}"


def _kept_warnings(lock: Lock, merged: SweepSpec) -> Iterator[str]:
    """Those of the source that are about its runs, and those about the judge of now."""
    for warning in lock.warnings:
        if not warning.startswith(("judge:", "from:", "sample:", "benchmark.tasks:")):
            yield warning
    if "COLLAB" in merged.modes:
        yield from judge_warnings(merged)


def _benchmark(
    found: Found, tasks: list[TaskLock], asked: From, spec: SweepSpec, benchmarks: Benchmarks, verifier: str
) -> tuple[BenchmarkLock, list[TaskLock]]:
    """The benchmark that holds from now on, and its tasks. To judge again, it is the source's."""
    ran = found.lock.benchmark
    given = spec.benchmark.source
    if given is None or (given == ran.source and spec.benchmark.digest in (None, ran.digest)):
        if spec.benchmark.digest not in (None, ran.digest):
            raise SourceRefused(
                "SourceUnlike", f"spec.benchmark.digest: {spec.benchmark.digest}; the source ran {ran.digest}: leave it out"
            )
        if not asked.verify:
            return ran, tasks
        here, benchmark = benchmarks.index(ran.source, ran.digest), ran
    else:
        here = benchmarks.index(given, spec.benchmark.digest)
        benchmark = BenchmarkLock(name=here.index.name, version=here.index.version, source=given, digest=here.digest)
    if not asked.verify:
        if benchmark.digest != ran.digest:
            raise SourceRefused(
                "SourceUnlike",
                f"spec.benchmark.source: {given} has the digest {benchmark.digest}, the source ran {ran.source} ({ran.digest}); "
                "to judge again the benchmark has to be the same: leave benchmark out, or add Verify to spec.from.phases",
            )
        return ran, tasks
    made, problems = mended_tasks(tasks, ran, here, spec.limits.verify, verifier, benchmarks)
    if problems:
        raise SourceRefused("SourceUnlike", "\n".join(problems))
    return benchmark, made


def _pinned(found: Found, asked: From, plan: Plan, sources: Mapping[int, Source]) -> SourceLock:
    """The part of the lock that says where it all comes from."""
    ends = {mode: {Phase.SEALED: 0, Phase.INVALID: 0} for mode in ("EXEC", "COLLAB")}
    for source in sources.values():
        ends[source.member.mode][source.member.phase] += 1
    return SourceLock(
        sweep=found.lock.sweep,
        root=found.root,
        lock_digest=found.digest,
        benchmark=found.lock.benchmark,
        phases=sorted(asked.phases, reverse=True),
        groups=[group_digest([sources[ordinal] for ordinal in plan.ordinals_of_group(group)]) for group in range(plan.groups)],
        exec=ModeEnds(sealed=ends["EXEC"][Phase.SEALED], invalid=ends["EXEC"][Phase.INVALID]),
        collab=ModeEnds(sealed=ends["COLLAB"][Phase.SEALED], invalid=ends["COLLAB"][Phase.INVALID]),
        incomplete=sorted({plan.group_of(number) for number, one in sources.items() if one.member.phase is Phase.INVALID}),
        settled=[
            Settled(ordinal=ordinal, phase=source.member.phase, reason=source.member.reason)
            for ordinal, source in sorted(sources.items())
            if asked.verify and not source.verifiable
        ],
    )
