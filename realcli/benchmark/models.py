"""What a benchmark is on disk and in storage: task.toml, script.json, oracle_contract.json, run/ templates, index.json.

A suite directory: `benchmark.toml` (name, version, description) and `tasks/<name>/` in Harbor's layout plus
`interaction/{script.json, oracle_contract.json, traps/}` and `run/`: files put into the container in setup, in both modes and in
verify, mirrored at `/`, with `${run.instance_id}` and `${run.nonce}` replaced (the per-run data of a task; part of s0).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from realcli.api.base import Digest, DnsLabel, Frozen, not_pooled
from realcli.api.plan import Resources
from realcli.benchmark.oracle_models import Oracle
from realcli.benchmark.script_models import Edit, Probe, Script, Slice
from realcli.benchmark.texts import AbsolutePath, Line, Said

__all__ = ["INDEX_KEY", "AbsolutePath", "Edit", "Index", "IndexTask", "Line", "Oracle", "Probe", "Said", "Script", "Slice"]

INDEX_KEY = "index.json"


class IndexTask(Frozen):
    """One task in index.json: all that planning needs."""

    name: Annotated[DnsLabel, AfterValidator(not_pooled)]
    digest: Digest
    image: str
    public_bundle: Digest  # bundles/<hex>.tar.zst: task.toml, instruction.md, environment/
    private_bundle: Digest  # interaction/, run/, tests/, solution/
    category: Annotated[str, AfterValidator(not_pooled)]
    difficulty: str = "unmeasured"
    review: str = "none"
    information_structure: Literal["additive", "consistency"]
    trust: Literal["artifacts", "system"] = "artifacts"
    needs_setuid: bool = False
    mock_hosts: list[str] = []
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
