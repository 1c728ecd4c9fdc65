"""`spec.from`: the lock of a sweep that verifies or judges again what another has sealed.

What ran is the source's: tasks, configurations, modes and repeats come from its lock, what counted from its newest group files.
Nothing is taken over that is not there as it was sealed; every refusal names the object, what was expected and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from realcli.api.base import canonical_json, sha256_digest
from realcli.api.outcomes import Phase
from realcli.api.plan import BenchmarkLock, Lock, Plan, SourceLock, TaskLock, plan_of
from realcli.api.source import From, ModeEnds, Settled, SourceRef
from realcli.api.sweep import Benchmark, SweepSpec
from realcli.ledger.seals import TrialIdentity, VerifySeal, WorkSeal
from realcli.scoring.records import Group, GroupMember
from realcli.scoring.sources import Source, SourceChanged, group_digest, read_sources
from realcli.storage.paths import SweepPaths, parse_s3_uri
from realcli.storage.port import NotFound, ObjectStore
from realcli_session.plan.lock import PlanRequest, judge_problems, judge_warnings
from realcli_session.plan.mended import Benchmarks, mended_tasks
from realcli_session.plan.selection import select

AT_ONCE = 16
"""Objects read or written at the same time: a sweep of 19,998 trials has three times as many that are looked at here."""
RAN = ("turns", "exec", "collab", "wall_factor", "spool_hold", "trial_budget")
"""Limits of the work, which is done. Those of the verify pods are the new sweep's."""
T = TypeVar("T")
R = TypeVar("R")
Cell = tuple[str, str]  # configuration, task


class SourceRefused(Exception):
    """The source cannot be used; `reason` is for programs, the text for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Found:
    """The source in storage."""

    root: str
    digest: str  # of its lock
    lock: Lock

    @property
    def paths(self) -> SweepPaths:
        """Keys below its root."""
        return SweepPaths(self.root)

    @cached_property
    def plan(self) -> Plan:
        """Its plan."""
        return plan_of(self.lock, self.root, self.digest)

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.lock.sweep.namespace}/{self.lock.sweep.name}"


class GroupFile(NamedTuple):
    """A group of the source as it counted."""

    group: Group
    digest: str


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
    chosen = select(spec, [task for task in found.lock.tasks if task.name not in withdrawn])
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
            "warnings": [_told(found, asked), *chosen.warnings, *_left_out(withdrawn), *_kept_warnings(found.lock, merged)],
            "source": None,
            "created_at": created_at,
        }
    )
    plan = plan_of(base, root, found.digest)  # of its factors alone
    sources = _sources(store, found, plan, spec.storage.bucket)
    _check_seals(store, found, sources, verify=asked.verify)
    paths = SweepPaths(root)
    _all(lambda item: store.put_once(paths.source(item[0]), item[1].canonical()), sources.items())
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
            "SourceChanged", f"spec.from: {key} has the digest {digest}, expected {ref.lock_digest}: the lock was changed"
        )
    try:
        return Found(root, digest, Lock.model_validate_json(data))
    except ValidationError as error:
        raise SourceRefused(
            "SourceChanged", f"spec.from: {key} is no lock of this version ({error.error_count()} fields do not fit)"
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


def _left_out(withdrawn: Iterable[str]) -> Iterator[str]:
    if names := sorted(withdrawn):
        yield f"from: {', '.join(names[:20])}{' …' if len(names) > 20 else ''}: withdrawn by the source, so not taken over"


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


# -- what counted


def _sources(store: ObjectStore, found: Found, plan: Plan, bucket: str) -> dict[int, Source]:
    """Where every trial of the new plan comes from, by its ordinal there."""
    theirs = found.plan
    number = {_cell(theirs, group): group for group in range(theirs.groups)}
    ordinal_of = {theirs.coordinates(ordinal)[1:]: ordinal for ordinal in range(theirs.size)}
    cells = [_cell(plan, group) for group in range(plan.groups)]
    files = _group_files(store, found, cells)
    nested = found.lock.source

    def earlier(cell: Cell) -> dict[int, Source]:
        if nested is None:
            return {}
        try:
            return read_sources(store, found.paths, theirs, nested, number[cell])
        except SourceChanged as error:
            raise SourceRefused("SourceChanged", f"spec.from: {error}") from error

    of_theirs: dict[int, Source] = {}
    for cell, before in zip(cells, _all(earlier, cells), strict=True):
        file = files[cell]
        wanted = theirs.ordinals_of_group(number[cell])
        members = {member.ordinal: member for member in file.group.members}
        if sorted(members) != sorted(wanted):
            raise SourceRefused(
                "SourceChanged", f"spec.from: the group of {', '.join(cell)} has the trials {sorted(members)}, its plan {wanted}"
            )
        for ordinal in wanted:
            of_theirs[ordinal] = _source(found, members[ordinal], before.get(ordinal), file.digest, bucket)
    return {ordinal: of_theirs[ordinal_of[plan.coordinates(ordinal)[1:]]] for ordinal in range(plan.size)}


def _cell(plan: Plan, group: int) -> Cell:
    configuration, task = divmod(group, len(plan.tasks))
    return plan.configurations[configuration].name, plan.tasks[task].name


def _source(found: Found, member: GroupMember, before: Source | None, group: str, bucket: str) -> Source:
    """Of a trial of the source. Where that came from another sweep itself, its run lies there."""
    cell, sweep = found.plan.coordinates(member.ordinal), found.lock.sweep
    own = found.paths.attempt(member.ordinal, member.attempt).root
    if before is not None:
        verified = own if found.lock.source is not None and found.lock.source.verify else before.verified
        return before.model_copy(update={"member": member, "verified": verified, "group": group})
    return Source(
        uri=f"s3://{bucket}/{own}",
        attempt=own,
        verified=own,
        trial=TrialIdentity(
            sweep_uid=sweep.uid, sweep=sweep.name, namespace=sweep.namespace, ordinal=member.ordinal, attempt=member.attempt,
            configuration=cell.configuration, task=cell.task, mode=cell.mode, repeat=cell.repeat, lock_digest=found.digest,
        ),
        member=member,
        group=group,
    )  # fmt: skip


def _group_files(store: ObjectStore, found: Found, cells: Sequence[Cell]) -> dict[Cell, GroupFile]:
    """The newest file of every group, all by one judge. Raises SourceRefused where one is missing or of another sweep."""
    judges = _listed(store, found)
    keys = next((there for _, there in sorted(judges.items()) if all(cell in there for cell in cells)), None)
    if keys is None:
        best = max(judges.values(), key=len, default={})
        missing = [cell for cell in cells if cell not in best]
        raise SourceRefused(
            "SourceIncomplete",
            f"spec.from: {len(missing)} of {len(cells)} groups of {found.name} are not judged (the first: "
            f"{', '.join(missing[0])}); wait until it is complete, or leave those tasks out by spec.benchmark.tasks.exclude",
        )
    expected = (found.lock.sweep.uid, found.digest)

    def read(cell: Cell) -> GroupFile:
        key = keys[cell]
        data = store.get(key)
        try:
            group = Group.model_validate_json(data)
        except ValidationError as error:
            raise SourceRefused("SourceChanged", f"spec.from: {key} is no group file of this version: {error}") from error
        if (group.sweep_uid, group.lock_digest) != expected or (group.configuration, group.task) != cell:
            raise SourceRefused("SourceChanged", f"spec.from: {key} is of another sweep or group: it was exchanged")
        return GroupFile(group, sha256_digest(data))

    return dict(zip(cells, _all(read, cells), strict=True))


def _listed(store: ObjectStore, found: Found) -> dict[str, dict[Cell, str]]:
    """Judge → cell → key of its group file with the highest number."""
    folder = f"{found.root}/judgements/"
    newest: dict[str, dict[Cell, tuple[int, str]]] = {}
    for info in store.list(folder):
        parts = info.key.removeprefix(folder).split("/")
        stem = parts[-1].removeprefix("group-").removesuffix(".json")
        if len(parts) != 4 or parts[-1] != f"group-{stem}.json" or not stem.isascii() or not stem.isdigit():
            continue
        judge, cell = parts[0], (parts[1], parts[2])
        of_judge = newest.setdefault(judge, {})
        of_judge[cell] = max(of_judge.get(cell, (0, "")), (int(stem), info.key))
    return {judge: {cell: key for cell, (_, key) in there.items()} for judge, there in newest.items()}


def _check_seals(store: ObjectStore, found: Found, sources: Mapping[int, Source], *, verify: bool) -> None:
    """Every seal that is counted on is there and is the anchored one. What it covers is checked by who reads it."""

    def check(source: Source) -> str | None:
        member = source.member
        if member.work_seal is None or not (source.verifiable or member.phase is Phase.SEALED):
            return None
        problem = _seal_problem(store, source.work.work_seal, member.work_seal, source, WorkSeal)
        if problem is None and not verify and member.seal is not None and member.verify_attempt is not None:
            problem = _seal_problem(store, source.verifies.verify(member.verify_attempt).seal, member.seal, source, VerifySeal)
        return problem

    problems = [problem for problem in _all(check, sources.values()) if problem is not None]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise SourceRefused("SourceChanged", f"spec.from: {problems[0]}{more}; restore the files of {found.name}")


def _seal_problem(
    store: ObjectStore, key: str, anchor: str, source: Source, model: type[WorkSeal] | type[VerifySeal]
) -> str | None:
    try:
        data = store.get(key)
    except NotFound:
        return f"{key} does not exist in {store.describe()}"
    if sha256_digest(data) != anchor:
        return f"{key} has the digest {sha256_digest(data)}, its group counted {anchor}"
    try:
        seal = model.model_validate_json(data)
    except ValidationError as error:
        return f"{key} is no seal of this version ({error.error_count()} fields do not fit)"
    if isinstance(seal, WorkSeal) and seal.trial != source.trial:
        return f"{key} seals another attempt: {canonical_json(seal.trial.dump()).decode()}"
    return None


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
        settled=[
            Settled(ordinal=ordinal, phase=source.member.phase, reason=source.member.reason)
            for ordinal, source in sorted(sources.items())
            if asked.verify and not source.verifiable
        ],
    )


def _all(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """`work` for every item, several at once, in order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, items))
