"""What a session hands to the adapter of an agent with an own set-up, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from realcli.api.agents import Agent
from realcli.api.base import sha256_digest
from realcli.api.plan import ConfigurationLock, SetupLock
from realcli.storage.local import LocalStore
from realcli.storage.paths import SweepPaths
from realcli_session.inputs import InputRefused
from realcli_session.phases.own_setup import own_setup, secret_values
from realcli_session.plan.setups import pin, unpacked

PATHS = SweepPaths("sweeps/one/first-11111111")
GIVEN: dict[str, Any] = {
    "name": "guarded",
    "program": "codex",
    "files": {"configMapRef": {"name": "guarded", "items": [{"key": "rules", "path": "AGENTS.md"}]}},
    "toolImages": [{"image": "tools:1", "mountPath": "/opt/tools"}],
    "mcpServers": [
        {
            "name": "tickets",
            "command": ["/opt/tools/tickets-mcp", "--stdio"],
            "env": [{"name": "URL", "value": "http://127.0.0.1:9"}, {"name": "TOKEN", "secretRef": {"name": "t", "key": "k"}}],
        }
    ],
}


def configuration(setup: SetupLock | None) -> ConfigurationLock:
    return ConfigurationLock(
        name="guarded.gpt", agent="guarded", program="codex", api="responses", agent_version="0.142.0", permissions="Ask",
        model="gpt", model_id="gpt-5.2", key="sha256:" + "0" * 64, setup=setup,
    )  # fmt: skip


@pytest.fixture
def planned(tmp_path: Path) -> tuple[ConfigurationLock, LocalStore, bytes, Path]:
    """A configuration as the plan pins it, the storage with its archive, the archive, the folder of secrets."""
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted/rules").write_text("Ask first.\n")
    pinned = pin(Agent.model_validate(GIVEN), tmp_path / "mounted", {}.__getitem__)
    assert pinned is not None
    assert pinned.archive is not None
    store = LocalStore(tmp_path / "store")
    store.put_once(PATHS.setup(sha256_digest(pinned.archive)), pinned.archive)
    secrets = tmp_path / "secrets"
    (secrets / "tickets").mkdir(parents=True)
    (secrets / "tickets/TOKEN").write_text("very-secret-token\n")
    return configuration(pinned.lock), store, pinned.archive, secrets


def test_what_the_plan_pinned_is_what_the_adapter_gets(planned: Any) -> None:
    lock, store, archive, secrets = planned
    own = own_setup(lock, store, PATHS, secrets)
    assert own is not None
    assert own.digest == lock.setup.digest
    assert own.files == unpacked(archive, "here")
    (server,) = own.mcp_servers
    assert (server.name, server.command) == ("tickets", ("/opt/tools/tickets-mcp", "--stdio"))
    assert server.env == {"URL": "http://127.0.0.1:9", "TOKEN": "very-secret-token"}
    assert (own.tool_images, own.in_reach) == (("/opt/tools",), ("t/k",))
    assert "very-secret-token" not in repr(own)


def test_a_secret_in_the_agents_reach_is_redacted_like_a_key(planned: Any) -> None:
    lock, _, _, secrets = planned
    assert secret_values(lock, secrets) == ["very-secret-token"]
    assert secret_values(configuration(None), secrets) == []


def test_a_secret_too_short_to_be_redacted_is_refused(planned: Any) -> None:
    """In the ledger of every trial it would be readable, and nobody would know."""
    lock, _, _, secrets = planned
    (secrets / "tickets/TOKEN").write_text("s3cret\n")
    with pytest.raises(InputRefused, match=r"variable TOKEN of MCP server tickets has 6 characters; at least 8 .* use a longer"):
        secret_values(lock, secrets)
    (secrets / "tickets/TOKEN").write_text("\n")
    assert secret_values(lock, secrets) == [], "an empty one hides nothing"


def test_a_program_as_it_comes_has_no_set_up(planned: Any) -> None:
    _, store, _, secrets = planned
    assert own_setup(configuration(None), store, PATHS, secrets) is None


def test_a_changed_or_missing_archive_or_secret_is_refused(planned: Any, tmp_path: Path) -> None:
    lock, store, archive, secrets = planned
    (secrets / "tickets/TOKEN").unlink()
    with pytest.raises(InputRefused, match=r"variable TOKEN of MCP server tickets .* does the Secret exist"):
        own_setup(lock, store, PATHS, secrets)
    stored = tmp_path / "store" / PATHS.setup(sha256_digest(archive))
    stored.write_bytes(archive + b"x")
    with pytest.raises(InputRefused, match="it was changed"):
        own_setup(lock, store, PATHS, secrets)
    stored.unlink()
    with pytest.raises(InputRefused, match="does not exist in"):
        own_setup(lock, store, PATHS, secrets)
