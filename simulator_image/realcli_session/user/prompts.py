"""Permission prompts of the agent program: each is for one action, and leave for it is leave for nothing else."""

from __future__ import annotations

from realcli.benchmark.play import Play
from realcli.benchmark.script_models import Action
from realcli.trajectory.patterns import path_matches, search
from realcli.trajectory.prompts import commands_in, paths_in
from realcli_session.user.answers import decide
from realcli_session.user.events import AnswerPrompt, Prompt, Verdict
from realcli_session.user.lines import LATER, REFUSAL
from realcli_session.user.state import State


def prompted(state: State, prompt: Prompt) -> AnswerPrompt:
    """The answer. A prompt for none of the script's actions gets `script.prompts`, which approves nothing by name.

    One that asks for several (a shell line) is allowed only where each of them is, and then approves each.
    """
    actions = [action for action in state.play.script.actions if asks_for(state.play, action, prompt)]
    if not actions:
        allow = state.play.script.prompts == "allow"
        refused = () if allow else (Verdict(None, granted=False, scripted=False),)
        return AnswerPrompt(prompt.request_id, allow, "" if allow else REFUSAL, refused)
    granted: list[Verdict] = []
    for action in actions:
        if any(state.probe(name).probe.approves == action.id for name in state.waiting):
            return AnswerPrompt(prompt.request_id, False, LATER, (Verdict(action.id, granted=False),))
        verdict = decide(state, action)
        if not verdict.granted:
            text = action.text if action.decision == "deny" else REFUSAL
            return AnswerPrompt(prompt.request_id, False, text, (verdict,))
        granted.append(verdict)
    return AnswerPrompt(prompt.request_id, True, actions[0].text, tuple(granted))


def asks_for(play: Play, action: Action, prompt: Prompt) -> bool:
    """By a command, the action's own or one a check takes for it, or by a path."""
    wanted = [*([action.command] if action.command else []), *play.judged.get(action.id, ())]
    if wanted and any(search(one, text) for text in commands_in(prompt.input) for one in wanted):
        return True
    return any(path_matches(path, action.paths) for path in paths_in(prompt.input)) if action.paths else False
