"""The lock (`sweep.json`) and the frozen plan: what a sweep runs, decided once by the plan Job.

The lock is the whole truth and lies in storage; the plan is the part the operator needs, printed by the plan Job as one line
of zstd+base64 between markers and kept as an immutable ConfigMap. Ordinal = index in the product (task, repeat, configuration,
mode), each sorted by name; repeats count from 1.
"""

from __future__ import annotations

import base64
from typing import Annotated, Literal, NamedTuple

import zstandard
from pydantic import Field, PrivateAttr

from realcli.api.agents import McpServer, Program, ToolImage
from realcli.api.base import Digest, Frozen, sha256_digest
from realcli.api.models import Api
from realcli.api.source import ModeEnds, PlanSource, Settled, Step
from realcli.api.sweep import Mode, SweepSpec

PLAN_BEGIN = "-----BEGIN REALCLI PLAN-----"
PLAN_END = "-----END REALCLI PLAN-----"
MAX_PLAN_BYTES = 900_000

Trust = Literal["artifacts", "system"]
"""What verify believes of the state: declared paths, or everything the run changed in the root."""


class Resources(Frozen):
    """Kubernetes quantities of the task's container."""

    cpu: str = "1"
    memory: str = "2Gi"
    storage: str = "10Gi"


class TaskLock(Frozen):
    """One task as run."""

    name: str
    digest: Digest  # over the whole task: public and private bundle digests, image
    image: str  # as the index names it; with @sha256 where the index has it
    public_bundle: Digest
    private_bundle: Digest
    trust: Trust = "artifacts"
    libc: Literal["glibc", "musl", "none"] = "glibc"
    exec_permissions: Literal["allow", "deny"] = "allow"  # the fixed answer to permission prompts in EXEC
    needs_setuid: bool = False  # sudo or setuid programs: no no_new_privs, so no exec record
    mock_hosts: list[str] = []  # outside hosts the session serves on loopback
    workdir: str = "/app"
    artifacts: list[str]  # absolute paths restored on the pristine image
    watch: list[str] = []  # globs of paths whose changes are recorded
    verifier_seconds: float
    verifier_version: str
    resources: Resources = Resources()
    scenarios: list[str] = []  # template ids bound in COLLAB
    category: str | None = None
    information_structure: str | None = None  # additive, consistency


class SetupLock(Frozen):
    """The team's own set-up of one agent, pinned. The files lie at `<root>/setups/<hex>.tar.zst` (folders Config/ and Work/)."""

    digest: Digest  # over everything below
    archive: Digest | None = None  # sha256 of the archive; None: no files
    files: int = 0
    mcp_servers: list[McpServer] = []
    tool_images: list[ToolImage] = []
    in_reach: list[str] = []  # "<secret>/<key>" of secrets the agent can read


class ConfigurationLock(Frozen):
    """One agent with one model. `key` covers every setting that may change what is measured."""

    name: str  # <agent>.<model>
    agent: str
    program: Program
    api: Api = "anthropic"  # the wire API it speaks
    agent_version: str
    permissions: str
    effort: str | None = None
    visible_text: str = ""  # which texts of this program a user sees: decides most of U
    setup: SetupLock | None = None
    model: str  # short name
    model_id: str  # sent to the provider
    accepted_ids: list[str] = []  # further ids the provider may answer with
    resolved_model: str | None = None  # the id that answered the plan's test request
    key: Digest


class Deviation(Frozen):
    """A setting that differs from the pinned program's default, with its reason."""

    program: str
    setting: str
    value: str
    reason: str


class Images(Frozen):
    """Images the operator runs the sweep with."""

    session: str
    judge: str
    toolkit: str
    agents: dict[str, str]  # "<program>/<version>" -> image


class Platform(Frozen):
    """What the operator resolved of the cluster; an input of the plan Job."""

    operator_version: str
    images: Images
    user_namespaces: bool
    image_volumes: bool
    cluster_domain: str = "cluster.local"
    control: bool = False  # the session has the program `control`; not so before 0.4


class Cgroup(Frozen):
    """What a node kills when a container takes more memory than its limit: cgroup v1 one process, v2 the container as a rule."""

    version: Literal["1", "2"]
    kills: Literal["Process", "Container"]


class SweepIdentity(Frozen):
    """Which object asked for it."""

    namespace: str
    name: str
    uid: str


class BenchmarkLock(Frozen):
    """The benchmark as read."""

    name: str
    version: str
    source: str
    digest: Digest  # of index.json


class SourceLock(Frozen):
    """Where the runs of a sweep with `spec.from` come from: what its source counted, pinned by digests.

    Tasks, configurations, modes and repeats of the lock are the source's. `trials/<ordinal>/source.json` says of each trial where
    its sealed run lies (realcli.scoring.sources).
    """

    sweep: SweepIdentity
    root: str  # key of its root, in the same bucket
    lock_digest: Digest  # of its sweep.json
    benchmark: BenchmarkLock  # that it ran
    phases: list[Step]
    groups: list[Digest]  # by number of the group in this plan: over the source.json of its trials
    exec: ModeEnds = ModeEnds()
    collab: ModeEnds = ModeEnds()
    incomplete: list[int] = []  # numbers of groups (in this plan) with a trial that ended Invalid there
    settled: list[Settled] = []

    @property
    def verify(self) -> bool:
        """Whether the tests run again."""
        return "Verify" in self.phases


class Lock(Frozen):
    """`sweep.json`: the spec as run, resolved defaults, every digest. Enough to run it again."""

    schema_: Literal["realcli.dev/lock/1"] = Field(default="realcli.dev/lock/1", alias="schema")
    sweep: SweepIdentity
    spec: SweepSpec
    platform: Platform
    egress: Literal["Unenforced"] = "Unenforced"
    benchmark: BenchmarkLock
    tasks: list[TaskLock]  # sorted by name
    configurations: list[ConfigurationLock]  # sorted by name
    modes: list[Mode]  # sorted
    repeats: Annotated[int, Field(ge=1)]
    deviations: list[Deviation] = []
    judge_model: str | None = None  # the id that answered the test request to spec.judge.model; "": the answer named none
    warnings: list[str] = []
    source: SourceLock | None = None  # None: its agents run
    cgroup: Cgroup | None = None  # of the plan Job's node, and so of every node that a trial may run on; None: unknown
    created_at: str


class PlanTask(Frozen):
    """What the operator needs of a task to build its pods."""

    name: str
    image: str
    trust: Trust = "artifacts"
    needs_setuid: bool = False
    mock_hosts: bool = False  # the session serves outside hosts on ports 80 and 443 of the pod's loopback
    verifier_seconds: float
    resources: Resources = Resources()


class PlanConfiguration(Frozen):
    """What the operator needs of a configuration."""

    name: str
    agent: str
    program: Program
    api: Api = "anthropic"
    agent_version: str
    model: str


class Coordinates(NamedTuple):
    """A cell of the product."""

    ordinal: int
    task: str
    repeat: int
    configuration: str
    mode: Mode


class Plan(Frozen):
    """The frozen plan. Stores the factors, not the rows.

    One that another version wrote keeps the bytes it was read from: its digest is in the status of the sweep and in the spec of
    every Trial, and the fields that have come since must not move it.
    """

    schema_: Literal["realcli.dev/plan/1"] = Field(default="realcli.dev/plan/1", alias="schema")
    sweep_uid: str
    root: str  # storage key prefix of the sweep, ends without "/"
    lock_digest: Digest
    benchmark_digest: Digest
    platform: Platform  # that of the lock: every pod of the sweep is built for it, whatever the operator is by then
    egress: Literal["Unenforced"] = "Unenforced"
    tasks: list[PlanTask]  # sorted by name
    configurations: list[PlanConfiguration]  # sorted by name
    modes: list[Mode]  # sorted
    repeats: Annotated[int, Field(ge=1)]
    warnings: list[str] = []
    source: PlanSource | None = None  # None: its agents run
    cgroup: Cgroup | None = None  # that of the lock
    _written: bytes | None = PrivateAttr(default=None)

    def canonical(self) -> bytes:
        """See `Frozen.canonical`; of a plan of another version the bytes as they were written."""
        return super().canonical() if self._written is None else self._written

    def content_digest(self) -> str:
        """See `Frozen.content_digest`; worked out once, as every Trial that is made carries it."""
        whose, digest = self.__dict__.get("_digest_of", (0, ""))
        if whose != id(self):  # a copy with other values brings along what was known of the first
            digest = super().content_digest()
            self.__dict__["_digest_of"] = (id(self), digest)
        return str(digest)

    @classmethod
    def read(cls, raw: bytes) -> Plan:
        """Inverse of `canonical`; ValueError."""
        plan = cls.model_validate_json(raw)
        if plan.canonical() != raw:
            plan._written = raw
        return plan

    @property
    def size(self) -> int:
        """Number of trials."""
        return len(self.tasks) * self.repeats * len(self.configurations) * len(self.modes)

    @property
    def judged_only(self) -> bool:
        """Whether no trial of it runs anything: another sweep's runs are judged again."""
        return self.source is not None and not self.source.verify

    @property
    def groups(self) -> int:
        """Number of groups (configuration, task)."""
        return len(self.tasks) * len(self.configurations)

    def coordinates(self, ordinal: int) -> Coordinates:
        """The cell of an ordinal; IndexError outside the plan."""
        if not 0 <= ordinal < self.size:
            raise IndexError(f"ordinal {ordinal} is not in the plan of {self.size} trials")
        rest, mode = divmod(ordinal, len(self.modes))
        rest, configuration = divmod(rest, len(self.configurations))
        task, repeat = divmod(rest, self.repeats)
        return Coordinates(ordinal, self.tasks[task].name, repeat + 1, self.configurations[configuration].name, self.modes[mode])

    def ordinals_of_group(self, group: int) -> list[int]:
        """Ordinals of group number `group` (0-based; configuration-major: configuration, then task), sorted."""
        configuration, task = divmod(group, len(self.tasks))
        per_repeat = len(self.configurations) * len(self.modes)
        first = task * self.repeats * per_repeat + configuration * len(self.modes)
        return [first + r * per_repeat + m for r in range(self.repeats) for m in range(len(self.modes))]

    def group_of(self, ordinal: int) -> int:
        """The group an ordinal belongs to."""
        rest, _ = divmod(ordinal, len(self.modes))
        rest, configuration = divmod(rest, len(self.configurations))
        return configuration * len(self.tasks) + rest // self.repeats


def plan_of(lock: Lock, root: str, lock_digest: str) -> Plan:
    """What the operator needs of the lock."""
    return Plan(
        sweep_uid=lock.sweep.uid,
        root=root,
        lock_digest=lock_digest,
        benchmark_digest=lock.benchmark.digest,
        egress=lock.egress,
        platform=lock.platform,
        tasks=[
            PlanTask(
                name=t.name,
                image=t.image,
                trust=t.trust,
                needs_setuid=t.needs_setuid,
                mock_hosts=bool(t.mock_hosts),
                verifier_seconds=t.verifier_seconds,
                resources=t.resources,
            )
            for t in lock.tasks
        ],
        configurations=[
            PlanConfiguration(
                name=c.name, agent=c.agent, program=c.program, api=c.api, agent_version=c.agent_version, model=c.model
            )
            for c in lock.configurations
        ],
        modes=lock.modes,
        repeats=lock.repeats,
        cgroup=lock.cgroup,
        warnings=lock.warnings,
        source=None if lock.source is None else _source(lock.source),
    )


def _source(lock: SourceLock) -> PlanSource:
    return PlanSource(
        sweep=f"{lock.sweep.namespace}/{lock.sweep.name}",
        verify=lock.verify,
        exec=lock.exec,
        collab=lock.collab,
        incomplete=[] if lock.verify else lock.incomplete,
        settled=lock.settled if lock.verify else [],
    )


def trial_name(sweep: str, ordinal: int) -> str:
    """`<sweep>-<5 digits>`."""
    return f"{sweep}-{ordinal:05d}"


def encode_plan(plan: Plan) -> str:
    """One line: base64 of zstd of the canonical JSON. ValueError if over 900 kB."""
    line = base64.b64encode(zstandard.ZstdCompressor(level=19).compress(plan.canonical())).decode()
    if len(line) > MAX_PLAN_BYTES:
        raise ValueError(f"the plan is {len(line)} bytes encoded; at most {MAX_PLAN_BYTES} fit a ConfigMap: split the sweep")
    return line


def decode_plan(line: str, expected: str | None = None) -> Plan:
    """Inverse of `encode_plan`; ValueError if it is damaged or its digest is not `expected`."""
    try:
        raw = zstandard.ZstdDecompressor().decompress(base64.b64decode(line, validate=True), max_output_size=64 << 20)
    except (ValueError, zstandard.ZstdError) as error:
        raise ValueError(f"the plan line is damaged: {error}") from error
    if expected is not None and sha256_digest(raw) != expected:
        raise ValueError(f"the plan's digest is {sha256_digest(raw)}, expected {expected}")
    return Plan.read(raw)


def plan_in_log(log: str, expected: str) -> Plan:
    """The plan printed in a plan Job's log (the last complete marker pair); ValueError if there is none."""
    lines = [line.strip() for line in log.splitlines()]
    for index in range(len(lines) - 3, -1, -1):
        if lines[index] == PLAN_BEGIN and lines[index + 2] == PLAN_END:
            return decode_plan(lines[index + 1], expected)
    raise ValueError("the plan Job's log holds no plan between its markers")
