"""What the tests said, by Harbor's rules: `reward.json` before `reward.txt`, the exit status of test.sh ignored. Pure.

The files are written by the tests, but the agent's programs ran beside them: everything is checked, nothing is repaired.
A `reward.json` that is there and wrong is not replaced by a `reward.txt` that is right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from pydantic import JsonValue, ValidationError

from realcli.api.trial import Checks

REWARD_JSON = "reward.json"
REWARD_TXT = "reward.txt"
MAX_REWARD_BYTES = 64 << 10
MAX_REWARDS = 100
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_PLACES = Decimal(1).scaleb(-20)
_LARGEST = Decimal(10) ** 9


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The file is there and cannot be taken: a link, no regular file, too long."""

    why: str


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward as a decimal string, and further named ones."""

    reward: str
    rewards: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NoReward:
    """There is no reward that could be trusted."""

    why: str


def read_reward(files: Mapping[str, bytes | Unreadable]) -> Reward | NoReward:
    """The reward of `/logs/verifier`; `files` holds what is there of reward.json and reward.txt."""
    for name, parse in ((REWARD_JSON, _json), (REWARD_TXT, _txt)):
        content = files.get(name)
        if content is None:
            continue
        if isinstance(content, Unreadable):
            return NoReward(f"{name}: {content.why}")
        try:
            return parse(content)
        except ValueError as error:
            return NoReward(f"{name}: {error}")
    return NoReward("the tests left neither reward.json nor reward.txt in /logs/verifier")


def read_checks(ctrf: bytes) -> Checks | None:
    """The summary of a CTRF report; None where there is none that makes sense. It is shown, never scored."""
    try:
        summary = json.loads(ctrf)["results"]["summary"]
        checks = Checks(passed=summary["passed"], total=summary["tests"])
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return None
    return checks if checks.passed <= checks.total else None


def _txt(content: bytes) -> Reward:
    return Reward(_decimal(_text(content).strip()), {})


def _json(content: bytes) -> Reward:
    try:
        value: JsonValue = json.loads(
            _text(content), parse_float=_Literal, parse_int=_Literal, parse_constant=_Literal, object_pairs_hook=_unique
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError('expected an object such as {"reward": 1}')
    if not 0 < len(value) <= MAX_REWARDS:
        raise ValueError(f"it holds {len(value)} rewards; expected 1 to {MAX_REWARDS}")
    rewards: dict[str, str] = {}
    for name, number in value.items():
        if not isinstance(number, _Literal):
            raise ValueError(f"{name[:40]!r} is not a number")
        rewards[name] = _decimal(number.text, f"{name[:40]!r}: ")
    main = "reward" if "reward" in rewards else next(iter(rewards))
    if main != "reward" and len(rewards) > 1:
        raise ValueError('it holds several rewards and none is called "reward"')
    return Reward(rewards[main], {name: reward for name, reward in rewards.items() if name != main})


class _Literal:
    """A number as it was written, NaN and Infinity included."""

    def __init__(self, text: str) -> None:
        self.text = text


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise ValueError("a name stands twice")
    return dict(pairs)


def _text(content: bytes) -> str:
    if len(content) > MAX_REWARD_BYTES:
        raise ValueError(f"it is longer than {MAX_REWARD_BYTES} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None


def _decimal(text: str, where: str = "") -> str:
    """A finite number not below 0, at most 20 places, rounded down so that nothing becomes 1 that is not."""
    if len(text) > 400 or not _NUMBER.fullmatch(text):
        shown = text if len(text) <= 40 else text[:40] + "…"
        raise ValueError(f"{where}{shown!r} is not a finite number")
    number = Decimal(text)
    if number.is_signed() and number != 0:
        raise ValueError(f"{where}{text!r} is negative")
    if number > _LARGEST:
        raise ValueError(f"{where}{text!r} is over {_LARGEST}")
    if -int(number.as_tuple().exponent) > 20:
        number = number.quantize(_PLACES, rounding=ROUND_DOWN)
    fixed = format(abs(number), "f")
    return (fixed.rstrip("0").rstrip(".") if "." in fixed else fixed.lstrip("0")) or "0"
