"""An agent of somebody else's: found by its entry point, run like ours (docs/adding-an-agent.md)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from realcli_session.agents.port import NotWorking, Text, ToolCall, ToolResult, Yield
from realcli_session.agents.registry import adapter_class, programs
from tests.integration.conformance.cases import DONE, Begin, nothing_left, steps
from tests.integration.conformance.drivers import Driver
from tests.integration.conformance.drivers.claude_code import DRIVER

TOY = Path(__file__).parent / "toy"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution: a package and its metadata on the path."""
    shutil.copytree(TOY, tmp_path / "toy_agent", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "toy_agent" / "program.py").chmod(0o755)
    about = tmp_path / "toy_agent-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-agent\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[realcli.agents]\ntoy = toy_agent.adapter:Toy\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "toy_agent"


async def test_it_is_found_and_works(package: Path, begin_for: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "toy" in programs()
    assert adapter_class("toy").program == "toy"
    fields: dict[str, Any] = {
        name: getattr(DRIVER, name) for name in ("questions", "asked_command", "sub_agent", "full", "compacts", "mcp_call")
    }
    driver = Driver(
        program="toy",
        version="1.0",
        api="chat",
        model="gpt-5.2",
        program_dir=lambda: package,
        owns=lambda line: line.endswith("/program.py"),
        question_tool="",
        instructions="",
        **fields,
    )
    begin: Begin = begin_for(driver)
    bench = await begin(steps({"run": "echo made > made.txt; cat made.txt"}, DONE), mode="COLLAB")
    assert await bench.say("Make it.") == Yield("yielded", "")
    assert (bench.work / "made.txt").read_text() == "made\n"
    assert [type(event) for event in bench.passed] == [ToolCall, ToolResult, Text, Yield]
    assert [entry["text"] for entry in bench.of("agent_message")] == ["All done."]
    assert [entry["text"] for entry in bench.of("tool_result")] == ["made\n"]
    with pytest.raises(NotWorking):
        await bench.adapter.interrupt()
    assert bench.gateway.turns == 2
    await nothing_left(bench)
    monkeypatch.delitem(sys.modules, "toy_agent.adapter", raising=False)
