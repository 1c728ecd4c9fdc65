"""Sweeps with `spec.from` on a store that holds a judged sweep: planned by the real plan Job, their Jobs run as pods run them."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realcli.api.base import sha256_digest
from realcli.api.plan import Images, Lock, Plan, Platform, SweepIdentity, plan_in_log
from realcli.api.source import SourceRef
from realcli.api.sweep import SweepSpec
from realcli.api.termination import Result, Termination, parse_termination
from realcli.benchmark.bundles import File, pack, unpacked
from realcli.benchmark.models import Index, IndexTask
from realcli.benchmark.publish import bundle_key
from realcli.scoring.records import GroupInput, GroupMember
from realcli.scoring.sources import Source
from realcli.storage.paths import SweepPaths
from realcli.storage.port import ObjectStore
from realcli_judge.__main__ import main
from realcli_session.plan.job import run
from realcli_session.plan.lock import PlanRequest
from tests.support.sealed_sweep import SealedSweep

UID = "99999999-1111-2222-3333-444455556666"
STORAGE = {"bucket": "evals", "prefix": "p", "credentials": {"secretRef": {"name": "evals-s3"}}}


@dataclass
class FromSweep:
    """One of them. `said` is the plan Job's message."""

    store: ObjectStore
    environ: dict[str, str]
    said: Termination
    plan: Plan | None = None
    root: str = ""
    members: dict[int, GroupMember] = field(default_factory=dict)

    @property
    def planned(self) -> Plan:
        assert self.plan is not None, self.said.message
        return self.plan

    @property
    def paths(self) -> SweepPaths:
        return SweepPaths(self.root)

    @property
    def lock(self) -> Lock:
        return Lock.model_validate_json(self.store.get(self.paths.lock))

    def source(self, ordinal: int) -> Source:
        return Source.model_validate_json(self.store.get(self.paths.source(ordinal)))

    def job(self, log: Path, name: str, group: int | None = None, **environ: str) -> Termination:
        """What `judge` (of a group) or `report` says."""
        given = {**self.environ, "REALCLI_TERMINATION_LOG": str(log), **environ}
        if group is not None:
            given["REALCLI_GROUP"] = self.group_input(group).canonical().decode()
        main([name, "--root", self.root, "--lock-digest", self.planned.lock_digest], given)
        message = parse_termination(log.read_text())
        assert message is not None
        return message

    def group_input(self, group: int) -> GroupInput:
        """As the operator makes it: members only where trials of this sweep ended."""
        ordinals = self.planned.ordinals_of_group(group)
        cell = self.planned.coordinates(ordinals[0])
        members = [self.members[ordinal] for ordinal in ordinals if ordinal in self.members]
        return GroupInput(configuration=cell.configuration, task=cell.task, members=members)


def plan_from(sweep: SealedSweep, phases: list[str], name: str = "again", ref: SourceRef | None = None, **spec: Any) -> FromSweep:
    """Plan a sweep of `sweep`'s runs. Storage is `sweep`'s."""
    ref = ref or SourceRef(uri=f"s3://evals/{sweep.root}", lock_digest=sweep.lock_digest)
    return planned(sweep.store, sweep.environ(), ref, phases, name, **spec)


def planned(
    store: ObjectStore, environ: dict[str, str], ref: SourceRef, phases: list[str], name: str = "again", **spec: Any
) -> FromSweep:
    """Plan a sweep of the runs that lie at `ref`; `environ`: what its Jobs have of storage and keys."""
    body = {"from": {"sweep": "first", "phases": phases}, "storage": STORAGE} | spec
    request = PlanRequest(
        sweep=SweepIdentity(namespace="audits", name=name, uid=UID),
        spec=SweepSpec.model_validate(body),
        platform=Platform(
            operator_version="0.4.0",
            images=Images(session="s2", judge="j2", toolkit="t2", agents={}),
            user_namespaces=False,
            image_volumes=False,
        ),
        source=ref,
    )
    out = io.StringIO()
    said = run({**environ, "REALCLI_SWEEP": request.canonical().decode()}, out, io.StringIO())
    made = FromSweep(store, environ, said)
    if said.result is Result.PLANNED:
        made.plan = plan_in_log(out.getvalue(), str(said.seal))
        made.root = made.plan.root
    return made


def publish_mended(sweep: SealedSweep, version: str = "1.1.0", change: dict[str, bytes] | None = None, **fields: Any) -> str:
    """A newer version of the benchmark of `sealed_sweep`; `change`: private files that are other; its s3:// address."""
    prefix = f"benchmarks/demo/{version}"
    tasks = []
    for task in sweep.lock.tasks:
        old = sweep.store.get(bundle_key("benchmarks/demo/1.0.0", task.private_bundle))
        files = {file.path: file for file in unpacked(old)}
        files |= {path: File(path, 0o644, content) for path, content in (change or {"tests/test.sh": b"exit 0\n"}).items()}
        private = pack(files.values())
        sweep.store.put_once(bundle_key(prefix, sha256_digest(private)), private)
        given = {
            "name": task.name, "digest": task.digest, "image": task.image, "public_bundle": task.public_bundle,
            "private_bundle": sha256_digest(private), "category": "data analysis", "information_structure": "additive",
            "workdir": task.workdir, "artifacts": task.artifacts, "verifier_seconds": 90.0, "scenarios": task.scenarios,
            "requirements": 2, "slices": 2,
        }  # fmt: skip
        tasks.append(IndexTask.model_validate(given | fields))
    sweep.store.put_once(f"{prefix}/index.json", Index(name="demo", version=version, tasks=tasks).canonical())
    return f"s3://evals/{prefix}"
