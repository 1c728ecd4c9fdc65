"""Harbor's reward rules as a table, and properties over arbitrary bytes."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.api.trial import Checks
from realcli_session.verify.reward import NoReward, Reward, Unreadable, read_checks, read_reward

TXT = {
    "1": "1", "0": "0", "1.0\n": "1", " 0.5 ": "0.5", "1e0": "1", "1E-2": "0.01", ".25": "0.25", "3.": "3", "+1": "1",
    "-0.0": "0", "100": "100", "0.80": "0.8", "0.99999999999999999999999": "0.99999999999999999999", "1e-30": "0", "007": "7",
}  # fmt: skip


@pytest.mark.parametrize("text", TXT)
def test_reward_txt(text: str) -> None:
    assert read_reward({"reward.txt": text.encode()}) == Reward(TXT[text], {})


REFUSED = [
    "", " ", "nan", "NaN", "inf", "-inf", "Infinity", "-1", "-0.5", "-1e-9", "one", "0x1", "1_0", "1,0", "1 1", "1\n1", "True",
    "1e999", "1e10", "١", "1\x00", "9" * 401, "1" * 30,
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_reward_txt_refused(text: str) -> None:
    assert isinstance(read_reward({"reward.txt": text.encode()}), NoReward)


JSON = {
    '{"reward": 1}': Reward("1", {}),
    '{"reward": 0.5, "style": 1}': Reward("0.5", {"style": "1"}),
    '{"score": 0.25}': Reward("0.25", {}),
    '{"reward": 1e0}': Reward("1", {}),
    ' {"reward" : 0 } ': Reward("0", {}),
}


@pytest.mark.parametrize("text", JSON)
def test_reward_json(text: str) -> None:
    assert read_reward({"reward.json": text.encode()}) == JSON[text]


REFUSED_JSON = {
    "NaN": '{"reward": NaN}',
    "Infinity": '{"reward": Infinity}',
    "negative Infinity": '{"reward": -Infinity}',
    "negative": '{"reward": -1}',
    "a string": '{"reward": "1"}',
    "a boolean": '{"reward": true}',
    "null": '{"reward": null}',
    "a list": "[1]",
    "a bare number": "1",
    "empty": "{}",
    "nothing": "",
    "twice": '{"reward": 0, "reward": 1}',
    "several without the main one": '{"a": 1, "b": 1}',
    "one of several is wrong": '{"reward": 1, "b": NaN}',
    "nested": '{"reward": {"reward": 1}}',
    "deep": '{"reward": ' + "[" * 60_000,
    "huge": '{"reward": 1e99}',
}


@pytest.mark.parametrize("name", REFUSED_JSON)
def test_reward_json_refused(name: str) -> None:
    assert isinstance(read_reward({"reward.json": REFUSED_JSON[name].encode()}), NoReward)


FILES = {
    "json comes first": ({"reward.json": b'{"reward": 0}', "reward.txt": b"1"}, Reward("0", {})),
    "a wrong json is not replaced by a right txt": ({"reward.json": b"oops", "reward.txt": b"1"}, None),
    "a linked json is not replaced either": ({"reward.json": Unreadable("a symbolic link"), "reward.txt": b"1"}, None),
    "a linked txt": ({"reward.txt": Unreadable("a symbolic link")}, None),
    "too long": ({"reward.txt": b" " * (64 << 10) + b"1"}, None),
    "not UTF-8": ({"reward.txt": b"\xff1"}, None),
    "none": ({}, None),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name: str) -> None:
    files, expected = FILES[name]
    found = read_reward(files)
    assert found == expected if expected else isinstance(found, NoReward)


def test_why_names_the_file() -> None:
    found = read_reward({"reward.json": Unreadable("a symbolic link")})
    assert found == NoReward("reward.json: a symbolic link")


@given(st.binary(max_size=200), st.sampled_from(["reward.json", "reward.txt"]))
def test_any_bytes_give_a_number_or_a_reason(content: bytes, name: str) -> None:
    found = read_reward({name: content})
    if isinstance(found, Reward):
        assert Decimal(found.reward).is_finite()
        assert len(found.reward) <= 32
        assert Decimal(found.reward) >= 0
    else:
        assert found.why


@given(st.decimals(min_value=0, max_value=10, allow_nan=False, places=25))
def test_only_one_is_one(number: Decimal) -> None:
    found = read_reward({"reward.txt": str(number).encode()})
    if isinstance(found, Reward):
        assert (found.reward == "1") <= (Decimal(1) <= number < Decimal(1) + Decimal(1).scaleb(-20))


CTRF = {
    '{"results": {"summary": {"tests": 3, "passed": 2, "failed": 1}}}': Checks(passed=2, total=3),
    '{"results": {"summary": {"tests": 1, "passed": 2}}}': None,
    '{"results": {"summary": {"tests": -1, "passed": -1}}}': None,
    '{"results": {"summary": {"tests": "x", "passed": 0}}}': None,
    '{"results": []}': None,
    "[]": None,
    "no json": None,
    "": None,
}


@pytest.mark.parametrize("text", CTRF)
def test_checks(text: str) -> None:
    assert read_checks(text.encode()) == CTRF[text]
