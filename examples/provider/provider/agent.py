"""The scripted agent: chooses a policy by the opening text and asks it what to do next.

A policy is a generator that works like an agent: it yields a command and is sent the result, yields a text and is sent what the
user says to it. Each request replays it from the start with the replies that stand in the request, so nothing is kept between
requests and the same request always gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from provider.conversation import Action, Conversation, Reply, Say, parse
from provider.policies import bank_reconcile, site_settings, told

Policy = Callable[[str], Generator[Action, Reply, None]]

POLICIES: list[tuple[str, Policy]] = [
    ("/app/reconcile.py", bank_reconcile.work),
    ("/app/site.ini", site_settings.work),
]


def choose(opening: str) -> Policy:
    """The policy for a task, recognised by the file its opening text asks for."""
    return next((policy for word, policy in POLICIES if word in opening), told.work)


def next_action(conversation: Conversation) -> Action:
    """What the agent does now."""
    work = choose(conversation.opening)(conversation.opening)
    action = next(work)
    for reply in conversation.replies:
        try:
            action = work.send(reply)
        except StopIteration:
            return Say("There is nothing left for me to do.")
    return action


def answer(body: dict[str, Any]) -> Action:
    """The answer to a request. One without tools (a title, a connection test) is none of the agent's work."""
    if not body.get("tools"):
        return Say("ok")
    return next_action(parse(body["messages"]))
