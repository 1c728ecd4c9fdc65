"""`${NAME}` in a catalogue entry, replaced by what a task's author bound to the instance."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import JsonValue

_NAME = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")


class BindingError(ValueError):
    """A name that is not bound, or bound to something that cannot stand where the name stands."""


def substitute(value: JsonValue, bindings: Mapping[str, JsonValue]) -> JsonValue:
    """`value` with every `${NAME}` replaced. A text that is nothing but one name takes the bound value as it is.

    Raises `BindingError` for a name that is not bound, or one inside a longer text whose value is not a text.
    """
    if isinstance(value, dict):
        return {key: substitute(item, bindings) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, bindings) for item in value]
    if not isinstance(value, str):
        return value
    whole = whole_name(value)
    if whole is not None:
        return _bound(whole, bindings)

    def inside(match: re.Match[str]) -> str:
        found = _bound(match[1], bindings)
        if not isinstance(found, str):
            raise BindingError(f"${{{match[1]}}} stands inside the text {value!r}: its binding has to be a text, not {found!r}")
        return found

    return _NAME.sub(inside, value)


def action_id(value: JsonValue) -> str | None:
    """The action a binding names: the id itself, or the `id` of an action written as {id, cmd, paths}; None: it names none."""
    found = value.get("id") if isinstance(value, dict) else value
    return found if isinstance(found, str) and found else None


def whole_name(value: JsonValue) -> str | None:
    """The name, where `value` is a text that is nothing but one `${NAME}`."""
    found = _NAME.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else None


def names_in(value: JsonValue) -> set[str]:
    """Every name used in `value`."""
    if isinstance(value, dict):
        return set().union(*(names_in(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(names_in(item) for item in value))
    return set(_NAME.findall(value)) if isinstance(value, str) else set()


def _bound(name: str, bindings: Mapping[str, JsonValue]) -> JsonValue:
    if name not in bindings:
        known = ", ".join(sorted(bindings)) or "nothing"
        raise BindingError(f"${{{name}}} is not bound; the probe binds {known}: add it to `bindings` in interaction/script.json")
    return bindings[name]
