"""The provider's stand-in judge as a backend in this process: its policy and the real wire forms, without the sockets."""

from __future__ import annotations

import threading

from openai.types.chat import ChatCompletion

from realcli.judging.model import JudgeReply, JudgeRequest
from realcli_judge.backends.openai_sdk import chat_body, chat_reply
from realcli_provider.__main__ import DEMO
from realcli_provider.choose import choose
from realcli_provider.dialects import chat
from realcli_provider.reply import make
from realcli_provider.script import read_script


class StandIn:
    """`Backend`; counts what it is asked."""

    def __init__(self) -> None:
        self._script = read_script(DEMO)
        self._lock = threading.Lock()
        self.asked: list[JudgeRequest] = []

    def complete(self, request: JudgeRequest) -> JudgeReply:
        with self._lock:
            self.asked.append(request)
        body = chat_body(request, "max_tokens")
        parsed = chat.parse(body)
        made = make(body, parsed, choose(self._script, parsed).answer)
        return chat_reply(ChatCompletion.model_validate(chat.whole(made, body)))


JUDGE = {
    "model": {
        "model": "judge-1",
        "endpoints": {"chat": {"url": "https://judge.invalid/v1", "apiKey": {"secretRef": {"name": "judge", "key": "key"}}}},
        "prices": {"inputPerMillion": "3", "cacheReadPerMillion": "0.3", "outputPerMillion": "15"},
    },
    "votes": 2,
}
