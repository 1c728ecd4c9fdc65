"""What the server needs of a wire, and what they share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from realcli_provider.conversation import Api, Request
from realcli_provider.reply import Made

PIECE = 24  # characters per delta
Body = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """One wire."""

    api: Api
    invalid: Callable[[object], str | None]
    """What is wrong with a body, None if nothing."""
    parse: Callable[[Body], Request]
    whole: Callable[[Made, Body], Body]
    events: Callable[[Made, Body], Iterator[bytes]]
    error: Callable[[int, str, str], Body]
    """(status, message, request id) -> the body of an error answer."""


def sse(kind: str | None, data: object) -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {kind}\n" if kind else "").encode() + f"data: {text}\n\n".encode()


def pieces(text: str) -> list[str]:
    """A text in the parts that a stream brings."""
    return re.findall(rf".{{1,{PIECE}}}", text, re.DOTALL)


def lacking(body: object, *fields: tuple[str, type | tuple[type, ...], str]) -> str | None:
    """The first (name, types, word for them) that the body has not."""
    if not isinstance(body, dict):
        return "the request body is not a JSON object"
    for name, types, word in fields:
        if name not in body:
            return f"{name}: Field required"
        if not isinstance(body[name], types):
            return f"{name}: Input should be a valid {word}"
    return None


def blocks(content: object) -> list[Body]:
    """Content as a list of blocks, whether it is a text or a list."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def text_of(content: object) -> str:
    """The texts of the content, one per line."""
    return "\n".join(str(block.get("text", "")) for block in blocks(content) if "text" in block)
