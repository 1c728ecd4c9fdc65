"""The wording model's endpoint. aiohttp and two request shapes: an SDK for each API would be two dependencies for one call."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import aiohttp

from realcli.api.trial import Tokens
from realcli_session.user.wording.brief import SCHEMA, SYSTEM

MAX_ANSWER = 1 << 20
MAX_TOKENS = 2000
SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of one request. `text`: the model's JSON, None where there is none; then `error` says why."""

    text: str | None
    status: int | None = None
    model: str | None = None
    usage: Tokens | None = None
    total_ms: int = 0
    error: str | None = None


class Endpoint(Protocol):
    """Asks the model once."""

    async def ask(self, user_text: str, seed: int) -> Answered:
        """Never raises for what an endpoint can do."""

    async def close(self) -> None:
        """Let the connections go."""


class HttpEndpoint:
    """Anthropic Messages or Chat Completions. Redirects, proxies and cookies are off: nothing may lead the key elsewhere."""

    def __init__(self, api: Literal["anthropic", "chat"], url: str, key: str, model: str, temperature: float) -> None:
        self._api, self._url, self._key, self._model, self._temperature = api, url.rstrip("/"), key, model, temperature
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, user_text: str, seed: int) -> Answered:
        """One request, no retry."""
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=SECONDS)
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=False, cookie_jar=aiohttp.DummyCookieJar())
        path, headers, body = self._request(user_text, seed)
        started = time.monotonic()
        try:
            async with self._session.post(self._url + path, json=body, headers=headers, allow_redirects=False) as response:
                data = await response.content.read(MAX_ANSWER)
                status = response.status
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            return Answered(None, total_ms=_since(started), error=f"{type(error).__name__}: {error}")
        if status != 200:
            return Answered(None, status, total_ms=_since(started), error=data[:500].decode("utf-8", "replace"))
        try:
            value = json.loads(data)
            text, usage = self._answer(value)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            return Answered(
                None, status, total_ms=_since(started), error=f"no answer of this API: {type(error).__name__}: {error}"
            )
        return Answered(text, status, value.get("model"), usage, _since(started))

    async def close(self) -> None:
        """Let the connections go."""
        if self._session is not None:
            await self._session.close()

    def _request(self, user_text: str, seed: int) -> tuple[str, dict[str, str], dict[str, Any]]:
        common: dict[str, Any] = {"model": self._model, "max_tokens": MAX_TOKENS, "temperature": self._temperature}
        if self._api == "anthropic":
            tool = {"name": "say", "description": "The message.", "input_schema": SCHEMA}
            return (
                "/v1/messages",
                {"x-api-key": self._key, "anthropic-version": "2023-06-01"},
                common | {
                    "system": SYSTEM, "messages": [{"role": "user", "content": user_text}], "tools": [tool],
                    "tool_choice": {"type": "tool", "name": "say"},
                },
            )  # fmt: skip
        schema = {"name": "message", "strict": True, "schema": SCHEMA}
        return (
            "/chat/completions",
            {"Authorization": f"Bearer {self._key}"},
            common | {
                "seed": seed, "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user_text}],
                "response_format": {"type": "json_schema", "json_schema": schema},
            },
        )  # fmt: skip

    def _answer(self, value: dict[str, Any]) -> tuple[str, Tokens]:
        usage = value.get("usage") or {}
        if self._api == "anthropic":
            said = next(block["input"] for block in value["content"] if block.get("type") == "tool_use")
            counted = Tokens(
                input=usage.get("input_tokens") or 0,
                cache_read=usage.get("cache_read_input_tokens") or 0,
                cache_write=usage.get("cache_creation_input_tokens") or 0,
                output=usage.get("output_tokens") or 0,
            )
            return json.dumps(said), counted
        text = value["choices"][0]["message"]["content"]
        if not isinstance(text, str):
            raise TypeError("the message has no text")
        return text, Tokens(input=usage.get("prompt_tokens") or 0, output=usage.get("completion_tokens") or 0)


def _since(started: float) -> int:
    return round(1000 * (time.monotonic() - started))
