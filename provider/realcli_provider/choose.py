"""Which answer a request gets. Pure: the same request gets the same answer, from any process, at any time.

A policy in Python is a generator that works like an agent: it yields a command and is sent the result, yields a text and is sent
what the user says to it. Each request replays it from the start with the replies that stand in the request.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Generator
from functools import cache
from typing import Any, NamedTuple, cast

from realcli_provider.conversation import Action, Bash, Conversation, Reply, Request
from realcli_provider.script import Answer, Rule, Script, ScriptError

Policy = Callable[[str], Generator[Action | Answer, Reply, None]]


class Choice(NamedTuple):
    """An answer, and which part of the script gave it."""

    answer: Answer
    rule: str


def choose(script: Script, request: Request) -> Choice:
    """The first rule that holds decides."""
    for number, rule in enumerate(script.rules):
        if rule.when.holds(request) and (answer := _of(rule, request, script)) is not None:
            return Choice(_filled(answer, script, request.conversation), rule.name or f"rules.{number}")
    if request.side:
        return Choice(script.side, "side")
    return Choice(_filled(script.otherwise, script, request.conversation), "otherwise")


def _of(rule: Rule, request: Request, script: Script) -> Answer | None:
    talk = request.conversation
    if rule.policy is not None:
        return replay(policy(rule.policy), talk, script.otherwise)
    if rule.steps is not None:
        number = talk.step if rule.count == "exchange" else talk.request
        return rule.steps[number - 1] if number <= len(rule.steps) else None
    return rule.then


@cache
def policy(name: str) -> Policy:
    """The function `module:function`. ScriptError where there is none."""
    module, _, function = name.partition(":")
    try:
        return cast(Policy, getattr(importlib.import_module(module), function))
    except (ImportError, AttributeError) as error:
        raise ScriptError(f"policy {name}: {error}; is its folder on PYTHONPATH?") from error


def replay(work: Policy, conversation: Conversation, otherwise: Answer) -> Answer:
    """What the policy does after all that has happened."""
    acting = work(conversation.opening)
    try:
        action = next(acting)
        for reply in conversation.replies:
            action = acting.send(reply)
    except StopIteration:
        return otherwise
    return as_answer(action)


def as_answer(action: Action | Answer) -> Answer:
    """An action of a policy in the words of a script."""
    if isinstance(action, Answer):
        return action
    if isinstance(action, Bash):
        return Answer(run=action.command, say=action.say or None)
    return Answer(say=action.text)


def _filled(answer: Answer, script: Script, talk: Conversation) -> Answer:
    """`{{name}}` in every text of the answer, by what the conversation has shown."""
    if not script.capture:
        return answer
    shown = talk.everything
    values = {}
    for name, pattern in script.capture.items():
        found = re.search(pattern, shown, re.MULTILINE)
        values[name] = (found[1] if found.re.groups else found[0]) if found else ""
    return Answer.model_validate(_fill(answer.model_dump(by_alias=True, exclude_unset=True), values))


def _fill(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, str):
        return re.sub(r"\{\{(\w+)\}\}", lambda found: values.get(found[1], found[0]), value)
    if isinstance(value, list):
        return [_fill(item, values) for item in value]
    if isinstance(value, dict):
        return {key: _fill(item, values) for key, item in value.items()}
    return value
