from __future__ import annotations

from typing import Any

import pytest

from provider import agent
from provider.conversation import Bash, Conversation, Reply, Say, parse


def user(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]}


def result(content: object, **more: object) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t", "content": content, **more}


ASKED = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]}
SAID = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
LATE = "<system-reminder>\nThe user sent a new message while you were working:\nalso this\n</system-reminder>"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], Conversation("")),
        ([{"role": "user", "content": "hello"}], Conversation("hello")),
        ([user("<system-reminder>today is…</system-reminder>", "hello")], Conversation("hello")),
        ([user("hello"), ASKED, user(result("out"))], Conversation("hello", (Reply("out"),))),
        (
            [user("hello"), ASKED, user(result([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]))],
            Conversation("hello", (Reply("a\nb"),)),
        ),
        ([user("hello"), ASKED, user(result("boom", is_error=True))], Conversation("hello", (Reply("boom", is_error=True),))),
        ([user("hello"), SAID, user("next")], Conversation("hello", (Reply(said="next"),))),
        ([user("hello"), ASKED, user(result("out"), LATE)], Conversation("hello", (Reply("out", "also this"),))),
        ([user("hello"), ASKED, user(result("out" + LATE))], Conversation("hello", (Reply("out", "also this"),))),
        ([user("hello"), ASKED, user(result("out")), user("more")], Conversation("hello", (Reply("out", "more"),))),
        ([user("hello"), SAID, ASKED, user(result("out"))], Conversation("hello", (Reply("out"),))),
    ],
)
def test_what_happened_is_read_off_the_messages(messages: list[dict[str, Any]], expected: Conversation) -> None:
    assert parse(messages) == expected


def test_a_request_without_tools_is_no_work() -> None:
    assert agent.answer({"messages": [user("/app/site.ini")]}) == Say("ok")


def test_an_unknown_task_is_done_as_told_block_by_block() -> None:
    opening = "Please run\n```sh\necho one\n```\nand then\n```bash\necho two\n```\n"
    first = agent.next_action(Conversation(opening))
    second = agent.next_action(Conversation(opening, (Reply("one"),)))
    assert [a.command for a in (first, second) if isinstance(a, Bash)] == ["echo one", "echo two"]
    report = agent.next_action(Conversation(opening, (Reply("one"), Reply("two"))))
    assert report == Say("I ran 2 command(s). The last one printed:\n\ntwo")
    look = agent.next_action(Conversation(opening, (Reply("one"), Reply("two"), Reply(said="and now?"))))
    assert look == Bash("pwd && ls -la", "Run command 1 of 1")


SITE = "Have a look at `/app/site.ini`. Please set `instance` in section `[site]` to the instance id."
SHOWN = "[site]\ninstance =\n-----8<-----\n# instance: rc-77\nname,port,state\ngateway,1,on\n"


def test_the_same_request_gets_the_same_answer_and_an_action_needs_its_reply() -> None:
    conversation = Conversation(SITE, (Reply(SHOWN),))
    assert agent.next_action(conversation) == agent.next_action(conversation)
    assert agent.next_action(Conversation(SITE)) != agent.next_action(conversation)


def test_values_come_from_what_was_shown() -> None:
    seen = [agent.next_action(Conversation(SITE, (Reply(SHOWN), Reply())))]
    blind = [agent.next_action(Conversation(SITE, (Reply(""), Reply())))]
    assert [a.command for a in seen if isinstance(a, Bash)] == ["sed -i -e 's/^instance =.*/instance = rc-77/' /app/site.ini"]
    assert [a.command for a in blind if isinstance(a, Bash)] == ["sed -i -e 's/^instance =.*/instance = /' /app/site.ini"]
