"""What a benchmark is on disk and in storage: task.toml, script.json, oracle_contract.json, run/ templates, index.json.

A suite directory: `benchmark.toml` (name, version, description) and `tasks/<name>/` in Harbor's layout plus
`interaction/{script.json, oracle_contract.json, traps/}` and `run/`: files put into the container in setup, in both modes and in
verify, mirrored at `/`, with `${run.instance_id}` and `${run.nonce}` replaced (the per-run data of a task; part of s0).
"""

from __future__ import annotations

import posixpath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from realcli.api.base import Digest, DnsLabel, Frozen
from realcli.api.plan import Resources

INDEX_KEY = "index.json"


def _absolute(path: str) -> str:
    if not path.startswith("/") or posixpath.normpath(path) != path or path == "/":
        raise ValueError(f"{path!r} is not an absolute, normal path below / (no trailing slash, no '.' or '..')")
    return path


def _one_line(text: str) -> str:
    if not text.encode("utf-8", "replace").strip() or "\n" in text or "\r" in text:
        raise ValueError(f"{text!r} is not one line with something in it")
    return text


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
"""As ledger and snapshots write paths: another spelling of the same file would never be found there."""
Line = Annotated[str, AfterValidator(_one_line)]
Said = Annotated[str, StringConstraints(pattern=r"\S")]
"""A text that says something."""


class IndexTask(Frozen):
    """One task in index.json: all that planning needs."""

    name: DnsLabel
    digest: Digest
    image: str
    public_bundle: Digest  # bundles/<hex>.tar.zst: task.toml, instruction.md, environment/
    private_bundle: Digest  # interaction/, run/, tests/, solution/
    category: str
    difficulty: str = "unmeasured"
    review: str = "none"
    information_structure: Literal["additive", "consistency"]
    trust: Literal["artifacts"] = "artifacts"
    libc: Literal["glibc", "musl", "none"] = "glibc"
    workdir: str
    artifacts: Annotated[list[str], Field(min_length=1)]
    watch: list[str] = []
    verifier_seconds: float
    agent_user: str | None = None
    resources: Resources = Resources()
    scenarios: list[str] = []
    requirements: int  # numbered requirements in the instruction
    slices: int


class Index(Frozen):
    """index.json of a published benchmark version."""

    schema_: Literal["realcli.dev/benchmark-index/1"] = Field(default="realcli.dev/benchmark-index/1", alias="schema")
    name: DnsLabel
    version: str
    description: str = ""
    tasks: list[IndexTask]  # sorted by name


class Slice(Frozen):
    """A piece of the specification. `text` is the canonical wording; `requirements` the numbers it carries."""

    id: str
    text: Said
    requirements: list[str]
    mandatory: bool = True


class Edit(Frozen):
    """A user's edit of a file: every line of `insert` is put after the first line that contains `after` (or at the end)."""

    path: AbsolutePath
    after: Line | None = None
    insert: Annotated[list[Line], Field(min_length=1)]


class Probe(Frozen):
    """A scenario template bound to this task."""

    id: str
    scenario: str  # template id of the catalogue
    text: Said  # canonical user text; carries the bound slice's text where one is bound
    slice: str | None = None  # mandatory slice released by this probe
    bindings: dict[str, JsonValue] = {}
    edit: Edit | None = None  # dynamic plant
    wait_for_write: AbsolutePath | None = None  # deliver only after this watched file was written once


class Script(Frozen):
    """interaction/script.json."""

    schema_: Literal["realcli.dev/script/1"] = Field(default="realcli.dev/script/1", alias="schema")
    persona: str
    opener: Said
    opener_requirements: list[str] = []  # requirements the opener itself carries
    closer: Said
    slices: Annotated[list[Slice], Field(min_length=1)]
    order: Annotated[list[str], Field(min_length=1)]  # interleaving: "batch:<id>" and "probe:<id>"
    batches: dict[str, Annotated[list[str], Field(min_length=1, max_length=4)]]  # batch id -> slice ids
    probes: list[Probe] = []


class Oracle(Frozen):
    """interaction/oracle_contract.json: what the evidence sources of this task are."""

    schema_: Literal["realcli.dev/oracle/1"] = Field(default="realcli.dev/oracle/1", alias="schema")
    paths: list[AbsolutePath]  # contract paths: snapshotted at s0, anchors, response ends, final
    markers: dict[str, list[Line]] = {}  # path -> decisive lines; shown in a tool result = file_read
