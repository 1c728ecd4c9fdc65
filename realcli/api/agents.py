"""Agents under test and the set-up a team gives them, as a person names them in a sweep."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, StringConstraints

from realcli.api.base import Digest, DnsLabel, Frozen
from realcli.api.models import Api, SecretKeyRef, SecretName

Program = Literal["claude-code", "codex", "terminus-2"]


class ProgramFacts(NamedTuple):
    """What planning has to know of an agent program."""

    api: Api
    version: str  # the pinned one
    libc: tuple[str, ...]  # of images it can be started in
    permissions: tuple[str, ...]


PROGRAMS: dict[str, ProgramFacts] = {
    "claude-code": ProgramFacts("anthropic", "2.1.140", ("glibc",), ("Bypass", "Ask")),
    "codex": ProgramFacts("responses", "0.142.0", ("glibc", "musl", "none"), ("Bypass", "Ask")),
    "terminus-2": ProgramFacts("chat", "0.26.0", ("glibc", "musl", "none"), ("Bypass",)),  # harbor's version; it asks for nothing
}


class Permissions(StrEnum):
    """The agent program's permission mode."""

    BYPASS = "Bypass"
    ASK = "Ask"


class Root(StrEnum):
    """Where files of a set-up go."""

    CONFIG = "Config"
    WORK = "Work"


class FileItem(Frozen):
    """One file out of a ConfigMap."""

    key: Annotated[str, StringConstraints(min_length=1, max_length=253)] = Field(description="Key of the ConfigMap.")
    path: Annotated[str, StringConstraints(pattern=r"^[^/\s][^\r\n]*$", min_length=1, max_length=1024)] = Field(
        description="Path below root."
    )
    root: Root = Field(
        default=Root.CONFIG, description="Config: the program's configuration folder; Work: the task's working directory."
    )


class ConfigMapFiles(Frozen):
    """Files out of a ConfigMap in the sweep's namespace."""

    name: SecretName = Field(description="Name of the ConfigMap.")
    items: Annotated[list[FileItem], Field(min_length=1, max_length=100)] = Field(description="Which keys go where.")


class AgentFiles(Frozen):
    """Files of the team's own set-up: settings, hooks, skills, instructions. Either source and digest, or configMapRef."""

    source: Annotated[str, StringConstraints(pattern=r"^s3://[^/]+/.+\.tar\.zst$", max_length=512)] | None = Field(
        default=None, description="s3://bucket/path.tar.zst with the folders Config/ and Work/."
    )
    digest: Digest | None = Field(default=None, description="sha256 of that archive; required with source.")
    config_map_ref: ConfigMapFiles | None = Field(default=None, description="Files out of a ConfigMap.")


class ToolImage(Frozen):
    """An image whose files the agent finds read-only at a path."""

    image: Annotated[str, StringConstraints(min_length=1, max_length=512)] = Field(description="Image; pin it by digest.")
    mount_path: Annotated[str, StringConstraints(pattern=r"^/[^\s:]+$", max_length=256)] = Field(description="Absolute path.")


class McpEnv(Frozen):
    """One environment variable of an MCP server: value or secretRef."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)] = Field(description="Name.")
    value: Annotated[str, StringConstraints(max_length=4096)] | None = Field(default=None, description="Plain value.")
    secret_ref: SecretKeyRef | None = Field(
        default=None, description="Key of a Secret. It is in the agent's reach, and marked so in lock and report."
    )


class McpServer(Frozen):
    """An MCP server that the agent program starts inside the task's container."""

    name: DnsLabel = Field(description="Name.")
    command: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=1024)]], Field(min_length=1, max_length=64)
    ] = Field(description="Command line.")
    env: Annotated[list[McpEnv], Field(max_length=64)] = Field(default=[], description="Environment.")


class AgentOptions(Frozen):
    """Options of the program itself."""

    effort: Literal["low", "medium", "high"] | None = Field(
        default=None, description="Reasoning effort; default: the program's own. claude-code and codex know it."
    )


class Agent(Frozen):
    """An agent program under test."""

    name: DnsLabel = Field(description="Short name; part of the configuration's name.")
    program: Program | None = Field(default=None, description="Agent program; default: the name.")
    version: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = Field(
        default=None, description="Version of the program; default: the pinned one. An operator image must exist for it."
    )
    permissions: Permissions = Field(
        default=Permissions.BYPASS,
        description="Permission mode. Ask: the program asks; in COLLAB the script answers, in EXEC the task's fixed policy.",
    )
    options: AgentOptions = Field(default=AgentOptions(), description="Options of the program.")
    files: AgentFiles | None = Field(default=None, description="Files of the team's own set-up.")
    tool_images: Annotated[list[ToolImage], Field(max_length=8)] = Field(
        default=[], description="Images with tools, mounted read-only into the agent's container."
    )
    mcp_servers: Annotated[list[McpServer], Field(max_length=16)] = Field(default=[], description="MCP servers.")

    @property
    def resolved_program(self) -> str:
        """The program, which is the name where none is given."""
        return self.program or self.name

    @property
    def resolved_version(self) -> str:
        """The version, which is the pinned one where none is given; "" for an unknown program."""
        if self.version is not None:
            return self.version
        facts = PROGRAMS.get(self.resolved_program)
        return "" if facts is None else facts.version
