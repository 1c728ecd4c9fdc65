"""What is common to all dialects in reading a request: JSON that can mean one thing only, and lists of what is allowed.

A new feature of a provider is refused until someone has looked at it. Refused are all ways by which the provider itself would
reach out or keep something: its own tools (search, fetch, code execution), MCP connectors, containers, files, URL sources.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from typing import Any, Final

MAX_MESSAGES: Final = 10_000  # a request event names each by digest in one line
MAX_SYSTEM: Final = 100
MAX_BLOCKS: Final = 20_000  # of all messages together: each may be a tool's result, which is an event of its own
MAX_DEPTH: Final = 100  # lists and objects inside each other; what is deeper, nobody after us could read
MAX_VALUES: Final = 1_000_000
"""Values of a body by its separators, those inside texts counted too (no model reads that many): 32 MB of `[[],[],…` would be
700 MB of objects."""


class BodyRefused(ValueError):
    """The body is no JSON object that can mean one thing only."""


def parse_body(raw: bytes) -> dict[str, Any]:
    """The JSON object of a body. A name given twice is refused: two readers might take different ones."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            raise BodyRefused("json: a name stands twice in one object")
        return value

    def constant(name: str) -> Any:
        raise BodyRefused(f"json: {name} is not JSON")

    def number(text: str) -> float:
        value = float(text)
        if math.isinf(value):
            raise BodyRefused("json: a number is out of range")
        return value

    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > MAX_VALUES:
        raise BodyRefused(f"json: more than {MAX_VALUES} values")
    try:
        body = json.loads(raw, object_pairs_hook=unique, parse_constant=constant, parse_float=number)
    except BodyRefused:
        raise
    except (ValueError, RecursionError) as error:
        raise BodyRefused(f"json: {type(error).__name__}") from error
    if not isinstance(body, dict):
        raise BodyRefused("json: not an object")
    if depth_of(body) > MAX_DEPTH:
        raise BodyRefused(f"json: more than {MAX_DEPTH} lists and objects inside each other")
    return body


def depth_of(value: object) -> int:
    """How many lists and objects stand inside each other, 0 for a plain value; without recursion."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def unknown_field(body: Mapping[str, Any], known: Collection[str]) -> str | None:
    """The first field that is not on the list."""
    for name in body:
        if name not in known:
            return f"feature: {name[:64]}"
    return None


def digest_of(value: Any) -> str:
    """sha256 over the value, whatever the order of names."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def result_text(content: object) -> str:
    """Content as text: its text parts joined by newlines, anything else by its type in brackets."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = []
    for block in content if isinstance(content, list) else [content]:
        text = block.get("text") if isinstance(block, dict) else None
        parts.append(text if isinstance(text, str) else f"[{block.get('type') if isinstance(block, dict) else 'unknown'}]")
    return "\n".join(parts)
