"""What a provider may do to a run, for every agent program: the outcome is the table's, whatever the program makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from realcli.api.outcomes import is_valid
from realcli.api.termination import Result
from realcli.ledger.events import Event, ModelReply
from realcli.ledger.reader import StoreReader
from realcli.ledger.verify import verify_attempt
from realcli_cli.local.programs import agent_folder
from realcli_cli.local.provider import ScriptedProvider, scripted_provider
from tests.integration.session.harness import KEY, REPOSITORY, Sweep, plan_sweep
from tests.support.terminus import words_folder

STARTER = REPOSITORY / "benchmark" / "starter"
PROGRAMS = ("claude-code", "codex", "terminus-2")
AT_ONCE = {"retry-after": "0"}
READ = {"stall": "middle", "stall_seconds": 3}
"""The program has long read what was sent when more happens."""
TEXT_KEPT = {"claude-code": "ProviderUnavailable", "codex": "Completed", "terminus-2": "Completed"}
"""Claude Code asks again for an answer of which no block was whole, and gives up where it already took one over."""
SCRIPT = """
rules:
- {when: {opening: /app/site.ini}, policy: "realcli_provider.policies.site_settings:work"}
- {policy: "realcli_provider.policies.told:work"}
"""
REFUSING = 'rules: [{then: {say: "I cannot help with that.", stop: refusal}}]'


class Case(NamedTuple):
    """A fault of the coming answers, and what comes of it: one reason, or one for each program that is run with it."""

    fault: dict[str, Any]
    reason: str | dict[str, str]


CASES: dict[str, Case] = {
    "nothing for two seconds": Case({"stall": "before", "stall_seconds": 2, "times": 1}, "Completed"),
    "nothing more after the first byte for two seconds": Case(
        {"stall": "first-byte", "stall_seconds": 2, "times": 1}, "Completed"
    ),
    "nothing more in the middle for two seconds": Case({"stall": "middle", "stall_seconds": 2, "times": 1}, "Completed"),
    "a storm of 429 that ends": Case({"status": 429, "headers": AT_ONCE, "times": 5}, "Completed"),
    "a storm of 529 that ends": Case({"status": 529, "headers": AT_ONCE, "times": 5}, "Completed"),
    "overloaded for good": Case({"status": 529, "headers": AT_ONCE}, "ProviderUnavailable"),
    "a storm of 429 without end": Case({"status": 429, "headers": AT_ONCE}, "ProviderUnavailable"),
    "the key is refused": Case({"status": 401}, "ProviderUnavailable"),
    "this request alone is refused": Case({"status": 400}, "AgentCrashed"),
    "cut before the first byte": Case({"reset": "before", "times": 1}, "Completed"),
    "cut after the first byte": Case({"reset": "first-byte", "times": 1}, "Completed"),
    "cut before a block was whole": Case({"cut": 2, "times": 1}, "Completed"),
    "cut before a block was whole, in good order": Case({"cut": 2, "end": True, "times": 1}, "Completed"),
    "cut after the program read a whole text": Case({**READ, "cut": True, "times": 1}, TEXT_KEPT),
    "cut after the program read a whole text, in good order": Case({**READ, "cut": True, "end": True, "times": 1}, TEXT_KEPT),
    "an error in the middle": Case(
        {"cut": True, "error_event": True, "times": 1},
        {"claude-code": "ProviderUnavailable", "codex": "Completed", "terminus-2": "Completed"},
    ),
    "every answer is cut": Case({"cut": True}, {"codex": "ProviderUnavailable"}),
    "another model": Case({"model": "another-model"}, "ModelMismatch"),
    "no JSON, once": Case({"garbage": True, "times": 1}, "Completed"),
    "the headers come back, with the key": Case({"echo": True, "times": 1}, "Completed"),
}


@dataclass
class Stand:
    """A planned trial whose attempts are many."""

    provider: ScriptedProvider
    sweep: Sweep
    attempts: int = 0

    def run(self, fault: dict[str, Any], reason: str) -> list[Event]:
        """The events of a new attempt that ends so, sealed and without the key."""
        self.attempts += 1
        ordinal = self.sweep.ordinal("site-settings", "EXEC")
        self.provider.set_control(**fault)
        try:
            ended = self.sweep.work(ordinal, self.attempts)
        finally:
            self.provider.set_control()
        assert ended.termination is not None, ended.stderr
        assert ended.termination.reason == reason, ended.stderr
        assert ended.termination.result is (Result.WORK_SEALED if is_valid(reason) else Result.WORK_INVALID)
        root = self.sweep.attempt(ordinal, self.attempts).root
        reader = StoreReader(self.sweep.store, root)
        report = verify_attempt(reader, root, ended.termination.seal)
        assert report.ok, report.findings
        assert [info.key for info in self.sweep.store.list(root) if KEY.encode() in self.sweep.store.get(info.key)] == []
        return list(reader.events())


@pytest.fixture(scope="module")
def stands(tmp_path_factory: pytest.TempPathFactory, toolkit: Path) -> Iterator[Callable[[str], Stand]]:
    """`stands(program)`: made once for each agent program."""
    folder = tmp_path_factory.mktemp("faults")
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    made: dict[str, Stand] = {}
    with scripted_provider(script, control=True, key=KEY) as provider:

        def stand(program: str) -> Stand:
            if program not in made:
                made[program] = Stand(provider, planned(folder / program, program, toolkit, provider.url))
            return made[program]

        yield stand


def planned(folder: Path, program: str, toolkit: Path, url: str, **limits: Any) -> Sweep:
    words = {"REALCLI_TERMINUS_TEMPLATES": str(words_folder())} if program == "terminus-2" else {}
    return plan_sweep(
        folder, STARTER, url, toolkit, agent_folder(program, None), program=program, environment=words, limits=limits
    )


QUICK = {
    ("cut before a block was whole, in good order", "claude-code"),
    ("overloaded for good", "codex"),
    ("no JSON, once", "terminus-2"),
}
RUNS = [
    pytest.param(name, program, marks=[] if (name, program) in QUICK else [pytest.mark.slow])
    for name, case in CASES.items()
    for program in PROGRAMS
    if isinstance(case.reason, str) or program in case.reason
]


@pytest.mark.parametrize(("name", "program"), RUNS)
def test_a_fault_of_the_provider(stands: Callable[[str], Stand], name: str, program: str) -> None:
    case = CASES[name]
    reason = case.reason if isinstance(case.reason, str) else case.reason[program]
    events = stands(program).run(case.fault, reason)
    if reason == "Completed":  # and not on what the fault left of an answer
        replies = [event.typed() for event in events if event.kind == "model_reply"]
        whole = [reply for reply in replies if isinstance(reply, ModelReply) and reply.aborted is None and reply.status == 200]
        assert len(whole) >= (1 if "echo" in case.fault else 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "reason"), [("claude-code", "AgentRefused"), ("codex", "AgentRefused"), ("terminus-2", "TurnLimit")]
)
def test_a_refusal_of_the_model(tmp_path: Path, toolkit: Path, program: str, reason: str) -> None:
    """Terminus-2 takes a refusal for a reply out of form and asks again, as the release does: only a limit ends that."""
    script = tmp_path / "script.yaml"
    script.write_text(REFUSING)
    with scripted_provider(script, control=True, key=KEY) as provider:
        sweep = planned(tmp_path / "store", program, toolkit, provider.url, turns=5)
        Stand(provider, sweep).run({}, reason)
