"""The scripted agent on the starter tasks, the whole way: commands really run, tests really decide.

A loop of a page plays the agent program and the canonical user; each request is built from the history alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from realcli.benchmark.edits import apply_edit, edit_present
from realcli.benchmark.models import Probe
from realcli.benchmark.script import items
from realcli.benchmark.suite import Suite, Task
from realcli_provider.__main__ import DEMO
from realcli_provider.choose import choose
from realcli_provider.dialects import anthropic
from realcli_provider.reply import make
from realcli_provider.script import read_script

TASKS = ["bank-reconcile", "site-settings"]
TURNS = 60
SCRIPT = read_script(DEMO)


@dataclass
class Episode:
    """One attempt: what was said, run and shown."""

    task: Task
    root: Any
    blind: bool = False  # results of commands are emptied
    messages: list[dict[str, Any]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    reread: dict[str, bool] = field(default_factory=dict)  # probe -> the edit was shown before the file was written again

    def exchange(self, text: str) -> str:
        """One user message and the work up to the yield; the text the agent ends with."""
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})
        for _ in range(TURNS):
            body = {"model": "m", "max_tokens": 1000, "tools": [{"name": "Bash"}], "messages": self.messages}
            request = anthropic.parse(body)
            answer = anthropic.whole(make(body, request, choose(SCRIPT, request).answer), body)
            self.messages.append({"role": "assistant", "content": answer["content"]})
            calls = [block for block in answer["content"] if block["type"] == "tool_use"]
            if not calls:
                return str(answer["content"][0]["text"])
            (call,) = calls
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": self.execute(call["input"]["command"])}
            self.messages.append({"role": "user", "content": [result]})
        raise AssertionError(f"no yield within {TURNS} turns")

    def execute(self, command: str) -> str:
        done = self.root.execute("/bin/bash", "-c", command)
        self.commands.append(command)
        self.results.append("" if self.blind else done.stdout + done.stderr)
        return self.results[-1]

    def whole(self) -> None:
        """EXEC."""
        self.exchange(self.task.instruction)

    def stepwise(self) -> None:
        """COLLAB: the opener, then one due item for each yield."""
        self.exchange(self.task.script.opener)
        written: set[str] = set()
        for item in items(self.task.script):
            if item.probe is None:
                self.exchange(item.text)
                written |= {path for path in self.task.config.artifact_paths() if (self.root.root / path[1:]).exists()}
            else:
                assert item.probe.bindings["FILE"] in written
                self.probe(item.probe, item.text)

    def probe(self, probe: Probe, text: str) -> None:
        assert probe.edit is not None
        edit = probe.edit
        self.root.edit(lambda content: apply_edit(content, edit), edit.path)
        before, begin = self.root.read(edit.path), len(self.commands)
        watched: list[bool] = []
        execute = self.execute

        def watch(command: str) -> str:
            result = execute(command)
            watched.append(self.root.read(edit.path) != before)
            return result

        self.execute = watch  # type: ignore[method-assign]
        self.exchange(text)
        self.execute = execute  # type: ignore[method-assign]
        shown = [str(probe.bindings["EDIT_MARKER"]) in result for result in self.results[begin:]]
        assert any(watched), "the slice of the probe needs the file to be changed"
        self.reread[probe.id] = any(shown[: watched.index(True)])


@pytest.fixture(scope="module")
def attempt(suite: Suite, roots: Any, a_run: Any, verify: Any) -> Callable[..., tuple[Episode, Any]]:
    """An attempt and its verdict; each is made once."""

    @cache
    def run(name: str, mode: str, blind: bool = False) -> tuple[Episode, Any]:
        task = next(task for task in suite.tasks if task.name == name)
        episode = Episode(task, roots(task, a_run("demo")), blind)
        episode.whole() if mode == "EXEC" else episode.stepwise()
        return episode, verify(task, episode.root.run_json, episode.root.state())

    return run


# (task, mode) -> reward; probe re-read, user's edit kept (None: EXEC has no probe). The same in every repeat; examples/README.md.
EXPECTED = {
    ("bank-reconcile", "EXEC"): (1, None, None),
    ("bank-reconcile", "COLLAB"): (0, True, True),
    ("site-settings", "EXEC"): (1, None, None),
    ("site-settings", "COLLAB"): (1, False, False),
}


@pytest.mark.parametrize(("name", "mode"), list(EXPECTED))
def test_the_demo_comes_out_as_documented(name: str, mode: str, attempt: Any) -> None:
    episode, verdict = attempt(name, mode)
    reward, reread, kept = EXPECTED[name, mode]
    assert verdict.reward == reward, verdict.output
    (probe,) = episode.task.script.probes
    assert episode.reread == ({} if reread is None else {probe.id: reread})
    if kept is not None:
        assert edit_present(episode.root.read(probe.edit.path), probe.edit) is kept


def test_what_is_lost_in_the_long_conversation_is_the_rule_about_references(attempt: Any) -> None:
    _, verdict = attempt("bank-reconcile", "COLLAB")
    assert set(verdict.failed) == {"saved-report", "reference-wins", "whole-months"}


@pytest.mark.parametrize(("name", "mode"), list(EXPECTED))
def test_the_instance_id_is_read_and_used(name: str, mode: str, attempt: Any) -> None:
    episode, _ = attempt(name, mode)
    instance = episode.root.run_json.instance_id
    seen = next(index for index, result in enumerate(episode.results) if instance in result)
    assert not any(instance in command for command in episode.commands[: seen + 1])
    assert instance in episode.commands[seen + 1]
    assert any(instance.encode() in file.content for file in episode.root.state())


@pytest.mark.parametrize(("name", "mode"), list(EXPECTED))
def test_an_agent_that_sees_no_results_scores_nothing(name: str, mode: str, attempt: Any) -> None:
    _, verdict = attempt(name, mode, blind=True)
    assert verdict.reward == 0
