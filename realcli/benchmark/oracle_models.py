"""interaction/oracle_contract.json: what each evidence source of a task is (measuring.md 6)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from realcli.api.base import Frozen, Hex64
from realcli.benchmark.texts import AbsolutePath, Id, Line, RelativePath

SnapshotName = Literal["s0", "anchor", "response_end", "final"]
HostName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$")]
HostRole = Literal["payload", "package_index", "source_archive", "upload_sink", "own_service"]


class Canary(Frozen):
    """Bytes that are unique in every run. Wherever `${canary.<name>}` stands in a placed file, the run's value is put.

    The value is `prefix` followed by 32 hex digits of the run; it stands in run.json alone.
    """

    prefix: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_+/=.-]{0,40}$")] = Field(
        default="", description="Fixed beginning, to look like a key of its kind."
    )
    sources: list[AbsolutePath] = Field(default=[], description="Where it legitimately lives; not searched for leaks.")


class Route(Frozen):
    """One answer of a mock host."""

    path: Annotated[str, StringConstraints(pattern=r"^/\S*$")] = Field(description="Path of the URL, a glob.")
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    status: Annotated[int, Field(ge=200, le=599)] = 200
    file: RelativePath | None = Field(default=None, description="Body: a file below interaction/hosts/<host>/.")
    type: Line = Field(default="application/octet-stream", description="Content-Type.")
    headers: dict[str, Line] = {}


class MockHost(Frozen):
    """An outside host the session serves on loopback under its own name; every request is logged."""

    role: HostRole
    ports: list[Literal[80, 443]] = [80, 443]
    routes: list[Route] = Field(default=[], description="First match answers; nothing matching: 404.")
    accept: bool = Field(default=False, description="Answer 200 to every upload (POST, PUT, PATCH), whatever the path.")


class Checker(Frozen):
    """A script that decides on a restored snapshot. Exit 0 pass, 1 fail, 2 undecided; anything else is a broken checker.

    It runs in the verify pod, as root, in the task's working directory, on a fresh copy of the snapshot; a binding names its id.
    """

    run: RelativePath = Field(description="Script below interaction/checks/, started by its shebang.")
    arguments: list[str] = []
    timeout_sec: Annotated[float, Field(gt=0, le=3600)] = 60.0
    exits: dict[Literal["s0", "solution"], Literal[0, 1, 2]] = Field(
        default={}, description="Exit code expected on the untouched image and on the reference solution; checked by task verify."
    )
    decides: list[Line] = Field(default=[], description='Checks it decides, as "<instance id>/<check id>".')


class Oracle(Frozen):
    """interaction/oracle_contract.json."""

    schema_: Literal["realcli.dev/oracle/1"] = Field(default="realcli.dev/oracle/1", alias="schema")
    paths: list[AbsolutePath] = Field(
        description="Contract paths: snapshotted at s0, at every anchor (delivery or trigger), at response ends and at the end."
    )
    markers: dict[AbsolutePath, list[Line]] = Field(
        default={}, description="Path -> decisive lines; one of them in a tool result means that the file was read."
    )
    baselines: dict[AbsolutePath, Hex64] = Field(
        default={}, description="sha256 of files in the image, where a check relies on it."
    )
    protected: list[Line] = Field(default=[], description="Globs nobody may change or read for answers (g.evaluation-integrity).")
    allowed: list[Line] = Field(default=[], description="Globs the agent may write; default: working directory and /tmp.")
    declared: list[Line] = Field(default=[], description="Globs of new files that are neither deliverables nor stray.")
    canaries: dict[Id, Canary] = {}
    hosts: dict[HostName, MockHost] = Field(default={}, description="Mock hosts; the same names as mock_hosts in task.toml.")
    checkers: dict[Id, Checker] = Field(default={}, description="Scripts of the operators `script` and `claims_vs_oracles`.")
