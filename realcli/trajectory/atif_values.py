"""Values of a ledger as ATIF has them: contents of blobs, arguments, tools, tokens and cost. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from pydantic import JsonValue

from realcli.ledger.base import writable
from realcli.ledger.events import BlobRef, ModelReply, Text
from realcli.trajectory.atif_document import AtifMetrics, AtifStep, AtifTotals, Extra
from realcli.trajectory.patterns import Blobs


class Contents:
    """Texts and values of events, wherever they lie. `missing`: digests of blobs that could not be had."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.missing: set[str] = set()

    def read(self, ref: BlobRef) -> bytes | None:
        """The bytes of a blob; None and noted where there are none."""
        raw = self._blobs.read(ref)
        if raw is None:
            self.missing.add(ref.blob)
        return raw

    def text(self, value: Text) -> str:
        """A text; bytes that are no UTF-8 become U+FFFD, one that cannot be had says so."""
        if isinstance(value, str):
            return clean(value)
        raw = self.read(value)
        return absent(value) if raw is None else raw.decode("utf-8", "replace")

    def json(self, value: BlobRef | JsonValue) -> JsonValue:
        """A JSON value."""
        if not isinstance(value, BlobRef):
            return cleaned(value)
        raw = self.read(value)
        return absent(value) if raw is None else as_json(raw)


def absent(ref: BlobRef) -> str:
    """What stands in the place of a blob that cannot be had."""
    return f"[{ref.size} bytes that are not here: blob {ref.blob}]"


def as_json(raw: bytes) -> JsonValue:
    """The value of a blob; the text itself where it is no JSON."""
    text = raw.decode("utf-8", "replace")
    try:
        return cleaned(json.loads(text))
    except (ValueError, RecursionError):
        return text


def cleaned(value: JsonValue) -> JsonValue:
    """The value with what no UTF-8 can hold replaced, finite and no deeper than a ledger's."""
    kept: JsonValue = writable(value)
    loaded: JsonValue = json.loads(clean(json.dumps(kept, ensure_ascii=False)))
    return loaded


def clean(text: str) -> str:
    """Lone surrogates, which JSON can escape, as question marks."""
    return text.encode("utf-8", "replace").decode()


def moment(text: str) -> str | None:
    """The time of an event, None where it is no ISO 8601."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return None
    return text


def arguments_of(value: JsonValue) -> tuple[Extra, bool]:
    """The arguments of a call, which are an object; any other value stands in one under `input` (then True)."""
    return (value, False) if isinstance(value, dict) else ({"input": value}, True)


def tool_definitions(offered: Iterable[JsonValue]) -> tuple[Extra, ...]:
    """Tools with a name, each once, as OpenAI's function calling has them, whichever API offered them.

    Anthropic: {name, description, input_schema}. Responses: {type: function, name, description, parameters}. Chat: {type:
    function, function: {…}}. Tools of another kind (custom, or the provider's own) keep the form they have.
    """
    found: dict[str, Extra] = {}
    for tools in offered:
        for tool in tools if isinstance(tools, list) else []:
            made = _definition(tool)
            if made is not None:
                found.setdefault(*made)
    return tuple(found.values())


def _definition(tool: JsonValue) -> tuple[str, Extra] | None:
    if not isinstance(tool, dict):
        return None
    inner = tool.get("function")
    if isinstance(inner, dict):
        return (str(inner["name"]), tool) if isinstance(inner.get("name"), str) else None
    name = tool.get("name", tool.get("type"))
    if not isinstance(name, str):
        return None
    schema = tool.get("input_schema", tool.get("parameters"))
    if not isinstance(schema, dict):
        return name, tool
    about = {"description": tool["description"]} if isinstance(tool.get("description"), str) else {}
    return name, {"type": "function", "function": {"name": name, **about, "parameters": schema}}


def metrics_of(replies: Sequence[ModelReply], requests: int) -> AtifMetrics | None:
    """Sums over the replies of a turn. With one whose usage (cost) nobody told, or which never came, there is no sum."""
    if not replies:
        return None
    usages = [reply.usage for reply in replies if reply.usage is not None]
    costs = [Decimal(reply.cost_usd) for reply in replies if reply.cost_usd is not None]
    told = bool(usages) and len(usages) == max(requests, len(replies))
    priced = bool(costs) and len(costs) == max(requests, len(replies))
    last = replies[-1]
    extra: Extra = {"status": last.status, "totalMs": sum(reply.total_ms for reply in replies)}
    extra |= {"stopReason": last.stop_reason} if last.stop_reason is not None else {}
    extra |= {"abortedBy": last.aborted} if last.aborted is not None else {}
    extra |= {"cacheWriteTokens": sum(usage.cache_write for usage in usages)} if told else {}
    return AtifMetrics(
        prompt_tokens=sum(usage.input + usage.cache_read + usage.cache_write for usage in usages) if told else None,
        completion_tokens=sum(usage.output for usage in usages) if told else None,
        cached_tokens=sum(usage.cache_read for usage in usages) if told else None,
        cost_usd=float(sum(costs, Decimal(0))) if priced else None,
        extra=extra,
    )


def totals_of(steps: Sequence[AtifStep]) -> AtifTotals:
    """Sums over the turns; none where one turn's number is not known, and then how many turns those are."""
    turns = [step.metrics for step in steps if step.llm_call_count]
    known = [made for made in turns if made is not None]
    priced = [made.cost_usd for made in known if made.cost_usd is not None]
    told = [made for made in known if made.prompt_tokens is not None]
    whole = bool(turns) and len(told) == len(turns)
    extra: Extra = {} if whole or not turns else {"turnsWithoutUsage": len(turns) - len(told)}
    return AtifTotals(
        total_prompt_tokens=sum(made.prompt_tokens or 0 for made in told) if whole else None,
        total_completion_tokens=sum(made.completion_tokens or 0 for made in told) if whole else None,
        total_cached_tokens=sum(made.cached_tokens or 0 for made in told) if whole else None,
        total_cost_usd=float(sum(map(Decimal, map(str, priced)))) if turns and len(priced) == len(turns) else None,
        total_steps=len(steps),
        extra=extra or None,
    )
