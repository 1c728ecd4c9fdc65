"""task.toml: Harbor's task file, schema 1.4, as far as this version runs it, and our keys in [metadata.realcli].

Names and meanings are Harbor's; a key whose effect this version does not have is refused, never read and dropped, because a
task that silently runs without it would be measured as something else.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from realcli.api.base import not_pooled
from realcli.api.plan import Resources
from realcli.benchmark.models import AbsolutePath
from realcli.benchmark.oracle_models import HostName


class Section(BaseModel):
    """A table of the file: snake_case as Harbor writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Package(Section):
    """[task]: the package's name in a registry."""

    name: str
    version: str | None = None
    description: str = ""
    authors: list[dict[str, str]] = []
    keywords: list[str] = []


class RealcliMetadata(Section):
    """[metadata.realcli] (measuring.md 1). Values of a later version are refused by their type."""

    trust: Literal["artifacts", "system"] = "artifacts"
    services: Annotated[list[Any], Field(max_length=0)] = []
    watch: list[AbsolutePath] = []
    mock_hosts: list[HostName] = []
    exec_permissions: Literal["allow"] = "allow"
    needs_setuid: bool = False
    libc: Literal["glibc", "musl", "none"] = "glibc"
    information_structure: Literal["additive", "consistency"]
    plants: Literal["Both"] = "Both"
    difficulty: str = "unmeasured"
    review: str = "none"


class Metadata(BaseModel):
    """[metadata]: free-form in Harbor; we need `category` and our own table."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())
    category: Annotated[str, Field(min_length=1), AfterValidator(not_pooled)]
    realcli: RealcliMetadata


class Verifier(Section):
    """[verifier]. Verification runs in a pod of its own, which is Harbor's `separate`."""

    timeout_sec: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    environment_mode: Literal["separate"] = "separate"
    user: Literal["root"] | None = None


class Agent(Section):
    """[agent]."""

    user: str | None = None


class Environment(Section):
    """[environment]."""

    docker_image: Annotated[str, Field(min_length=1)]
    build_timeout_sec: float = 600.0
    os: Literal["linux"] = "linux"
    cpus: Annotated[float, Field(gt=0)] | None = None
    memory_mb: Annotated[int, Field(gt=0)] | None = None
    storage_mb: Annotated[int, Field(gt=0)] | None = None
    workdir: AbsolutePath
    network_mode: Literal["no-network"]

    def resources(self) -> Resources:
        """As Kubernetes quantities; what the file leaves out has our default."""
        default = Resources()
        return Resources(
            cpu=default.cpu if self.cpus is None else f"{self.cpus:g}",
            memory=default.memory if self.memory_mb is None else f"{self.memory_mb}Mi",
            storage=default.storage if self.storage_mb is None else f"{self.storage_mb}Mi",
        )


class Artifact(Section):
    """An entry of `artifacts`: a path of the container that verify restores."""

    source: AbsolutePath


class TaskToml(Section):
    """The file."""

    schema_version: Literal["1.4"]
    task: Package | None = None
    metadata: Metadata
    verifier: Verifier = Verifier()
    agent: Agent = Agent()
    environment: Environment
    artifacts: Annotated[list[AbsolutePath | Artifact], Field(min_length=1)]

    def artifact_paths(self) -> list[str]:
        """Absolute paths restored on the pristine image."""
        return [entry.source if isinstance(entry, Artifact) else entry for entry in self.artifacts]


REMEDIES = {
    "schema_version": 'write schema_version = "1.4"',
    "environment.network_mode": 'write network_mode = "no-network"; tasks that need a network are not run by this version',
    "environment.allowed_hosts": "remove it; tasks that need a network are not run by this version",
    "environment.docker_image": "name the image the task runs in, e.g. registry.example/tasks/name:1.0.0",
    "environment.env": "put variables into the image (Dockerfile ENV)",
    "environment.memory": "write memory_mb = <megabytes>",
    "environment.storage": "write storage_mb = <megabytes>",
    "environment.workdir": "name the directory agent and tests start in, e.g. /app",
    "agent.timeout_sec": "remove it; the agent's time limits come from the sweep (spec.limits)",
    "verifier.environment_mode": 'write "separate" or leave it out; tests run in a pod of their own',
    "artifacts": "list the absolute paths that make up the result; only they reach the tests",
    "steps": "split the task; tasks of several steps are not run by this version",
    "metadata.category": 'name one, e.g. category = "data analysis"',
    "metadata.realcli": "add the table [metadata.realcli] with information_structure",
    "metadata.realcli.information_structure": 'write "additive" or "consistency"',
    "metadata.realcli.trust": 'write "artifacts" (declared paths) or "system" (the whole root); "inplace" is not run yet',
    "metadata.realcli.services": "remove it; services are not started by this version",
    "metadata.realcli.mock_hosts": "write host names in lower case, e.g. packages.example",
    "metadata.realcli.exec_permissions": 'write "allow"; this version answers no prompt with a refusal',
    "metadata.realcli.plants": 'write "Both"; this version puts static plants into both modes',
}
