"""A judge on the OpenAI APIs, Chat Completions or Responses, by the official SDK; any compatible base URL."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterator
from time import sleep as _sleep
from typing import Any, TypeVar

import httpx
import openai
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from realcli.api.trial import Tokens
from realcli.judging.model import JudgeReply, JudgeRequest, Message, ToolUse
from realcli.judging.port import BackendRefused
from realcli_judge.backends.calling import TIMEOUT, Trouble, arguments, call, plain, reply_from, usage_of
from realcli_judge.backends.timed import hooks

R = TypeVar("R")
_STOPS = {"stop": "end", "tool_calls": "tools", "function_call": "tools", "length": "length", "content_filter": "refusal"}


class OpenAIBackend:
    """`Backend` for requests of `api` chat and responses. `url` with /v1; None: the provider's own."""

    def __init__(self, url: str | None, key: str, sleep: Callable[[float], None] = _sleep) -> None:
        client = openai.DefaultHttpxClient(timeout=TIMEOUT, event_hooks=hooks(httpx))
        weakref.finalize(self, client.close)  # the SDK ends those that it makes itself
        self._client = openai.OpenAI(api_key=key, base_url=url, max_retries=0, timeout=TIMEOUT, http_client=client)
        self._where, self._key, self._sleep = url or "the OpenAI API", key, sleep
        self._limit = "max_completion_tokens"  # older servers know it as max_tokens

    def close(self) -> None:
        """End its connections; nothing is asked after that."""
        self._client.close()

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See `realcli.judging.port.Backend`."""
        if request.api == "responses":
            body = responses_body(request)
            return self._call(lambda: reply_from(responses_reply, self._client.responses.create(**body)))
        try:
            return self._chat(request)
        except BackendRefused as error:
            if self._limit == "max_tokens" or "max_completion_tokens" not in str(error):
                raise
            self._limit = "max_tokens"
            return self._chat(request)

    def _chat(self, request: JudgeRequest) -> JudgeReply:
        body = chat_body(request, self._limit)
        return self._call(lambda: reply_from(chat_reply, self._client.chat.completions.create(**body)))

    def _call(self, do: Callable[[], R]) -> R:
        return call(do, _trouble, self._where, self._key, self._sleep)


def _chat_checked(answer: object) -> ChatCompletion:
    """ValueError for what a broken endpoint sends with status 200; SDKs take a good deal."""
    if not isinstance(answer, ChatCompletion) or not answer.choices or answer.choices[0].message is None:
        raise ValueError("no completion")
    return answer


def _responses_checked(answer: object) -> Response:
    if not isinstance(answer, Response) or not isinstance(answer.output, list):
        raise ValueError("no response")
    return answer


def chat_body(request: JudgeRequest, limit: str) -> dict[str, Any]:
    """The request as Chat Completions wants it."""
    body: dict[str, Any] = {
        "model": request.model,
        limit: request.parameters.max_output_tokens,
        "messages": [{"role": "system", "content": request.system}, *_chat_messages(request.messages)],
        "tools": [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in request.tools
        ],
    }
    if request.parameters.temperature is not None:
        body["temperature"] = float(request.parameters.temperature)
    return body


def _chat_messages(messages: list[Message]) -> Iterator[dict[str, Any]]:
    for message in messages:
        if message.role == "assistant":
            calls = [
                {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": _json(use.input)}}
                for use in message.uses
            ]
            yield {"role": "assistant", "content": message.text or None, **({"tool_calls": calls} if calls else {})}
            continue
        for returned in message.returns:
            text = f"error: {returned.text}" if returned.is_error else returned.text
            yield {"role": "tool", "tool_call_id": returned.id, "content": text}
        if message.text:
            yield {"role": "user", "content": message.text}


def chat_reply(given: object) -> JudgeReply:
    """What came back; reasoning is left out."""
    answer = _chat_checked(given)
    choice = answer.choices[0]
    message = choice.message
    uses = [
        ToolUse(id=plain(one.id), name=plain(one.function.name), input=arguments(one.function.arguments))
        for one in message.tool_calls or []
        if one.type == "function"
    ]
    stop = "refusal" if message.refusal else _STOPS.get(choice.finish_reason or "", "other")
    tokens = _usage(answer.usage, "prompt_tokens", "completion_tokens")
    text = plain(message.content or message.refusal)
    return JudgeReply.model_validate(
        {"message": Message(role="assistant", text=text, uses=uses), "stop": stop, "model": plain(answer.model), "usage": tokens}
    )


def responses_body(request: JudgeRequest) -> dict[str, Any]:
    """The request as Responses wants it; nothing is kept at the provider."""
    body: dict[str, Any] = {
        "model": request.model,
        "max_output_tokens": request.parameters.max_output_tokens,
        "instructions": request.system,
        "input": list(_items(request.messages)),
        "tools": [
            {"type": "function", "name": t.name, "description": t.description, "parameters": t.parameters, "strict": False}
            for t in request.tools
        ],
        "store": False,
    }
    if request.parameters.temperature is not None:
        body["temperature"] = float(request.parameters.temperature)
    return body


def _items(messages: list[Message]) -> Iterator[dict[str, Any]]:
    for message in messages:
        for returned in message.returns:
            text = f"error: {returned.text}" if returned.is_error else returned.text
            yield {"type": "function_call_output", "call_id": returned.id, "output": text}
        if message.text:
            yield {"role": message.role, "content": message.text}
        for use in message.uses:
            yield {"type": "function_call", "call_id": use.id, "name": use.name, "arguments": _json(use.input)}


def responses_reply(given: object) -> JudgeReply:
    """What came back; reasoning is left out."""
    answer = _responses_checked(given)
    texts: list[str] = []
    uses: list[ToolUse] = []
    refused = False
    for item in answer.output:
        if item.type == "function_call":
            uses.append(ToolUse(id=plain(item.call_id), name=plain(item.name), input=arguments(item.arguments)))
        elif item.type == "message":
            for part in item.content:
                refused = refused or part.type == "refusal"
                texts.append(plain(part.refusal if part.type == "refusal" else part.text))
    reason = answer.incomplete_details.reason if answer.incomplete_details is not None else None
    cut = {"max_output_tokens": "length", "content_filter": "refusal"}.get(reason or "")
    stop = "refusal" if refused else cut or ("tools" if uses else "end")
    tokens = _usage(answer.usage, "input_tokens", "output_tokens")
    message = Message(role="assistant", text="\n".join(texts), uses=uses)
    return JudgeReply.model_validate({"message": message, "stop": stop, "model": plain(answer.model), "usage": tokens})


def _usage(usage: object, read: str, written: str) -> Tokens | None:
    """Input tokens count cached ones too. None where the server does not say."""
    total, output = getattr(usage, read, None), getattr(usage, written, None)
    cached = getattr(getattr(usage, f"{read}_details", None), "cached_tokens", None)
    if isinstance(total, int) and isinstance(cached, int):
        total = max(0, total - cached)
    return usage_of(total, output, cached)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _trouble(error: Exception) -> Trouble | None:
    match error:
        case openai.APIStatusError():
            return Trouble(error.status_code, error.message, error.response.headers.get("retry-after"))
        case openai.APIConnectionError():
            return Trouble(None, f"no answer: {error.message}")
        case openai.OpenAIError() | ValueError() | RecursionError():
            return Trouble(None, f"an answer that is none of the API's: {error}")
        case _:
            return None
