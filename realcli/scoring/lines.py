"""The line of a hand-written document an error speaks of. Pure."""

from __future__ import annotations

from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNKNOWN = ": unknown key "


def line_of(text: str | bytes, told: str) -> int | None:
    """Line (from 1) of the place `told` begins with (`runs[3].scenarios.q: …`), as far as the document goes that way; None where
    it begins with none. The text is YAML that was read before, of which JSON is a part."""
    try:
        node = yaml.compose(text, _LOADER)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    line, rest = None, told
    while node is not None:
        step = _step(node, rest)
        if step is None:
            break
        line, node, rest = step
    return _unknown(node, rest) or line


def _step(node: Any, rest: str) -> tuple[int, Any, str] | None:
    """The line of the next step, what stands there, and what is left of the place. A name may hold dots: the longest counts."""
    if isinstance(node, yaml.SequenceNode) and rest.startswith("["):
        number, bracket, after = rest[1:].partition("]")
        if bracket and number.isdecimal() and int(number) < len(node.value):
            item = node.value[int(number)]
            return item.start_mark.line + 1, item, after
    elif isinstance(node, yaml.MappingNode):
        name = rest.removeprefix(".")
        keys = [pair for pair in node.value if isinstance(pair[0], yaml.ScalarNode) and _begins(name, pair[0].value)]
        if keys:
            key, value = max(keys, key=lambda pair: len(pair[0].value))
            return key.start_mark.line + 1, value, name[len(key.value) :]
    return None


def _begins(name: str, key: str) -> bool:
    return bool(key) and name.startswith(key) and name[len(key) : len(key) + 1] in ("", ".", "[", ":", " ")


def _unknown(node: Any, rest: str) -> int | None:
    """The line of a key that has no business in its mapping."""
    if not isinstance(node, yaml.MappingNode) or _UNKNOWN not in rest:
        return None
    named = rest.partition(_UNKNOWN)[2]
    lines = (key.start_mark.line + 1 for key, _ in node.value if named.startswith(repr(key.value)))
    return next(lines, None)
