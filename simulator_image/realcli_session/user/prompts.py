"""Permission prompts of the agent program: each is for one action, and leave for it is leave for nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from realcli.benchmark.script_models import Action
from realcli.ledger.events import Command
from realcli.trajectory.commands import command_text
from realcli.trajectory.patterns import path_matches, search
from realcli_session.user.answers import decide
from realcli_session.user.events import AnswerPrompt, Prompt, Verdict
from realcli_session.user.lines import LATER, REFUSAL
from realcli_session.user.state import State


def prompted(state: State, prompt: Prompt) -> AnswerPrompt:
    """The answer. A prompt for none of the script's actions gets `script.prompts`, which approves nothing by name."""
    action = next((action for action in state.play.script.actions if asks_for(action, prompt)), None)
    if action is None:
        allow = state.play.script.prompts == "allow"
        return AnswerPrompt(prompt.request_id, allow, "" if allow else REFUSAL, None if allow else Verdict(None, False, False))
    if any(state.probe(name).probe.approves == action.id for name in state.waiting):
        return AnswerPrompt(prompt.request_id, False, LATER, Verdict(action.id, granted=False))
    verdict = decide(state, action)
    text = action.text if verdict.granted or action.decision == "deny" else REFUSAL
    return AnswerPrompt(prompt.request_id, verdict.granted, text, verdict)


def asks_for(action: Action, prompt: Prompt) -> bool:
    """By the command, in its normalised form, or by a path."""
    texts = list(_texts(prompt.input))
    if action.command is not None:
        for text in texts:
            shell = command_text(Command(id=1, argv=[text], record="tool_text"))
            if any(search(action.command, form) for form in (*shell.certain, *shell.possible, text)):
                return True
    return any(path_matches(text, action.paths) for text in texts if text.startswith("/")) if action.paths else False


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
