"""The user's own set-up in the container: files into the program's configuration folder and the working directory, MCP servers.

It is part of what is measured, so almost everything is allowed: instructions, hooks, skills, sub-agents, permission rules.
Refused is what would take the agent away from the instrument: another address, key or model, a second channel of questions.
"""

from __future__ import annotations

import io
import json
import tarfile
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, NamedTuple

from realcli_session.agents.port import AgentSpec, McpServer, OwnSetup, SetupRefused
from realcli_session.runner.errors import RunnerError
from realcli_session.runner.port import RunnerPort

MAX_BYTES = 256 << 20
MAX_ENTRIES = 20_000
_CHUNK = 1 << 16


class Entry(NamedTuple):
    """One member of the archive, below its folder."""

    root: str  # Config, Work
    path: str  # relative, no leading or trailing slash; "" is the folder itself
    info: tarfile.TarInfo
    data: bytes

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return f"{self.root}/{self.path}"


def read(setup: OwnSetup) -> list[Entry]:
    """The archive's members, checked. SetupRefused names the first one that cannot be installed."""
    return [] if setup.files is None else list(_members(setup.files))


def count(setup: OwnSetup) -> int:
    """Regular files in it."""
    return sum(entry.info.isreg() for entry in read(setup))


async def install(runner: RunnerPort, spec: AgentSpec, program: str, folder: str, extra: Mapping[str, bytes]) -> None:
    """Make `folder` (the program's configuration) and put everything in place; `extra` stands for files of the same name.

    SetupRefused, RunnerLost.
    """
    entries = read(spec.setup) if spec.setup is not None else []
    check(program, entries)
    config = [entry for entry in entries if entry.root == "Config"]
    config = [entry for entry in config if entry.path not in extra]
    config += [Entry("Config", name, _file(len(data), 0o600), data) for name, data in extra.items()]
    work = [entry for entry in entries if entry.root == "Work"]
    try:
        await _put(runner, spec, folder, [Entry("Config", "", _folder(0o700), b""), *config])
        if work:
            await _put(runner, spec, spec.workdir, [entry for entry in work if entry.path])
    except RunnerError as error:
        raise SetupRefused(f"the set-up could not be put into the image: {error}") from error


def check(program: str, entries: list[Entry]) -> None:
    """SetupRefused for what would take the agent away from the instrument."""
    rules = {"claude-code": _check_claude, "codex": _check_codex}.get(program)
    if rules is None and entries:
        raise SetupRefused(f"{program} takes no files of a set-up; leave spec.agents[].files out")
    for entry in entries:
        if rules is not None and entry.info.isreg():
            rules(entry)


# -------------------------------------------------------------------------------------------------------------------- archive
def _members(archive: bytes) -> Iterator[Entry]:
    total, number = 0, 0
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for info in tar:
                number, total = number + 1, total + max(0, info.size)
                if number > MAX_ENTRIES or total > MAX_BYTES:
                    raise SetupRefused(
                        f"the set-up has more than {MAX_ENTRIES} entries or {MAX_BYTES >> 20} MiB; make it smaller"
                    )
                root, _, path = info.name.removeprefix("./").rstrip("/").partition("/")
                if root in ("", "."):
                    continue
                if root not in ("Config", "Work") or ".." in path.split("/"):
                    raise SetupRefused(f"{info.name}: expected a path below Config/ or Work/")
                if not (info.isreg() or info.isdir() or info.issym()):
                    raise SetupRefused(f"{info.name}: only files, folders and symbolic links can be installed")
                source = tar.extractfile(info) if info.isreg() else None
                yield Entry(root, path, info, b"" if source is None else source.read())
    except tarfile.TarError as error:
        raise SetupRefused(f"the set-up is no tar archive: {error}") from error


async def _put(runner: RunnerPort, spec: AgentSpec, folder: str, entries: list[Entry]) -> None:
    """One archive below `folder`, everything owned by the agent's user."""
    uid = runner.hello.uid if spec.uid is None else spec.uid
    gid = runner.hello.gid if spec.gid is None else spec.gid
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            made = tarfile.TarInfo(entry.path or ".")
            made.type, made.size, made.linkname = entry.info.type, len(entry.data), entry.info.linkname
            made.mode, made.mtime = entry.info.mode & 0o777, entry.info.mtime
            made.uid, made.gid = uid, gid
            tar.addfile(made, io.BytesIO(entry.data))
    await runner.put_tree(folder, _chunks(buffer.getvalue()), max_bytes=MAX_BYTES, max_entries=MAX_ENTRIES + 10)


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), _CHUNK):
        yield data[start : start + _CHUNK]


def _folder(mode: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(".")
    made.type, made.mode = tarfile.DIRTYPE, mode
    return made


def _file(size: int, mode: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo("file")
    made.size, made.mode = size, mode
    return made


# ---------------------------------------------------------------------------------------------------------------- Claude Code
_CLAUDE_KEYS = {
    "apiKeyHelper": "the gateway's token is the only key",
    "awsAuthRefresh": "requests go through the gateway",
    "awsCredentialExport": "requests go through the gateway",
    "forceLoginMethod": "there is no login",
    "forceLoginOrgUUID": "there is no login",
    "model": "the model comes from spec.models",
    "modelOverrides": "the model comes from spec.models",
    "effortLevel": "use spec.agents[].options.effort",
    "oauthAccount": "there is no login",
    "primaryApiKey": "the gateway's token is the only key",
}
_CLAUDE_ENV = ("ANTHROPIC_", "CLAUDE_CODE_USE_", "CLAUDE_CONFIG_DIR", "AWS_", "GOOGLE_", "API_TIMEOUT_MS", "DISABLE_AUTOUPDATER")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED")


def _check_claude(entry: Entry) -> None:
    settings = ("Config/settings.json", "Config/settings.local.json", "Config/.claude.json")
    if entry.name == "Config/.credentials.json":
        raise SetupRefused(f"{entry.name} holds a login; remove it: the gateway's token is the only key")
    if entry.name not in settings and entry.name not in ("Work/.claude/settings.json", "Work/.claude/settings.local.json"):
        return
    content = _object(entry, _json(entry))
    for key, why in _CLAUDE_KEYS.items():
        if key in content:
            raise SetupRefused(f"{entry.name}: {key} must not be set: {why}")
    for variable in content.get("env") or {}:
        if str(variable).startswith(_CLAUDE_ENV) or str(variable).upper() in _PROXIES:
            raise SetupRefused(f"{entry.name}: env.{variable} must not be set: it would redirect the agent's requests")
    permissions = content.get("permissions")
    if isinstance(permissions, dict) and "defaultMode" in permissions:
        raise SetupRefused(f"{entry.name}: permissions.defaultMode must not be set: use spec.agents[].permissions")


def mcp_config(servers: tuple[McpServer, ...]) -> bytes:
    """The file for Claude Code's --mcp-config."""
    described = {
        server.name: {"type": "stdio", "command": server.command[0], "args": list(server.command[1:]), "env": dict(server.env)}
        for server in servers
    }
    return json.dumps({"mcpServers": described}, indent=2).encode()


# ---------------------------------------------------------------------------------------------------------------------- Codex
_CODEX_KEYS = {
    "model": "the model comes from spec.models",
    "model_provider": "requests go through the gateway",
    "model_providers": "requests go through the gateway",
    "model_reasoning_effort": "use spec.agents[].options.effort",
    "review_model": "the model comes from spec.models",
    "profile": "the session chooses no profile; put its settings at the top level",
    "profiles": "the session chooses no profile; put its settings at the top level",
    "openai_base_url": "requests go through the gateway",
    "chatgpt_base_url": "requests go through the gateway",
    "experimental_realtime_ws_base_url": "requests go through the gateway",
    "forced_login_method": "there is no login",
    "forced_chatgpt_workspace_id": "there is no login",
    "cli_auth_credentials_store": "there is no login",
    "approval_policy": "use spec.agents[].permissions",
    "approvals_reviewer": "prompts are answered by the simulated user or the task's policy",
    "sandbox_mode": "the container is the sandbox",
    "sandbox_workspace_write": "the container is the sandbox",
    "default_permissions": "the container is the sandbox",
    "permissions": "the container is the sandbox",
    "web_search": "a tool that runs at the provider",
    "otel": "nothing is sent besides the model's requests",
}


def _check_codex(entry: Entry) -> None:
    if entry.name == "Config/auth.json":
        raise SetupRefused(f"{entry.name} holds a login; remove it: the gateway's token is the only key")
    if entry.name not in ("Config/config.toml", "Work/.codex/config.toml"):
        return
    content = _toml(entry)
    for key, why in _CODEX_KEYS.items():
        if key in content:
            raise SetupRefused(f"{entry.name}: {key} must not be set: {why}")
    tools = content.get("tools")
    for key in ("experimental_request_user_input", "web_search"):
        if isinstance(tools, dict) and key in tools:
            raise SetupRefused(f"{entry.name}: tools.{key} must not be set: which questions an agent can ask is the mode's")


def codex_config(setup: OwnSetup) -> bytes:
    """config.toml of CODEX_HOME: the user's own, and the MCP servers behind it. SetupRefused for a server that is in both."""
    own = next((entry for entry in read(setup) if entry.name == "Config/config.toml"), None)
    known = _toml(own).get("mcp_servers", {}) if own is not None else {}
    text = [own.data.decode() if own is not None else ""]
    for server in setup.mcp_servers:
        if isinstance(known, dict) and server.name in known:
            raise SetupRefused(f"Config/config.toml: mcp_servers.{server.name} is in spec.agents[].mcpServers too; keep one")
        text.append(f"[mcp_servers.{_quoted(server.name)}]")
        text.append(f"command = {_quoted(server.command[0])}")
        text.append(f"args = [{', '.join(_quoted(word) for word in server.command[1:])}]")
        pairs = ", ".join(f"{_quoted(name)} = {_quoted(value)}" for name, value in server.env.items())
        text.append(f"env = {{{pairs}}}")
    return ("\n".join(text) + "\n").encode()


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are a part of TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# ---------------------------------------------------------------------------------------------------------------- reading
def _json(entry: Entry) -> Any:
    try:
        return json.loads(entry.data)
    except ValueError as error:
        raise SetupRefused(f"{entry.name} is no JSON: {error}") from error


def _toml(entry: Entry) -> dict[str, Any]:
    try:
        return tomllib.loads(entry.data.decode())
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are ones
        raise SetupRefused(f"{entry.name} is no TOML: {error}") from error


def _object(entry: Entry, content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise SetupRefused(f"{entry.name}: expected a JSON object")
    return content
