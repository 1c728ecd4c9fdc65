"""Server-side apply of one field manager on plain JSON, as far as the fake needs it.

Objects merge by key; ``conditions`` merge by ``type``; other lists are atomic. What the manager applied before and does
not apply now is removed; what others own stays (force).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from realcli_operator.kube.views import Json


def server_side_apply(live: Json, before: Json, intent: Json) -> dict[str, Any]:
    """The new object: ``live`` without what was applied ``before`` and is not in ``intent``, merged with ``intent``."""
    return _merge(_without(live, before, intent), intent)


def _without(live: Json, before: Json, intent: Json) -> dict[str, Any]:
    result = copy.deepcopy(dict(live))
    for key, old in before.items():
        if key not in result:
            continue
        if key not in intent:
            kept = _without(result[key], old, {}) if _both_maps(result[key], old) else None
            if kept:
                result[key] = kept
            else:
                del result[key]
        elif _both_maps(result[key], old) and isinstance(intent[key], Mapping):
            result[key] = _without(result[key], old, intent[key])
        elif key == "conditions":
            gone = {entry["type"] for entry in old} - {entry["type"] for entry in intent[key]}
            result[key] = [entry for entry in result[key] if entry["type"] not in gone]
    return result


def _merge(live: Json, intent: Json) -> dict[str, Any]:
    result = dict(live)
    for key, value in intent.items():
        if _both_maps(result.get(key), value):
            result[key] = _merge(result[key], value)
        elif key == "conditions" and isinstance(result.get(key), list):
            by_type = {entry["type"]: entry for entry in result[key]}
            by_type |= {entry["type"]: copy.deepcopy(dict(entry)) for entry in value}
            result[key] = list(by_type.values())
        else:
            result[key] = copy.deepcopy(value)
    return result


def _both_maps(one: object, other: object) -> bool:
    return isinstance(one, Mapping) and isinstance(other, Mapping)
