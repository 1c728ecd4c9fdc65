"""Bindings, globs and events against `where`, independently of `realcli.trajectory`. For interpreter.py."""

from __future__ import annotations

import re
from typing import Any


def glob(pattern: str, path: str) -> bool:
    parts = re.split(r"(\*\*/?|\*|\?)", pattern)
    words = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return re.fullmatch("".join(words.get(part, re.escape(part)) for part in parts), path) is not None


def fill(value: Any, bindings: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: fill(item, bindings) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, bindings) for item in value]
    name = re.fullmatch(r"\$\{(\w+)\}", value) if isinstance(value, str) else None
    return bindings[name[1]] if name else value


def matches(event: dict[str, Any], wanted: dict[str, Any]) -> bool:
    tests = {
        "text": lambda v: re.search(v, event.get("text", "")),
        "cmd": lambda v: re.search(v, event.get("cmd", "")),
        "path": lambda v: any(glob(one, event.get("path", "")) for one in (v if isinstance(v, list) else [v])),
        "marker": lambda v: event.get("marker") == v,
        "marker_re": lambda v: re.search(v, event.get("marker", "")),
        "slice": lambda v: event.get("slice") == v,
        "exit": lambda v: event.get("exit") is not None and bool(event["exit"]) == bool(v),
        "slices_pending": lambda v: event.get("pending") == v,
        "min_words": lambda v: len(re.findall(r"[^\W_]+", event.get("text", ""))) >= v,
    }
    return event["event"] == wanted["event"] and all(tests[key](v) for key, v in (wanted.get("where") or {}).items())
