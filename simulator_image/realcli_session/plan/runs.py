"""Which runs of a source count, where they lie, and whether their seals are those that were counted (`spec.from`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from realcli.api.base import canonical_json, sha256_digest
from realcli.api.outcomes import Phase
from realcli.api.plan import Lock, Plan, plan_of
from realcli.ledger.seals import TrialIdentity, VerifySeal, WorkSeal
from realcli.scoring.records import Group, GroupMember
from realcli.scoring.sources import MENDABLE, Source, SourceChanged, read_sources
from realcli.storage.paths import SweepPaths
from realcli.storage.port import NotFound, ObjectStore

AT_ONCE = 16
"""Objects read or written at the same time: a sweep of 19,998 trials has three times as many that are looked at here."""
RESTORE = "it was exchanged, restore the file that lay there"
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


def runs_of(store: ObjectStore, found: Found, plan: Plan, bucket: str, withdrawn: Collection[str]) -> dict[int, Source]:
    """Where every trial of the new plan comes from, by its ordinal there."""
    theirs = found.plan
    number = {_cell(theirs, group): group for group in range(theirs.groups)}
    ordinal_of = {theirs.coordinates(ordinal)[1:]: ordinal for ordinal in range(theirs.size)}
    cells = [_cell(plan, group) for group in range(plan.groups)]
    files = _group_files(store, found, [cell for cell in cells if cell[1] not in withdrawn])
    nested = found.lock.source

    def earlier(cell: Cell) -> dict[int, Source]:
        if nested is None:
            return {}
        try:
            return read_sources(store, found.paths, theirs, nested, number[cell])
        except SourceChanged as error:
            raise SourceRefused("SourceChanged", f"spec.from: {error}") from error

    of_theirs: dict[int, Source] = {}
    for cell, before in zip(cells, at_once(earlier, cells), strict=True):
        wanted = theirs.ordinals_of_group(number[cell])
        if cell not in files:
            for ordinal, member in zip(wanted, at_once(lambda one: unjudged(store, found, one), wanted), strict=True):
                of_theirs[ordinal] = before.get(ordinal) or _source(found, member, None, None, bucket)
            continue
        file = files[cell]
        members = {member.ordinal: member for member in file.group.members}
        if sorted(members) != sorted(wanted):
            raise SourceRefused(
                "SourceChanged",
                f"spec.from: the group of {', '.join(cell)} has the trials {sorted(members)}, its plan {wanted}: its group "
                f"file was exchanged, restore the files of {found.name}",
            )
        for ordinal in wanted:
            of_theirs[ordinal] = _source(found, members[ordinal], before.get(ordinal), file.digest, bucket)
    return {ordinal: of_theirs[ordinal_of[plan.coordinates(ordinal)[1:]]] for ordinal in range(plan.size)}


def _unfit(key: str, what: str, error: ValidationError, found: Found) -> str:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "the file"
    told = f"{field}: {first['msg']}; restore the files of {found.name}, or use the release that wrote them"
    return f"spec.from: {key} is no {what} of this version: {told}"


def _cell(plan: Plan, group: int) -> Cell:
    configuration, task = divmod(group, len(plan.tasks))
    return plan.configurations[configuration].name, plan.tasks[task].name


def unjudged(store: ObjectStore, found: Found, ordinal: int) -> GroupMember:
    """A trial of a withdrawn task, as its operator left it: `VerifierFault`, with the seal of its work where there is one. The
    newest attempt that is sealed as valid is the one: after it no other began."""
    cell, folder = found.plan.coordinates(ordinal), f"{found.root}/trials/{ordinal:05d}/attempt-"
    names = (info.key.removeprefix(folder).split("/") for info in store.list(folder))
    attempts = sorted({int(parts[0]) for parts in names if parts[0].isdigit() and parts[1:] == ["work-seal.json"]}, reverse=True)
    member = GroupMember(
        ordinal=ordinal,
        mode=cell.mode,
        repeat=cell.repeat,
        phase=Phase.INVALID,
        reason=MENDABLE,
        attempt=max(attempts, default=1),
    )
    for attempt in attempts:
        key = found.paths.attempt(ordinal, attempt).work_seal
        data = store.get(key)
        try:
            seal = WorkSeal.model_validate_json(data)
        except ValidationError as error:
            raise SourceRefused("SourceChanged", _unfit(key, "work seal", error, found)) from error
        if seal.valid:
            return member.model_copy(update={"attempt": attempt, "work_seal": sha256_digest(data)})
    return member


def _source(found: Found, member: GroupMember, before: Source | None, group: str | None, bucket: str) -> Source:
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
    if not cells:
        return {}
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
            raise SourceRefused("SourceChanged", _unfit(key, "group file", error, found)) from error
        if (group.sweep_uid, group.lock_digest) != expected or (group.configuration, group.task) != cell:
            raise SourceRefused("SourceChanged", f"spec.from: {key} is of another sweep or group: {RESTORE}")
        return GroupFile(group, sha256_digest(data))

    return dict(zip(cells, at_once(read, cells), strict=True))


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


def check_seals(store: ObjectStore, found: Found, sources: Mapping[int, Source], *, verify: bool) -> None:
    """Every seal that is counted on is there and is the anchored one. What it covers is checked by who reads it."""

    def check(source: Source) -> str | None:
        member = source.member
        if member.work_seal is None or not (source.verifiable or member.phase is Phase.SEALED):
            return None
        problem = _seal_problem(store, source.work.work_seal, member.work_seal, source, WorkSeal)
        if problem is None and not verify and member.seal is not None and member.verify_attempt is not None:
            problem = _seal_problem(store, source.verifies.verify(member.verify_attempt).seal, member.seal, source, VerifySeal)
        return problem

    problems = [problem for problem in at_once(check, sources.values()) if problem is not None]
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


def at_once(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """`work` for every item, several at once, in order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, items))
