"""The user's own set-up: what is refused and why, and what is written for the programs to read."""

from __future__ import annotations

import io
import json
import tarfile
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli_session.agents import own_setup
from realcli_session.agents.port import McpServer, OwnSetup, SetupRefused


def setup(files: dict[str, str] | None = None, *servers: McpServer) -> OwnSetup:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in (files or {}).items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return OwnSetup(digest="d", files=buffer.getvalue(), mcp_servers=servers)


def special(name: str, kind: bytes) -> OwnSetup:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.type = kind
        info.linkname = "Config/x"
        tar.addfile(info)
    return OwnSetup(digest="d", files=buffer.getvalue())


SETTINGS = "Config/settings.json"
TOML = "Config/config.toml"
REFUSED: list[tuple[str, str, str, str]] = [
    # program, file, content, the error
    ("claude-code", SETTINGS, '{"env": {"ANTHROPIC_BASE_URL": "http://x"}}', r"settings.json: env.ANTHROPIC_BASE_URL"),
    ("claude-code", SETTINGS, '{"env": {"https_proxy": "http://x"}}', r"env.https_proxy"),
    ("claude-code", SETTINGS, '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}', r"CLAUDE_CODE_USE_BEDROCK"),
    ("claude-code", SETTINGS, '{"apiKeyHelper": "cat key"}', r"apiKeyHelper.*gateway's token"),
    ("claude-code", SETTINGS, '{"model": "opus"}', r"model must not be set: the model comes from spec.models"),
    ("claude-code", SETTINGS, '{"permissions": {"defaultMode": "plan"}}', r"spec.agents\[\].permissions"),
    ("claude-code", SETTINGS, "{", r"settings.json is no JSON"),
    ("claude-code", SETTINGS, "[]", r"expected a JSON object"),
    ("claude-code", "Work/.claude/settings.json", '{"model": "opus"}', r"Work/.claude/settings.json: model"),
    ("claude-code", "Config/.credentials.json", "{}", r"holds a login"),
    ("claude-code", "Config/.claude.json", '{"primaryApiKey": "k"}', r"primaryApiKey"),
    ("codex", TOML, 'model = "x"', r"config.toml: model must not be set"),
    ("codex", TOML, '[model_providers.mine]\nbase_url = "http://x"', r"model_providers.*gateway"),
    ("codex", TOML, 'approval_policy = "never"', r"spec.agents\[\].permissions"),
    ("codex", TOML, "[tools]\nweb_search = true", r"tools.web_search"),
    ("codex", TOML, "model =", r"is no TOML"),
    ("codex", "Config/auth.json", "{}", r"holds a login"),
    ("codex", "Work/.codex/config.toml", 'profile = "x"', r"Work/.codex/config.toml: profile"),
    ("terminus-2", "Config/x", "", r"terminus-2 takes no files"),
    ("codex", "Home/x", "", r"expected a path below Config/ or Work/"),
    ("codex", "Work/../etc/passwd", "", r"expected a path below"),
]


@pytest.mark.parametrize(("program", "name", "content", "error"), REFUSED, ids=[f"{row[0]} {row[2][:30]}" for row in REFUSED])
def test_refused(program: str, name: str, content: str, error: str) -> None:
    with pytest.raises(SetupRefused, match=error):
        own_setup.check(program, own_setup.read(setup({name: content})))


ALLOWED = [
    ("claude-code", SETTINGS, '{"hooks": {"PreToolUse": []}, "permissions": {"deny": ["Bash(rm:*)"]}, "env": {"TEAM": "blue"}}'),
    ("claude-code", "Config/CLAUDE.md", "Mind the gap."),
    ("claude-code", "Work/.mcp.json", "not even JSON"),
    ("claude-code", "Config/skills/x/SKILL.md", "x"),
    ("codex", TOML, 'notify = ["x"]\n[mcp_servers.a]\ncommand = "a"'),
    ("codex", "Config/AGENTS.md", "Mind the gap."),
    ("codex", SETTINGS, '{"model": "another program reads this"}'),
]


@pytest.mark.parametrize(("program", "name", "content"), ALLOWED, ids=[f"{row[0]} {row[1]}" for row in ALLOWED])
def test_allowed(program: str, name: str, content: str) -> None:
    entries = own_setup.read(setup({name: content}))
    own_setup.check(program, entries)
    assert [(entry.name, entry.data.decode()) for entry in entries] == [(name, content)]


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_special_files_are_refused(kind: bytes) -> None:
    with pytest.raises(SetupRefused, match="only files, folders and symbolic links"):
        own_setup.read(special("Config/x", kind))


def test_no_archive() -> None:
    with pytest.raises(SetupRefused, match="no tar archive"):
        own_setup.read(OwnSetup(digest="d", files=b"x" * 1024))
    assert own_setup.read(OwnSetup(digest="d")) == []


def test_count_is_of_files() -> None:
    assert own_setup.count(setup({"Config/a": "", "./Work/b": "x"})) == 2


NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
SERVERS = st.lists(
    st.builds(
        McpServer,
        NAMES,
        st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
        st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), TEXTS, max_size=3),
    ),
    unique_by=lambda server: server.name,
    max_size=3,
)


def described(server: McpServer) -> dict[str, Any]:
    return {"command": server.command[0], "args": list(server.command[1:]), "env": dict(server.env)}


@given(SERVERS)
def test_servers_are_written_as_they_are(servers: list[McpServer]) -> None:
    toml = tomllib.loads(own_setup.codex_config(OwnSetup(digest="d", mcp_servers=tuple(servers))).decode())
    assert toml.get("mcp_servers", {}) == {server.name: described(server) for server in servers}
    written = json.loads(own_setup.mcp_config(tuple(servers)))["mcpServers"]
    assert written == {server.name: {"type": "stdio", **described(server)} for server in servers}


def test_the_users_own_configuration_stays() -> None:
    server = McpServer("tickets", ("tickets-mcp",))
    own = 'notify = ["x"]\n[mcp_servers.other]\ncommand = "o"'
    found = tomllib.loads(own_setup.codex_config(setup({TOML: own}, server)).decode())
    assert found["notify"] == ["x"]
    assert found["mcp_servers"].keys() == {"other", "tickets"}
    with pytest.raises(SetupRefused, match=r"mcp_servers.tickets .* keep one"):
        own_setup.codex_config(setup({TOML: own.replace("other", "tickets")}, server))
