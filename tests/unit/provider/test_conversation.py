from __future__ import annotations

from typing import Any

import pytest

from realcli_provider.__main__ import DEMO
from realcli_provider.choose import choose
from realcli_provider.conversation import Conversation, Reply, Request, Tool, conversation_of
from realcli_provider.dialects.anthropic import parse, parts
from realcli_provider.script import Answer, read_script

SCRIPT = read_script(DEMO)


def answer(conversation: Conversation) -> Answer:
    request = Request("anthropic", "m", False, conversation, tools=(Tool("Bash"),), agent="claude-code")
    return choose(SCRIPT, request).answer


def runs(*answers: Answer) -> list[object]:
    return [each.run for each in answers if each.run is not None]


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
    assert conversation_of(parts(messages)) == expected


def test_a_request_without_tools_is_no_work() -> None:
    request = parse({"model": "m", "messages": [user("/app/site.ini")]})
    assert choose(SCRIPT, request).answer == Answer(say="ok")


def test_an_unknown_task_is_done_as_told_block_by_block() -> None:
    opening = "Please run\n```sh\necho one\n```\nand then\n```bash\necho two\n```\n"
    first = answer(Conversation(opening))
    second = answer(Conversation(opening, (Reply("one"),)))
    assert runs(first, second) == ["echo one", "echo two"]
    report = answer(Conversation(opening, (Reply("one"), Reply("two"))))
    assert report == Answer(say="I ran 2 command(s). The last one printed:\n\ntwo")
    look = answer(Conversation(opening, (Reply("one"), Reply("two"), Reply(said="and now?"))))
    assert look == Answer(run="pwd && ls -la")


SITE = "Have a look at `/app/site.ini`. Please set `instance` in section `[site]` to the instance id."
SHOWN = "[site]\ninstance =\n-----8<-----\n# instance: rc-77\nname,port,state\ngateway,1,on\n"


def test_the_same_request_gets_the_same_answer_and_an_action_needs_its_reply() -> None:
    conversation = Conversation(SITE, (Reply(SHOWN),))
    assert answer(conversation) == answer(conversation)
    assert answer(Conversation(SITE)) != answer(conversation)


def test_values_come_from_what_was_shown() -> None:
    seen = [answer(Conversation(SITE, (Reply(SHOWN), Reply())))]
    blind = [answer(Conversation(SITE, (Reply(""), Reply())))]
    assert runs(*seen) == ["sed -i -e 's/^instance =.*/instance = rc-77/' /app/site.ini"]
    assert runs(*blind) == ["sed -i -e 's/^instance =.*/instance = /' /app/site.ini"]
