"""A team's own set-up, from what a sweep names to one pinned archive."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from realcli.api.agents import Agent
from realcli.api.base import sha256_digest
from realcli.api.plan import Lock
from realcli.api.termination import Result
from realcli.storage.local import LocalStore
from realcli.storage.port import NotFound
from realcli_session.plan import job
from realcli_session.plan.probing import Finding
from realcli_session.plan.setups import MAX_BYTES, SetupProblem, members_of, pin, unpacked, warnings

ITEMS = [{"key": "rules", "path": "CLAUDE.md", "root": "Work"}, {"key": "hook", "path": "hooks/check.sh"}]


def agent(**given: Any) -> Agent:
    return Agent.model_validate({"name": "guarded", "program": "claude-code", **given})


def config_map(items: list[dict[str, str]] = ITEMS) -> dict[str, Any]:
    return {"configMapRef": {"name": "guarded", "items": items}}


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    folder = tmp_path / "mounted"
    folder.mkdir()
    (folder / "rules").write_text("Ask before you delete.\n")
    (folder / "hook").write_text("#!/bin/sh\nexit 0\n")
    return folder


def nothing(source: str) -> bytes:
    raise NotFound(source)


def archive(members: dict[str, bytes | tarfile.TarInfo]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content in members.items():
            entry = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            data = b"" if isinstance(content, tarfile.TarInfo) else content
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return zstandard.compress(raw.getvalue())


def test_an_agent_without_a_set_up_has_none(mounted: Path) -> None:
    assert pin(agent(), mounted, nothing) is None


def test_files_of_a_config_map_become_one_archive_whatever_their_order(mounted: Path) -> None:
    one, other = pin(agent(files=config_map()), mounted, nothing), pin(agent(files=config_map(ITEMS[::-1])), mounted, nothing)
    assert one is not None
    assert one == other
    assert one.archive is not None
    assert one.lock.archive == sha256_digest(one.archive)
    found = {m.name: m.mode for m in members_of(one.archive, "here")}
    assert found == {"Work/CLAUDE.md": 0o644, "Config/hooks/check.sh": 0o755}  # a script can be executed
    assert one.lock.files == 2


def test_another_content_is_another_set_up(mounted: Path) -> None:
    before = pin(agent(files=config_map()), mounted, nothing)
    (mounted / "rules").write_text("Never delete.\n")
    after = pin(agent(files=config_map()), mounted, nothing)
    assert before is not None
    assert after is not None
    assert before.lock.digest != after.lock.digest


def test_an_archive_is_taken_as_it_is_if_it_is_the_one_that_was_named(mounted: Path) -> None:
    data = archive({"Config/settings.json": b"{}", "Work/notes.md": b"x"})
    named = agent(files={"source": "s3://evals/setups/a.tar.zst", "digest": sha256_digest(data)})
    pinned = pin(named, mounted, {"s3://evals/setups/a.tar.zst": data}.__getitem__)
    assert pinned is not None
    assert (pinned.archive, pinned.lock.files) == (data, 2)
    with pytest.raises(SetupProblem, match=r"files\.digest: s3://.* has the digest sha256:.*, expected sha256:"):
        pin(named, mounted, lambda source: data + b"x")
    with pytest.raises(SetupProblem, match=r"files\.source: .*does not exist; upload"):
        pin(named, mounted, nothing)


LINK = tarfile.TarInfo("Config/link")
LINK.type, LINK.linkname = tarfile.SYMTYPE, "/etc/shadow"
FIFO = tarfile.TarInfo("Work/fifo")
FIFO.type = tarfile.FIFOTYPE


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (archive({"../x": b""}), "outside of Config and Work"),
        (archive({"Config/../../x": b""}), "outside of Config and Work"),
        (archive({"/etc/passwd": b""}), "outside of Config and Work"),
        (archive({"settings.json": b""}), "outside of Config and Work"),
        (archive({"Config": b"a file"}), "neither file nor folder"),
        (archive({"Config/link": LINK}), "links and devices are not taken"),
        (archive({"Work/fifo": FIFO}), "links and devices are not taken"),
        (zstandard.compress(b"no tar at all" * 100), "not a tar archive"),
        (b"no zstd", "not compressed with zstd"),
        (zstandard.compress(bytes(MAX_BYTES + 1)), "more than 32 MiB unpacked"),
    ],
)
def test_an_archive_that_would_reach_elsewhere_is_refused(data: bytes, said: str, mounted: Path) -> None:
    named = agent(files={"source": "s3://evals/a.tar.zst", "digest": sha256_digest(data)})
    with pytest.raises(SetupProblem, match=said):
        pin(named, mounted, lambda source: data)


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    with pytest.raises(SetupProblem, match="more than 32 MiB"):
        unpacked(zstandard.compress(bytes(1 << 28)), "here")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"files": config_map([{"key": "gone", "path": "a"}])}, r"ConfigMap guarded has no key 'gone'"),
        ({"files": config_map([{"key": "rules", "path": "a"}, {"key": "hook", "path": "./a"}])}, "stands twice"),
        ({"files": config_map([{"key": "rules", "path": "../a"}, {"key": "hook", "path": "../../a"}])}, "outside of"),
        ({"program": "terminus-2", "mcpServers": [{"name": "t", "command": ["t"]}]}, "knows no MCP servers"),
        ({"program": "terminus-2", "files": config_map()}, "no configuration folder"),
    ],
)
def test_what_cannot_be_installed_is_named(given: dict[str, Any], said: str, mounted: Path) -> None:
    with pytest.raises(SetupProblem, match=said):
        pin(agent(**given), mounted, nothing)


def test_secrets_in_reach_and_loose_images_are_told() -> None:
    env = [{"name": "TOKEN", "secretRef": {"name": "tickets", "key": "token"}}, {"name": "A", "value": "b"}]
    given = agent(mcpServers=[{"name": "t", "command": ["t"], "env": env}], toolImages=[{"image": "t:1", "mountPath": "/opt/t"}])
    pinned = pin(given, Path("/none"), nothing)
    assert pinned is not None
    assert pinned.lock.in_reach == ["tickets/token"]
    told = "\n".join(warnings(given))
    assert "t:1 is not pinned" in told
    assert "in the agent's reach" in told


def test_the_plan_stores_the_archive_and_names_it_in_the_lock(
    tmp_path: Path, mounted: Path, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_deviations", lambda program: ())
    monkeypatch.setattr(job, "_visible", lambda program: "")
    monkeypatch.setattr(job, "_ask", lambda targets, *_: [Finding("m", None, passing=False) for _ in targets])
    store = LocalStore(tmp_path / "store")
    store.put_once("benchmarks/mini/1.0.0/index.json", build.index().canonical())
    plain = build.request()
    with_files = plain.spec.agents[0].model_copy(update={"files": agent(files=config_map()).files})
    request = plain.model_copy(update={"spec": plain.spec.model_copy(update={"agents": [with_files]})})
    (tmp_path / "setup").mkdir()
    mounted.rename(tmp_path / "setup" / "0")
    variables = {"REALCLI_STORAGE": json.dumps({"directory": str(tmp_path / "store")}), "REALCLI_SETUP": str(tmp_path / "setup")}
    variables |= {"REALCLI_SWEEP": request.canonical().decode(), "REALCLI_KEY_0_ANTHROPIC": "sk-some-key"}
    message = job.run(variables, io.StringIO(), io.StringIO())
    assert message.result is Result.PLANNED, message.message
    root = "pre/sweeps/audits/first-0123abcd"
    setup = Lock.model_validate_json(store.get(f"{root}/sweep.json")).configurations[0].setup
    assert setup is not None
    assert setup.archive is not None
    stored = store.get(f"{root}/setups/{setup.archive.removeprefix('sha256:')}.tar.zst")
    assert sha256_digest(stored) == setup.archive
