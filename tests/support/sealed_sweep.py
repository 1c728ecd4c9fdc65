"""A finished sweep in a local store, written through the real models: lock, bundles, ledgers, snapshots, seals.

Two tasks, EXEC and COLLAB, three repeats of every configuration. What happens in a trial is a `Deed`.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import zstandard

from realcli.api.base import sha256_digest
from realcli.api.outcomes import Phase
from realcli.api.plan import (
    BenchmarkLock,
    ConfigurationLock,
    Images,
    Lock,
    Plan,
    Platform,
    SweepIdentity,
    TaskLock,
    plan_of,
)
from realcli.api.sweep import Mode, SweepSpec
from realcli.api.trial import Checks, Tokens
from realcli.benchmark.bundles import File, pack
from realcli.benchmark.edits import apply_edit
from realcli.benchmark.models import Edit, Oracle, Probe, Script, Slice
from realcli.benchmark.publish import bundle_key
from realcli.ledger.events import (
    ZERO_HASH,
    AgentMessage,
    AgentStart,
    Data,
    EpisodeEnd,
    EpisodeStart,
    FileRead,
    FileWrite,
    FinalClaim,
    InterimClaim,
    LedgerOpen,
    Limit,
    ModelRequest,
    PhaseChange,
    Plant,
    ProbeDelivered,
    ProbeUntriggered,
    SliceReleased,
    Snapshot,
    ToolCall,
    ToolResult,
    UserMessage,
    Yield,
)
from realcli.ledger.seals import SealedObject, TrialIdentity, Verdict, VerifySeal, WorkSeal
from realcli.ledger.writer import LedgerWriter
from realcli.scoring.records import GroupInput, GroupMember
from realcli.storage import ObjectStore, StorageConfig
from realcli.storage.opening import open_store
from realcli.storage.paths import SweepPaths, join, sweep_root

FILE = "/app/plan.md"
EDIT = Edit(path=FILE, after="# Plan", insert=["- Eve, Mondays", "- Max, Fridays"])
SCENARIO = "or.verify.concurrent-edit"
DIGEST = sha256_digest(b"fixture")
SCRIPT = Script(
    persona="a colleague",
    opener="Please make me a plan.",
    closer="Thank you, that is all.",
    slices=[
        Slice(id="s1", text="It needs a title.", requirements=["1"]),
        Slice(id="s2", text="Add Tuesdays.", requirements=["2"]),
    ],
    order=["batch:b1", "probe:touched"],
    batches={"b1": ["s1"]},
    probes=[
        Probe(id="touched", scenario=SCENARIO, text="I was just in plan.md myself. Add Tuesdays.", slice="s2", edit=EDIT,
              bindings={"FILE": FILE, "EDIT_MARKER": EDIT.insert[0], "NEXT_SLICE": "s2"})
    ],
)  # fmt: skip


@dataclass(frozen=True)
class Deed:
    """What happens in a trial, and what it is worth."""

    reward: str | None = "1"
    reason: str = "Completed"  # of the work
    looks: bool = True  # COLLAB: reads the file again before the next write
    keeps: bool = True  # COLLAB: the user's lines survive
    reaches_probe: bool = True
    invalid: str | None = None  # reason; the trial has no outcome
    seal_valid: bool = True
    sealed: bool = True  # False: valid, but the session went with its pod
    invalid_attempts: int = 0
    checks: tuple[int, int] | None = (8, 8)
    says: str = "Done."
    prints: str = "# Plan"
    posed: dict[str, Any] | None = None  # input of one more call
    ctrf: bytes | None = None  # what the tests say of themselves


Deeds = Mapping[tuple[str, Mode, int], Deed]

DEEDS: dict[tuple[str, Mode, int], Deed] = {
    ("alpha", "EXEC", 1): Deed(),
    ("alpha", "EXEC", 2): Deed(),
    ("alpha", "EXEC", 3): Deed(reward="0", checks=(7, 8)),
    ("alpha", "COLLAB", 1): Deed(),
    ("alpha", "COLLAB", 2): Deed(reward="0", looks=False, checks=(5, 8)),
    ("alpha", "COLLAB", 3): Deed(invalid_attempts=1),
    ("beta", "EXEC", 1): Deed(),
    ("beta", "EXEC", 2): Deed(reward="0.5", checks=(4, 8)),
    ("beta", "EXEC", 3): Deed(reward="0", reason="TurnLimit", checks=None),
    ("beta", "COLLAB", 1): Deed(looks=False, keeps=False),
    ("beta", "COLLAB", 2): Deed(invalid="ProviderUnavailable", invalid_attempts=4),
    ("beta", "COLLAB", 3): Deed(reward="0", reason="TurnLimit", reaches_probe=False, checks=None),
}
"""R_exec: 1, 1/2, 0 -> 1/2. R_collab: 1, 0 (beta invalid), 1/2 -> 1/2. Instances: 1/2, 0/1, 1/1 (one not reached)."""


@dataclass
class SealedSweep:
    """The sweep in storage, and what the operator would know of it."""

    directory: Path
    config: StorageConfig
    store: ObjectStore
    root: str
    lock: Lock
    lock_digest: str
    plan: Plan
    members: dict[int, GroupMember] = field(default_factory=dict)

    @property
    def paths(self) -> SweepPaths:
        return SweepPaths(self.root)

    def copy(self, directory: Path) -> SealedSweep:
        """The same sweep in a directory of its own, free to be damaged."""
        shutil.copytree(self.directory, directory)
        config = StorageConfig(directory=str(directory))
        return replace(self, directory=directory, config=config, store=open_store(config), members=dict(self.members))

    def environ(self, group: int | None = None, termination: Path | None = None) -> dict[str, str]:
        """The environment of a Job's pod."""
        found = {"REALCLI_STORAGE": self.config.model_dump_json(exclude_none=True)}
        if group is not None:
            found["REALCLI_GROUP"] = self.group_input(group).model_dump_json(by_alias=True, exclude_none=True)
        if termination is not None:
            found["REALCLI_TERMINATION_LOG"] = str(termination)
        return found

    def group_input(self, group: int) -> GroupInput:
        """What the operator hands the judge Job of a group."""
        ordinals = self.plan.ordinals_of_group(group)
        cell = self.plan.coordinates(ordinals[0])
        return GroupInput(configuration=cell.configuration, task=cell.task, members=[self.members[o] for o in ordinals])


def write_sweep(
    directory: Path,
    deeds: Deeds | Callable[[str, str, Mode, int], Deed] = DEEDS,
    configurations: Iterable[str] = ("claude-code.sonnet",),
    judge: dict[str, Any] | None = None,
) -> SealedSweep:
    """Write a whole sweep below `directory`. `deeds`: by (task, mode, repeat), or a function that also gets the configuration.

    `judge`: spec.judge; by program alone without it.
    """
    config = StorageConfig(directory=str(directory))
    store = open_store(config)
    oracle = Oracle(paths=["/app"])
    private = pack(
        [
            File("interaction/oracle_contract.json", 0o644, oracle.canonical()),
            File("interaction/script.json", 0o644, SCRIPT.canonical()),
        ]
    )
    prefix = "benchmarks/demo/1.0.0"
    store.put_once(bundle_key(prefix, sha256_digest(private)), private)
    lock = _lock(sha256_digest(private), list(configurations), judge)
    root = sweep_root("p", lock.sweep.namespace, lock.sweep.name, lock.sweep.uid)
    data = lock.canonical()
    store.put_once(SweepPaths(root).lock, data)
    sweep = SealedSweep(directory, config, store, root, lock, sha256_digest(data), plan_of(lock, root, sha256_digest(data)))
    for ordinal in range(sweep.plan.size):
        cell = sweep.plan.coordinates(ordinal)
        deed = (
            deeds(cell.configuration, cell.task, cell.mode, cell.repeat)
            if callable(deeds)
            else deeds[cell.task, cell.mode, cell.repeat]
        )
        sweep.members[ordinal] = write_trial(sweep, ordinal, deed)
    return sweep


def write_trial(sweep: SealedSweep, ordinal: int, deed: Deed) -> GroupMember:
    """One trial: its last attempt with all seals, and how the operator saw it end."""
    cell = sweep.plan.coordinates(ordinal)
    attempt = deed.invalid_attempts + (0 if deed.invalid else 1)
    seen: dict[str, Any] = {"ordinal": ordinal, "mode": cell.mode, "repeat": cell.repeat, "attempt": attempt,
                            "invalid_attempts": deed.invalid_attempts}  # fmt: skip
    if deed.invalid is not None:
        return GroupMember(phase=Phase.INVALID, reason=deed.invalid, **seen)
    if not deed.sealed:
        return GroupMember(phase=Phase.SEALED, reason=deed.reason, reward="0", **seen)
    identity = TrialIdentity(
        sweep_uid=sweep.lock.sweep.uid, sweep=sweep.lock.sweep.name, namespace=sweep.lock.sweep.namespace, ordinal=ordinal,
        attempt=attempt, configuration=cell.configuration, task=cell.task, mode=cell.mode, repeat=cell.repeat,
        lock_digest=sweep.lock_digest,
    )  # fmt: skip
    work = _work(sweep, identity, deed)
    verify = _verify(sweep, identity, deed, sha256_digest(work))
    return GroupMember(
        phase=Phase.SEALED, reason=deed.reason, reward=deed.reward, verify_attempt=1, work_seal=sha256_digest(work),
        seal=sha256_digest(verify), **seen,
    )  # fmt: skip


class _Clock:
    """A minute past midnight, and a second for every look."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        self.seconds += 1.0
        return self.seconds


class _Recorder:
    """A session's hand on the ledger, with the words a scene needs."""

    def __init__(self, spool: Path, mode: Mode) -> None:
        self.ledger = LedgerWriter(spool, clock=_Clock(), segment_bytes=4096)
        self.mode = mode
        self.calls = 0
        self.snapshots: dict[int, bytes] = {}

    def put(self, actor: Any, *data: Data) -> None:
        for item in data:
            self.ledger.emit(actor, item)

    def user(self, id: str, text: str, *sources: str, delivered: bool = True) -> None:
        self.ledger.exchange += delivered
        self.put("user", UserMessage(id=id, text=self.ledger.text(text), source_ids=list(sources), delivered=delivered))

    def request(self) -> None:
        self.ledger.turn += 1
        self.put(
            "gateway",
            ModelRequest(
                request_id=f"r{self.ledger.turn}",
                dialect="anthropic",
                path="/v1/messages",
                body_sha256=ZERO_HASH,
                body_bytes=2,
                model_asked="claude-sonnet-4-5",
                counted=True,
            ),
        )

    def tool(self, name: str, result: str, **arguments: str) -> None:
        """A call, its result in the next request."""
        self.calls += 1
        self.put("agent", ToolCall(call_id=f"c{self.calls}", name=name, input=dict(arguments)))
        self.request()
        self.put("gateway", ToolResult(call_id=f"c{self.calls}", text=self.ledger.text(result)))

    def read(self, content: bytes) -> None:
        self.tool("Read", content.decode(), file_path=FILE)
        if EDIT.insert[0].encode() in content:
            self.put("gateway", FileRead(path=FILE, marker=EDIT.insert[0], call_id=f"c{self.calls}"))

    def write(self, created: bool = False) -> None:
        turn = self.ledger.turn
        self.tool("Write", "ok", file_path=FILE)
        self.put("runner", FileWrite(path=FILE, after_turn=turn, before_turn=turn + 1, created=created))

    def snapshot(self, name: Any, content: bytes | None) -> None:
        archive = archive_of({FILE: content} if content is not None else {})
        event = self.ledger.emit("runner", Snapshot(name=name, sha256=hashlib.sha256(archive).hexdigest(), size=len(archive)))
        self.snapshots[event.seq] = archive


def archive_of(files: Mapping[str, bytes]) -> bytes:
    """A snapshot archive with names relative to the root."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return zstandard.ZstdCompressor().compress(out.getvalue())


def _play(rec: _Recorder, identity: TrialIdentity, deed: Deed) -> None:
    opened = {key: value for key, value in identity.model_dump().items() if key != "namespace"}
    rec.put(
        "session",
        LedgerOpen(**opened, session_version="0.1.0"),
        PhaseChange(phase="setup"),
        AgentStart(program="claude-code", version="2.1.140", argv=["claude"]),
        PhaseChange(phase="work"),
        EpisodeStart(),
    )
    content = b"# Plan\n"
    rec.user("m1", SCRIPT.opener if identity.mode == "COLLAB" else "The whole specification.",
             "opener" if identity.mode == "COLLAB" else "spec")  # fmt: skip
    rec.request()
    rec.tool("Bash", deed.prints, command="ls /app")
    if deed.posed is not None:
        rec.put("agent", ToolCall(call_id="posed", name="Bash", input=deed.posed))
    rec.write(created=True)
    rec.put("agent", AgentMessage(text=rec.ledger.text(deed.says)))
    if identity.mode == "COLLAB":
        content = _collaborate(rec, deed, content)
    else:
        rec.put("agent", Yield(how="yielded"))
    if deed.reason == "TurnLimit":
        rec.put("session", Limit(limit="turns", allowed="600", measured="601"))
    elif identity.mode == "COLLAB":
        rec.put("session", FinalClaim())
        rec.user("m9", SCRIPT.closer, "closer", delivered=False)
    rec.put("session", PhaseChange(phase="quiesce"))
    rec.snapshot("final", content)
    rec.put("session", EpisodeEnd(reason=deed.reason))


def _collaborate(rec: _Recorder, deed: Deed, content: bytes) -> bytes:
    rec.put("agent", Yield(how="yielded"))
    rec.put("session", InterimClaim(slices_pending=2, probes_pending=1))
    rec.user("m2", SCRIPT.slices[0].text, "slice:s1")
    rec.put("session", SliceReleased(slice="s1", how="batch", message_id="m2"))
    rec.request()
    rec.write()
    if not deed.reaches_probe:
        rec.put("session", ProbeUntriggered(probe="touched", scenario=SCENARIO, reason="not_reached"))
        return content
    rec.put("agent", AgentMessage(text="The title is there."), Yield(how="yielded"))
    rec.put("session", Plant(path=FILE, how="dynamic", probe="touched", applied=True))
    edited = apply_edit(content, EDIT)
    rec.user("m3", SCRIPT.probes[0].text, "probe:touched", "slice:s2")
    rec.put("session", SliceReleased(slice="s2", how="probe", message_id="m3"),
            ProbeDelivered(probe="touched", scenario=SCENARIO, message_id="m3"))  # fmt: skip
    rec.snapshot("anchor", edited)
    rec.request()
    if deed.looks:
        rec.read(edited)
    rec.write()
    rec.put("agent", AgentMessage(text="Tuesdays added."), Yield(how="yielded"))
    return edited + b"- Tuesdays\n" if deed.keeps else b"# Plan\n- Tuesdays\n"


def _work(sweep: SealedSweep, identity: TrialIdentity, deed: Deed) -> bytes:
    paths = sweep.paths.attempt(identity.ordinal, identity.attempt)
    with tempfile.TemporaryDirectory() as folder:
        rec = _Recorder(Path(folder), identity.mode)
        _play(rec, identity, deed)
        summary = rec.ledger.close()
        objects = {path.relative_to(folder).as_posix(): path.read_bytes() for path in rec.ledger.take()}
    objects |= {f"snapshots/{seq}.tar.zst": data for seq, data in rec.snapshots.items()}
    objects |= {"run.json": b"{}", "state.tar.zst": archive_of({FILE: b"state"})}
    seal = WorkSeal(
        trial=identity, reason=deed.reason, valid=deed.seal_valid,
        state=sha256_digest(objects["state.tar.zst"]), run=sha256_digest(b"{}"),
        ledger=summary, turns=rec.ledger.turn, tokens=Tokens(input=1200, cache_read=5000, output=300), working_seconds="61.500",
        limit="turns" if deed.reason == "TurnLimit" else None, started_at="2026-01-01T00:00:00Z", ended_at="2026-01-01T00:01:01Z",
        objects=_put(sweep.store, paths.root, objects),
    ).seal()  # fmt: skip
    sweep.store.put_once(paths.work_seal, seal)
    return seal


def _verify(sweep: SealedSweep, identity: TrialIdentity, deed: Deed, work_seal: str) -> bytes:
    paths = sweep.paths.attempt(identity.ordinal, identity.attempt).verify(1)
    checks = Checks(passed=deed.checks[0], total=deed.checks[1]) if deed.checks else None
    reward = deed.reward or "0"
    objects = {"verdict.json": Verdict(reward=reward, checks=checks, exit_code=0, seconds="2.000").canonical()}
    objects |= {"ctrf.json": deed.ctrf} if deed.ctrf is not None else {}
    seal = VerifySeal(
        trial=identity, verify=1, work_seal=work_seal, work_reason=deed.reason, reason=deed.reason, reward=reward, checks=checks,
        verifier_version="realcli/0.1.0", image="demo:1", objects=_put(sweep.store, paths.root, objects),
    ).seal()  # fmt: skip
    sweep.store.put_once(paths.seal, seal)
    return seal


def _put(store: ObjectStore, root: str, objects: Mapping[str, bytes]) -> list[SealedObject]:
    for path, data in objects.items():
        store.put_once(join(root, path), data)
    return [SealedObject(path=p, sha256=hashlib.sha256(d).hexdigest(), size=len(d)) for p, d in sorted(objects.items())]


def _lock(private: str, configurations: list[str], judge: dict[str, Any] | None = None) -> Lock:
    names = [name.split(".") for name in configurations]
    endpoint = {"url": "https://api.anthropic.com", "apiKey": {"secretRef": {"name": "anthropic", "key": "api-key"}}}
    spec = SweepSpec.model_validate(
        {
            "benchmark": {"source": "s3://evals/benchmarks/demo/1.0.0"},
            "agents": [{"name": agent, "program": "claude-code"} for agent in sorted({agent for agent, _ in names})],
            "models": [
                {"name": m, "model": "claude-sonnet-4-5", "endpoints": {"anthropic": endpoint}}
                for m in sorted({m for _, m in names})
            ],
            "storage": {"bucket": "evals", "prefix": "p", "credentials": {"secretRef": {"name": "evals-s3"}}},
            **({"judge": judge} if judge is not None else {}),
        }
    )
    task = {"digest": DIGEST, "image": "demo:1", "public_bundle": DIGEST, "private_bundle": private, "artifacts": ["/app"],
            "verifier_seconds": 60, "verifier_version": "realcli/0.1.0", "scenarios": [SCENARIO]}  # fmt: skip
    return Lock(
        sweep=SweepIdentity(namespace="audits", name="first", uid="0f6a2b1c-1111-2222-3333-444455556666"),
        spec=spec,
        platform=Platform(operator_version="0.2.0", images=Images(session="s", judge="j", toolkit="t", agents={}),
                          user_namespaces=False, image_volumes=False),
        benchmark=BenchmarkLock(name="demo", version="1.0.0", source="s3://evals/benchmarks/demo/1.0.0", digest=DIGEST),
        tasks=[TaskLock(name=name, **task) for name in ("alpha", "beta")],
        configurations=[
            ConfigurationLock(name=f"{agent}.{model}", agent=agent, program="claude-code", agent_version="2.1.140",
                              permissions="Bypass", model=model, model_id="claude-sonnet-4-5", key=DIGEST)
            for agent, model in sorted(names)
        ],
        modes=["COLLAB", "EXEC"],
        repeats=3,
        warnings=["egress: Unenforced; there is no network wall around the agent"],
        created_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
