"""The first request of both modes: the release's prompt with the user's text in it; COLLAB adds how to talk to the user."""

from __future__ import annotations

import hashlib
from typing import Any

from realcli.api.sweep import Mode
from realcli_session.agents.port import Yield
from realcli_session.agents.terminus_wording import CHANNEL, load
from tests.integration.terminus.conftest import DONE, MODEL, StartStand

TEXT = "Sort the {list} of names."
RELEASE_PROMPT = "1abb58e0cbbdeb72"
"""Digest of the prompt with TEXT and an empty screen: changes with the pinned release alone."""
CHANNEL_TEXT = "2c84e305abd022b7"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


async def first_request(stand: StartStand, mode: Mode) -> tuple[dict[str, Any], str]:
    """The request without its prompt, and the prompt with an empty screen."""
    run = await stand(DONE, mode=mode)
    await run.adapter.send(TEXT)
    await run.next(Yield)
    body, headers = run.provider.bodies[0], run.provider.headers[0]
    (message,) = body.pop("messages")
    prompt, heading, screen = message.pop("content").partition("Current Terminal Screen:\n")
    assert heading
    assert len(screen.rstrip().splitlines()) == 1
    kept = {name: headers[name] for name in ("accept", "content-type", "user-agent")}
    return {"body": body, "message": message, "headers": kept}, prompt


async def test_modes_differ_in_the_channel_alone(stand: StartStand) -> None:
    execute, plain = await first_request(stand, "EXEC")
    talk, told = await first_request(stand, "COLLAB")
    assert execute == talk
    assert execute == {
        "body": {"model": MODEL},
        "message": {"role": "user"},
        "headers": {"accept": "application/json", "content-type": "application/json", "user-agent": "terminus-2"},
    }
    assert plain == load().template.partition("{terminal_state}")[0].format(instruction=TEXT)
    assert told.replace(f"{CHANNEL}\n\n", "") == plain
    before, added, after = told.partition(CHANNEL)
    assert (added, after.lstrip().splitlines()[1]) == (CHANNEL, TEXT)
    assert before
    assert (digest(plain), digest(CHANNEL)) == (RELEASE_PROMPT, CHANNEL_TEXT)
