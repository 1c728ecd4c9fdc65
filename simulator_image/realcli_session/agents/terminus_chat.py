"""Requests of Terminus-2 to its model: Chat Completions, not streamed, through the gateway like those of any agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import aiohttp

from realcli_session.gateway.record import clean

MAX_REPLY = 16 << 20
MAX_CONTENT = 4 << 20
MAX_DETAIL = 2000
USER_AGENT = "terminus-2"
_CONTEXT_SIGNS = (
    "context length exceeded",
    "context_length_exceeded",
    "maximum context length",
    "`inputs` tokens + `max_new_tokens`",
    "model's context length",
    "prompt is too long",
    "input is too long for requested model",
)


class Message(TypedDict):
    """One message of the history."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer. Tokens as the provider counts them, None if it does not."""

    content: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    @property
    def total(self) -> int | None:
        """Length of the history with this answer, in tokens."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


class ChatFailed(Exception):
    """The request got no answer that can be used; the message says why."""


class ContextExceeded(ChatFailed):
    """The history is too long for the model."""


class OutputExceeded(ChatFailed):
    """The answer was cut at the model's limit; `partial` is what there is of it."""

    def __init__(self, partial: str) -> None:
        super().__init__("the answer was cut at the length limit")
        self.partial = partial


class ChatClient:
    """One model behind the gateway. `close` when done."""

    def __init__(self, base_url: str, token: str, model: str) -> None:
        root = base_url.rstrip("/")
        self._url = f"{root}/chat/completions" if root.endswith("/v1") else f"{root}/v1/chat/completions"
        self._token = token
        self._model = model
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, messages: Sequence[Message]) -> Reply:
        """One request. Waits for as long as the gateway does. Raises ContextExceeded, OutputExceeded, ChatFailed."""
        body = json.dumps({"messages": list(messages), "model": self._model}).encode()
        try:
            async with self._client().post(self._url, data=body) as response:
                raw = await _read(response)
                status = response.status
        except (aiohttp.ClientError, OSError) as error:
            raise ChatFailed(f"no whole answer from the gateway: {error or type(error).__name__}") from error
        if status != 200:
            raise _failure(status, raw)
        return _reply(raw)

    async def close(self) -> None:
        """Drop what is open. Idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
            self._session = aiohttp.ClientSession(
                headers=headers | {"accept": "application/json", "user-agent": USER_AGENT},
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
            )
        return self._session


async def _read(response: aiohttp.ClientResponse) -> bytes:
    raw = bytearray()
    async for chunk in response.content.iter_any():
        raw += chunk
        if len(raw) > MAX_REPLY:
            raise ChatFailed(f"an answer of more than {MAX_REPLY} bytes")
    return bytes(raw)


def _failure(status: int, raw: bytes) -> ChatFailed:
    text = raw.decode("utf-8", "replace")
    if status == 400 and any(sign in text.lower() for sign in _CONTEXT_SIGNS):
        return ContextExceeded(f"status {status}: {text[:MAX_DETAIL]}")
    try:
        said = json.loads(text)["error"]["message"]
    except (ValueError, LookupError, TypeError, RecursionError):
        said = text
    return ChatFailed(f"status {status}: {clean(str(said))[:MAX_DETAIL]}")


def _reply(raw: bytes) -> Reply:
    try:
        body = json.loads(raw)
        choice = body["choices"][0]
        content = choice["message"].get("content") or ""
        reason = choice.get("finish_reason")
        usage = body.get("usage")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ChatFailed(f"the answer is no chat completion: {raw[:MAX_DETAIL].decode('utf-8', 'replace')}") from error
    if not isinstance(content, str):
        raise ChatFailed(f"the answer's content is no text: {str(content)[:MAX_DETAIL]}")
    content = clean(content)
    if len(content) > MAX_CONTENT:
        raise ChatFailed(f"an answer of {len(content)} characters; at most {MAX_CONTENT} are read")
    if reason == "length":
        raise OutputExceeded(content)
    return Reply(content, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))


def _count(usage: object, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and value >= 0 else None
