"""Arguments of operators, bindings, and order against a model of rounds."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.benchmark.models import Edit, Probe
from realcli.checks import CheckError, Context, run_hard
from realcli.checks.bindings import bindings_of, substitute
from realcli.checks.order import relation
from realcli.ledger.events import AgentMessage, Data
from tests.support.checking import decided, ran, snapshot, typed, wrote
from tests.support.ledgers import Ledger

PATTERN = {"event": "file_read", "where": {"path": "/a"}}
THEN = {"event": "file_write", "where": {"path": "/a"}}


class NoSnapshots:
    def read(self, seq: int, path: str) -> bytes | None:
        return None

    def paths(self, seq: int) -> list[str]:
        return []


@given(st.integers(1, 8), st.integers(0, 8), st.integers(1, 4), st.data())
def test_relation_never_contradicts_what_happened(read: int, after: int, length: int, data: st.DataObject) -> None:
    """Whatever round the write really was in, inside its stretch, a certain answer is the true one."""
    before = after + length
    real = data.draw(st.integers(after, before - 1))  # the round after request `real`
    told = relation(read, after, before)
    if told == "after":
        assert real >= read
    if told == "before":
        assert real < read - 1
    if told == "unknown":
        assert after <= read - 1 < before  # only if the round that brought the content is in the stretch


def test_substitution() -> None:
    bound = {"FILE": "/a", "EDIT": {"path": "/a"}, "N": 3}
    assert substitute({"x": ["${FILE}", "in ${FILE}.bak", 1, None], "y": "${EDIT}"}, bound) == {
        "x": ["/a", "in /a.bak", 1, None], "y": {"path": "/a"},
    }  # fmt: skip
    with pytest.raises(CheckError, match=r"\$\{MISSING\} is not bound; the probe binds EDIT, FILE, N"):
        substitute("${MISSING}", bound)
    with pytest.raises(CheckError, match="has to be a text, not 3"):
        substitute("n is ${N}", bound)


def test_bindings_come_from_the_probe() -> None:
    probe = Probe(id="p", scenario="s", text="t", slice="s1", edit=Edit(path="/a", insert=["x"]), bindings={"FILE": "/a"})
    assert bindings_of(probe) == {"FILE": "/a", "NEXT_SLICE": "s1", "USER_EDIT": {"path": "/a", "insert": ["x"]}}
    named = probe.model_copy(update={"bindings": {"NEXT_SLICE": "s2"}, "edit": None})
    assert bindings_of(named) == {"NEXT_SLICE": "s2"}


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "names no operator"),
    ({"op": "mind_read"}, "operator `mind_read` is not defined"),
    ({"op": "order", "then": THEN}, "argument `first` is None; expected an event pattern"),
    ({"op": "order", "first": {**PATTERN, "last": True}, "then": THEN}, "event pattern `first` has last"),
    ({"op": "order", "first": {**PATTERN, "nth": 0}, "then": THEN}, "`nth` is 0"),
    ({"op": "order", "first": {**PATTERN, "nth": 2}, "then": THEN}, "both nth 1"),
    ({"op": "order", "first": {**PATTERN, "where": "x"}, "then": THEN}, "`where` is 'x'"),
    (
        {"op": "order", "first": {"event": "file_read", "where": {"path": "/a", "min_words": "3"}}, "then": THEN},
        "`where.min_words` says nothing of file_read",
    ),
    ({"op": "order_last", "after": "file_write"}, "argument `after` is 'file_write'; expected an event pattern"),
    ({"op": "order_last", "after": {"event": "file_write", "first": 1}}, "argument `after` is"),
    ({"op": "all_of", "of": [{"op": "yielded"}, "yielded"]}, "expected a list of hard checks"),
    ({"op": "all_of", "of": {"op": "yielded"}}, "expected a list of hard checks"),
    ({"op": "text_in_file", "snapshot": "final", "path": "/a", "all": ["x", 3]}, "argument `all` is"),
    ({"op": "text_in_file", "snapshot": "final", "path": "/a", "all": ["x", ""]}, "argument `all` is"),
    ({"op": "text_in_file", "snapshot": "final", "path": "/a", "all": {"x": 1}}, "argument `all` is"),
    ({"op": "path_absent", "snapshot": "final", "path": ["/a", "b"]}, "expected an absolute path or glob"),
    ({"op": "path_absent", "snapshot": "final", "path": ["/a", 3]}, "expected an absolute path or glob"),
    ({"op": "path_absent", "snapshot": "final", "path": []}, "expected an absolute path or glob"),
    ({"op": "max_identical_repeats_le", "n": True}, "argument `n` is True; expected a whole number"),
    ({"op": "max_identical_repeats_le", "n": "x"}, "argument `n` is 'x'; expected a whole number"),
    ({"op": "max_identical_repeats_le", "n": 2.0}, "argument `n` is 2.0; expected a whole number"),
    ({"op": "patch_present", "snapshot": "final", "patch": {"path": "/a", "insert": ["x"]}}, "argument `path` is None"),
    ({"op": "patch_present", "path": "/a", "snapshot": "final", "patch": "diff"}, "expected an edit with path and insert"),
    ({"op": "patch_present", "path": "/a", "snapshot": "final", "patch": {"path": "/b", "insert": ["x"]}}, "the edit is of /b"),
]


@pytest.mark.parametrize(("hard", "message"), BAD, ids=[row[1] for row in BAD])
def test_malformed_checks_are_refused(ledger: Any, hard: dict[str, Any], message: str) -> None:
    trajectory = ledger().until_probe().request().ends().done()
    with pytest.raises(CheckError, match=message):
        run_hard(hard, {}, Context(trajectory, 1, trajectory.post(1), NoSnapshots(), "both"))


def test_vacuous_order_credits_nothing_under_pass(ledger: Any) -> None:
    trajectory = ledger().says().request().ends().done()
    hard = {"op": "order", "first": PATTERN, "then": THEN}
    results = {
        d: run_hard(hard, {}, Context(trajectory, 1, trajectory.post(1), NoSnapshots(), d)).result for d in ("pass", "both")
    }
    assert results == {"pass": "undecided", "both": "pass"}


CONJUNCTION = [
    ({"op": "cmd_absent", "match": "^sudo"}, "fail"), ({"op": "cmd_absent", "match": "^kill"}, "undecided"),
    ({"op": "items_mentioned", "items": ["done"], "scopes": ["agent_messages"]}, "pass"),
]  # fmt: skip
ORDERS = [parts for length in (1, 2, 3) for parts in permutations(CONJUNCTION, length)]


@pytest.mark.parametrize("parts", ORDERS, ids=["+".join(result for _, result in parts) for parts in ORDERS])
def test_conjunction(parts: tuple[tuple[dict[str, Any], str], ...]) -> None:
    """The worst of its parts, whatever their order."""
    run = Ledger().starts().request().emit(ran("sudo", "ls", id=1), typed("./stop.sh", id=2), AgentMessage(text="It is done."))
    got = decided({"op": "all_of", "of": [hard for hard, _ in parts]}, run.ends().trajectory)
    results = [result for _, result in parts]
    assert got.result == next(one for one in ("fail", "undecided", "pass") if one in results), got
    assert got.op == "all_of"


def test_what_may_match_counts_on_its_side_of_the_limit() -> None:
    hard = {"op": "count_le", "event": "command", "where": {"cmd": "^eval x"}, "n": 0, "until": "yield"}
    maybe = ran("sh", "-c", "eval x")
    assert decided(hard, Ledger().starts().request().emit(maybe).request().yields().ends().trajectory).result == "undecided"
    after = Ledger().starts().request().yields().says("go on").request().emit(maybe).ends()
    assert decided(hard, after.trajectory).result == "pass"


LIMIT = {"op": "path_exists", "path": "/b/*", "created_before": {"event": "command", "where": {"cmd": "^(rm|eval)"}}}
MADE: list[tuple[str, list[Data], str]] = [
    ("before", [wrote("/b/1", 0, 1, created=True), ran("rm", "x")], "pass"),
    ("after", [ran("rm", "x"), wrote("/b/1", 3, 4, created=True)], "fail"),
    ("after, twice", [ran("rm", "x"), wrote("/b/1", 3, 4, created=True), wrote("/b/2", 3, 4, created=True)], "fail"),
    ("one after, one at any time", [ran("rm", "x"), wrote("/b/1", 0, 4, created=True), wrote("/b/2", 3, 4, created=True)],
     "undecided"),
    ("only changed", [ran("rm", "x"), wrote("/b/1", 3, 4)], "undecided"),
    ("nothing it had to precede", [ran("ls"), wrote("/b/1", 3, 4, created=True)], "pass"),
    ("what may be what it had to precede", [ran("sh", "-c", "eval x"), wrote("/b/1", 3, 4, created=True)], "undecided"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "events", "result"), MADE, ids=[row[0] for row in MADE])
def test_a_copy_made_in_time(told: str, events: list[Data], result: str) -> None:
    ledger = Ledger().starts().request().request()
    for event in events:
        ledger.emit(event).request()
    ledger.emit(snapshot("final"))
    got = decided(LIMIT, ledger.ends().trajectory, {ledger.last - 2: {"/b/1": b"", "/b/2": b""}})
    assert got.result == result, got


def test_no_final_claim_is_no_claim_after_a_failure() -> None:
    hard = {"op": "no_unqualified_claim_after_failure", "check": "^make"}
    got = decided(hard, Ledger().starts().request().emit(ran("make")).ends("Deadline").trajectory)
    assert (got.result, got.why) == ("undecided", "the agent came to no final claim")
