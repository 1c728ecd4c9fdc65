"""`realcli score`: what it reads, what it refuses and how, what it prints."""

from __future__ import annotations

import copy
import json
import random
import re
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from realcli.scoring.document import ScoreInputError, score_input
from realcli.scoring.intervals import intervals_output
from realcli.scoring.levels import THRESHOLD
from realcli.scoring.loading import load_score_input, read_score_input
from realcli.scoring.output import score_output
from realcli.scoring.records import RunFacts
from realcli.scoring.runs import ConfigurationLabels, Observation, Run, TaskLabels

WORKED = yaml.safe_load((Path(__file__).parents[2] / "data" / "scoring_vectors.yaml").read_text())["worked_example"]
NAMES = ("R_exec", "R_collab", "S", "S_rate", "S_low", "S_high", "J", "dR", "dJ", "dR_paired")


def worked() -> dict[str, Any]:
    """The worked example as a document."""
    runs: list[dict[str, Any]] = []
    for repeat, tasks in WORKED["collab"].items():
        for task, row in tasks.items():
            seen = {q: v for q, v in row.items() if q != "success"}
            cell = {"configuration": "c", "task": task, "repeat": repeat, "valid": True}
            runs.append({**cell, "mode": "COLLAB", "reward": row["success"], "scenarios": seen})
            runs.append({**cell, "mode": "EXEC", "reward": WORKED["exec_success"][repeat][task], "scenarios": {}})
    return {"threshold": [3, 4], "tree": WORKED["tree"], "runs": runs}


def scored(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = score_output(load_score_input(json.dumps(document), "x.json"))["configurations"]["c"]
    return found


def exact(value: dict[str, Any] | None) -> str | None:
    assert value is None or float(F(value["exact"])) == value["value"]
    return None if value is None else str(value["exact"])


def test_the_worked_example() -> None:
    got = scored(worked())
    assert {name: exact(got[name]) for name in NAMES} == {
        "R_exec": "2/3", "R_collab": "3/5", "S": "8/15", "S_rate": exact(got["S_rate"]), "S_low": "8/15", "S_high": "8/15",
        "J": "17/50", "dR": "-1/15", "dJ": "-49/150", "dR_paired": "-1/15",
    }  # fmt: skip
    assert [exact(bound) for bound in got["R_collab_bounds"]] == ["3/5", "3/5"]
    assert (got["headline"], got["partial"]) == ("S_rate", True)
    assert got["counts"] == {
        "valid": 30, "invalid": 0, "triggered": 63, "untriggered": 4, "not_applicable": 2, "unscored": 0, "contaminated": 0,
        "complete_pairs": 15, "fail_to_pass": 3, "pass_to_fail": 4,
    }  # fmt: skip
    want = WORKED["expected"]
    assert list(got["per_repeat"]) == ["1", "2", "3"]
    for repeat, one in got["per_repeat"].items():
        assert {n: exact(v) for n, v in one["dimensions"].items()} == {
            n: str(F(str(v))) for n, v in want["dimensions"][int(repeat)].items()
        }
        for name in ("S", "J", "R_exec", "R_collab"):
            assert exact(one[name]) == str(F(str(want[name][int(repeat)])))
        assert set(one) == {"R_exec", "R_collab", "S", "S_rate", "S_low", "S_high", "J", "dimensions"}
    assert exact(got["per_repeat"]["1"]["S_rate"]) == "181/240"
    assert set(got) == {*NAMES, "R_collab_bounds", "headline", "partial", "dimensions", "subdimensions", "per_repeat", "counts"}


def test_invalid_untriggered_contaminated_and_unscored_are_told_apart() -> None:
    document = worked()
    runs = {(run["repeat"], run["task"], run["mode"]): run for run in document["runs"]}
    runs[1, "T2", "COLLAB"]["valid"] = False
    runs[2, "T2", "COLLAB"]["reward"] = None  # a failure
    runs[1, "T3", "COLLAB"]["scenarios"]["q_u1a"] = {"checks": [1, 1], "contaminated": True}
    runs[3, "T1", "COLLAB"]["scenarios"]["q_r1"] = [1, "u"]
    got = scored(document)
    assert [exact(bound) for bound in got["R_collab_bounds"]] == ["7/15", "8/15"]
    counts = got["counts"]
    assert (counts["valid"], counts["invalid"], counts["complete_pairs"]) == (29, 1, 14)
    assert (counts["contaminated"], counts["unscored"], counts["triggered"]) == (1, 1, 63 - 5 - 2)


def test_nothing_defined_is_null() -> None:
    cell = {"configuration": "c", "task": "t", "repeat": 1, "valid": True, "reward": 1, "scenarios": {"q": "-"}}
    got = scored({"tree": {"U": {"u": ["q"]}}, "runs": [{**cell, "mode": "COLLAB"}]})
    assert [name for name in NAMES if got[name] is not None] == ["R_collab"]
    assert (got["dimensions"], got["subdimensions"], got["partial"]) == ({"U": None}, {"u": None}, True)
    empty = scored({"tree": {"U": {"u": ["q"]}}, "runs": [{**cell, "mode": "EXEC"}]})
    assert empty["R_collab_bounds"] == [None, None]


def test_partial_if_a_repeat_has_no_rate() -> None:
    """A mean that leaves a repeat out says so, a mode that was never run too: dR and dJ do not exist."""
    cell = {"configuration": "c", "task": "t", "valid": True, "reward": 1, "scenarios": {"q": [1]}}
    collab = [{**cell, "mode": "COLLAB", "repeat": repeat} for repeat in (1, 2)]
    alone = {**cell, "mode": "EXEC", "repeat": 1, "scenarios": {}}
    tree = {"U": {"u": ["q"]}}
    assert scored({"tree": tree, "runs": collab})["partial"] is True
    assert scored({"tree": tree, "runs": [*collab, alone]})["partial"] is True
    assert scored({"tree": tree, "runs": [*collab, alone, {**alone, "repeat": 2}]})["partial"] is False


def test_yaml_reads_the_same() -> None:
    text = yaml.safe_dump(worked(), sort_keys=False)
    assert load_score_input(text, "x.yaml") == load_score_input(json.dumps(worked()), "x.json")
    assert load_score_input(text, "runs") == load_score_input(json.dumps(worked()).encode(), "runs")


SMALL: dict[str, Any] = {
    "threshold": [3, 4],
    "tree": {"U": {"u": ["q", "p"]}},
    "runs": [
        {"configuration": "c", "task": "t", "mode": "COLLAB", "repeat": 1, "reward": 1, "valid": True, "scenarios": {"q": [1]}}
    ],
}


def changed(path: str, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(SMALL)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    at: Any = document
    for part in parents:
        at = at[part]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("threshold", [3], r"threshold: expected \[numerator, denominator\].*found \[3\]"),
        ("threshold", [0, 4], "above 0 and at most 1"),
        ("threshold", [5, 4], "above 0 and at most 1"),
        ("threshold", [3, 0], "above 0 and at most 1"),
        ("threshold", [True, 4], r"threshold\[0\]: expected an integer, found the truth value true"),
        ("threshold", 0.75, "threshold: expected"),
        ("tree", {}, "tree: expected a mapping with at least one dimension"),
        ("tree", {"U": []}, r"tree\.U: expected a mapping, found \[\]"),
        ("tree", {"U": {}}, r"tree: expected at least one scenario in it, found none"),
        ("tree", {"U": {"u": []}}, r"tree: expected at least one scenario in it, found none"),
        ("tree", {"U": {"u": "q"}}, r"tree\.U\.u: expected a list"),
        ("tree", {"U": {"u": ["q", "q"]}}, r"tree\.U\.u\[1\]: scenario q stands also in tree\.U\.u"),
        ("tree", {"U": {"u": ["q"]}, "S": {"u": ["p"]}}, r"tree\.S\.u stands also in tree\.U"),
        ("tree", ..., "the document: tree is missing; expected runs, tree: add it"),
        ("runs", {}, "runs: expected a list of runs, found a mapping of 0"),
        ("extra", 1, "the document: unknown key 'extra'"),
        ("runs/0", [], r"runs\[0\]: expected a mapping"),
        ("runs/0/note", "x", r"runs\[0\]: unknown key 'note'; expected configuration, .*: remove or rename it"),
        ("runs/0/valid", ..., r"runs\[0\]: valid is missing"),
        ("runs/0/reward", ..., r"runs\[0\]: reward is missing"),
        ("runs/0/mode", "collab", r'runs\[0\]\.mode: expected "EXEC" or "COLLAB", found \'collab\''),
        ("runs/0/mode", ["EXEC"], r"runs\[0\]\.mode"),
        ("runs/0/valid", 1, r"runs\[0\]\.valid: expected true or false, found 1"),
        ("runs/0/repeat", 0, r"runs\[0\]\.repeat: expected an integer from 1"),
        ("runs/0/repeat", True, r"runs\[0\]\.repeat: expected an integer, found the truth value true"),
        ("runs/0/repeat", 1.0, r"runs\[0\]\.repeat: expected an integer, found 1\.0"),
        ("runs/0/reward", True, r"runs\[0\]\.reward: expected a number or null, found the truth value true"),
        ("runs/0/reward", "1", r"runs\[0\]\.reward: expected a number or null, found '1'"),
        ("runs/0/reward", float("inf"), "Infinity is no number"),
        ("runs/0/task", "", r"runs\[0\]\.task: expected a text that is not empty"),
        ("runs/0/task", 7, r"runs\[0\]\.task: expected a text"),
        ("runs/0/configuration", None, r"runs\[0\]\.configuration: expected a text.*found null"),
        ("runs/0/scenarios", [], r"runs\[0\]\.scenarios: expected a mapping"),
        ("runs/0/scenarios/r", [1], r"runs\[0\]\.scenarios\.r: no scenario of the tree"),
        ("runs/0/scenarios/q", [], r'runs\[0\]\.scenarios\.q: expected at least one verdict; .* written "-"'),
        ("runs/0/scenarios/q", [2], r'runs\[0\]\.scenarios\.q\[0\]: expected 1, 0, "n" .* found 2'),
        ("runs/0/scenarios/q", [1, True], r"runs\[0\]\.scenarios\.q\[1\]: expected 1, 0.* found the truth value true"),
        ("runs/0/scenarios/q", ["1"], r"scenarios\.q\[0\]: expected 1, 0.* found '1'"),
        ("runs/0/scenarios/q", [1.0], r"scenarios\.q\[0\]: expected 1, 0.* found 1\.0"),
        ("runs/0/scenarios/q", [None], r'scenarios\.q\[0\]: expected 1, 0.* quote it: "-"\), found null'),
        ("runs/0/scenarios/q", ["N"], r"scenarios\.q\[0\]: expected 1, 0.* found 'N'"),
        ("runs/0/scenarios/q", [[1]], r"scenarios\.q\[0\]: expected 1, 0.* found \[1\]"),
        ("runs/0/scenarios/q", "n", r'scenarios\.q: expected a list of verdicts, "-"'),
        ("runs/0/scenarios/q", None, r"scenarios\.q: expected a list of verdicts.* found null"),
        ("runs/0/scenarios/q", {"contaminated": True}, r"scenarios\.q: checks is missing"),
        ("runs/0/scenarios/q", {"checks": [1], "contaminated": 1}, r"scenarios\.q\.contaminated: expected true or false"),
        ("runs/0/scenarios/q", {"checks": ["u"], "unknown": "yes"}, r"scenarios\.q\.unknown: expected true or false"),
        ("runs/0/scenarios/q", {"checks": ["u", 1], "unknown": True}, r"scenarios\.q\.checks: expected only \"u\" of an"),
        ("runs/0/configuration", "all", r'runs\[0\]\.configuration: "all" is the name of the rows over all of them'),
        ("runs/0/task", "all", r'runs\[0\]\.task: "all" is the name of the rows over all of them'),
        ("tasks", {"t": {"category": "all"}}, r'tasks\.t\.category: "all" is the name of the rows over all of them'),
        ("runs/0/scenarios/q", {"checks": [1], "why": "x"}, r"scenarios\.q: unknown key 'why'"),
        ("runs/0/scenarios/q", {"checks": []}, r"scenarios\.q\.checks: expected at least one verdict"),
        ("runs/0/mode", "EXEC", r"runs\[0\]\.scenarios: an EXEC run has no user"),
        ("runs/0/facts", {"turns": "many"}, r"runs\[0\]\.facts\.turns: .*expected the facts a report writes"),
        ("runs/0/facts", [], r"runs\[0\]\.facts: expected a mapping of counts"),
        ("runs/1", SMALL["runs"][0], r"runs\[1\] is the cell of runs\[0\] again \(c, t, COLLAB, repeat 1\).*remove one"),
        ("tasks", {"t": {"kind": "x"}}, r"tasks\.t: unknown key 'kind'; expected category, informationStructure"),
        ("benchmark", 3, "benchmark: expected a text"),
    ],
)  # fmt: skip
def test_what_is_refused(path: str, value: Any, message: str) -> None:
    document = changed(path, value) if path != "runs/1" else {**SMALL, "runs": [*SMALL["runs"], value]}
    with pytest.raises(ScoreInputError, match=r"^x\.json: (?s:.*)" + message):
        load_score_input(json.dumps(document), "x.json")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "", "a.json: no JSON: Expecting value in line 1"),
        ("a.json", '{"tree": {}, "tree": {}}', "key 'tree' stands twice"),
        ("a.json", b"\xff", "not UTF-8"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", '{"runs": [' + "9" * 5000 + "]}", "no JSON this reads"),
        ("a.yaml", "a: [", "a.yaml: no YAML"),
        ("a.yaml", "tree: {}\nruns: []\ntree: {}\n", "line 3: key 'tree' stands twice"),
        ("a.yaml", "? [1]\n: 2\n", "a key that is no text"),
        ("a.yaml", "runs: 2024-13-45\ntree: {}\n", "no YAML this reads: month must be in"),
        ("a.yaml", "a: &a [*a]\n", "no YAML"),
        ("a.yaml", "scenarios:\n  q: -\n", 'line 2, column 6; a bare - begins a list in YAML: quote it: "-"'),
        ("a.yaml", "scenarios:\n  q: - # not triggered\n", 'quote it: "-"'),
        ("a.yaml", "- 1\n", "the document: expected a mapping"),
        (
            "a.json",
            '{"tree": {"U": {"\\ud800": ["q"]}}, "runs": []}',
            r"tree\.U: expected a text of Unicode characters, found '\\ud800'",
        ),
        ("a.yaml", "? !!set {a, b}\n: 2\n", "line 1: a key that is no text"),
        ("a", "{runs: [}", "a: neither JSON .Expecting .*line 1, column 2. nor YAML .while parsing"),
        ("a.yml", "tree: {no: {u: [q]}}\nruns: []\n", "tree: expected a text that is not empty .in YAML, quote"),
    ],
)
def test_texts_that_are_refused(name: str, text: str | bytes, message: str) -> None:
    with pytest.raises(ScoreInputError, match=message):
        load_score_input(text, name)


YAML_RUN = """
tree: {U: {u: [q]}}
runs:
- {configuration: c, task: t, mode: COLLAB, repeat: 1, reward: %s, valid: true, scenarios: {q: [1, n]}}
"""


@pytest.mark.parametrize(
    ("written", "success"),
    [
        ("1", True),
        ("1.0", True),
        ("1.00", True),
        ("0.99999999999999999999", False),
        ("1.00000000000000000001", False),
        ("0.8", False),
        ("null", False),
    ],
)
def test_success_is_exactly_one(written: str, success: bool) -> None:
    text = json.dumps(SMALL).replace('"reward": 1', f'"reward": {written}')
    assert load_score_input(text, "x.json").runs[0].success is success
    assert load_score_input(YAML_RUN % written, "x.yaml").runs[0].success is success


def test_a_number_without_end_is_refused() -> None:
    for written in ("1e999999999", "1e-999999999"):
        with pytest.raises(ScoreInputError, match=r"runs\[0\]\.reward: expected a finite number of at most 64 digits"):
            load_score_input(json.dumps(SMALL).replace('"reward": 1', f'"reward": {written}'), "x.json")
    with pytest.raises(ScoreInputError, match=r"runs\[0\]\.reward: expected a finite number"):
        load_score_input(YAML_RUN % ".nan", "x.yaml")


@pytest.mark.parametrize("repeat", ["010", "1:30", "0x1", "0b1", "1_0"])
def test_an_integer_of_another_base_is_refused(repeat: str) -> None:
    """YAML reads 010 as 8 and 1:30 as 90: nobody who writes a repeat means that."""
    with pytest.raises(ScoreInputError, match=rf"x\.yaml: line 4: '{repeat}' is no decimal integer"):
        load_score_input((YAML_RUN % "1").replace("repeat: 1", f"repeat: {repeat}"), "x.yaml")
    assert load_score_input((YAML_RUN % "-0").replace("repeat: 1", "repeat: 10"), "x.yaml").runs[0].repeat == 10


def test_yaml_in_flow_style_needs_no_ending() -> None:
    text = "{tree: {U: {u: [q]}}, runs: []}"
    assert load_score_input(text, "standard input").tree == {"U": {"u": ("q",)}}
    with pytest.raises(ScoreInputError, match=r"x\.json: no JSON"):
        load_score_input(text, "x.json")


def test_an_error_stays_short_whatever_it_found() -> None:
    """Lists of aliases of lists: 30 lines of YAML that would be 4^30 words if they were written out."""
    nested = "&n0 [x, x, x, x]"
    for at in range(1, 30):
        nested = f"&n{at} [{nested}, *n{at - 1}, *n{at - 1}, *n{at - 1}]"
    with pytest.raises(ScoreInputError, match=r"runs\[0\]\.reward: expected a number or null, found a list of 4$"):
        load_score_input(YAML_RUN % nested, "x.yaml")


@pytest.mark.parametrize("tree", [{"U": {"u": ["q"], "v": []}}, {"U": {"u": ["q"]}, "S": {}}])
def test_an_empty_branch_leaves_its_mean_and_makes_it_partial(tree: Any) -> None:
    """As one without an instance (measuring.md 4.2, 4): the rest has its weight."""
    runs = [*SMALL["runs"], {**SMALL["runs"][0], "mode": "EXEC", "scenarios": {}}]
    whole, got = scored({"tree": {"U": {"u": ["q"]}}, "runs": runs}), scored({"tree": tree, "runs": runs})
    assert (exact(whole["S"]), whole["partial"], exact(got["S"]), got["partial"]) == ("1", False, "1", True)
    assert got["dimensions"] == {name: whole["dimensions"].get(name) for name in tree}
    assert got["subdimensions"] == {name: whole["subdimensions"].get(name) for subs in tree.values() for name in subs}
    document = load_score_input(json.dumps({"tree": tree, "runs": runs}), "x.json")
    assert intervals_output(document, count=20)["configurations"]["c"]["scores"]["S"] == {"low": 1.0, "high": 1.0}


@pytest.mark.parametrize("verdict", ["true", "yes", "True", "off"])
def test_a_truth_value_of_yaml_is_no_verdict(verdict: str) -> None:
    with pytest.raises(ScoreInputError, match=r"scenarios\.q\[1\]: expected 1, 0, .* found the truth value"):
        load_score_input((YAML_RUN % "1").replace("[1, n]", f"[1, {verdict}]"), "x.yaml")


verdicts = st.lists(st.sampled_from(["1", "0", "n/a", "unscored"]), min_size=1, max_size=3).map(tuple)
seen = st.one_of(
    st.just(Observation()),
    st.builds(Observation, verdicts),
    st.builds(Observation, st.one_of(st.just(()), verdicts), st.just(True)),
)
facts = st.one_of(st.none(), st.builds(RunFacts, turns=st.integers(0, 9), tool_calls=st.one_of(st.none(), st.integers(0, 9))))


@st.composite
def documents(draw: st.DrawFn) -> list[Run]:
    found = []
    for configuration in ("a", "b"):
        for task in "xy":
            for mode in ("EXEC", "COLLAB"):
                scenarios = draw(st.dictionaries(st.sampled_from("qp"), seen)) if mode == "COLLAB" else {}
                reward = draw(st.sampled_from([None, F(0), F(1, 2), F(1), F(8, 10)]))
                found.append(
                    Run(
                        configuration,
                        task,
                        mode,
                        draw(st.integers(1, 3)),
                        draw(st.booleans()),
                        reward,
                        scenarios,
                        None,
                        draw(facts),
                    )
                )
    return found


@given(documents())
def test_what_is_written_is_read_again(runs: list[Run]) -> None:
    tree = {"U": {"u": ("q",)}, "S": {"s": ("p",)}}
    labels = {"x": TaskLabels("games", "additive"), "y": TaskLabels()}
    document = score_input(
        runs, tree, benchmark="sha256:b", judge="sha256:j", tasks=labels, configurations={"a": ConfigurationLabels("codex", "m")}
    )
    got = load_score_input(json.dumps(document), "runs.json")
    assert got.runs == tuple(runs)
    assert (got.tree, got.threshold, got.benchmark, got.judge) == (tree, THRESHOLD, "sha256:b", "sha256:j")
    assert got.tasks == labels
    assert got.configurations == {"a": ConfigurationLabels("codex", "m")}
    assert score_output(got) == score_output(read_score_input(document))


def test_a_reward_longer_than_a_double_never_becomes_a_success() -> None:
    run = Run("c", "t", "EXEC", 1, True, 1 - F(1, 10**30))
    got = read_score_input(score_input([run], {"U": {"u": ("q",)}}))
    assert got.runs[0].success is False
    assert got.runs[0].reward != 1


@given(st.randoms())
def test_the_order_of_runs_changes_nothing_but_the_order_of_names(rng: random.Random) -> None:
    document = worked()
    runs: list[Any] = document["runs"]
    shuffled = {**document, "runs": rng.sample(runs, len(runs))}
    assert scored(shuffled) == scored(document)


YAML = """threshold: [3, 4]
tree:
  U.v:
    u: [q, q.r]
runs:
- {configuration: c, task: t, mode: COLLAB, repeat: 1, reward: 1, valid: true,
   scenarios: {}}
- configuration: c
  task: t
  mode: COLLAB
  repeat: 2
  reward: 1
  valid: true
  scenarios:
    q: [1]
    q.r: [1,
          0]
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("  reward: 1", "  reward: one", 12, "runs[1].reward: expected a number"),
        ("  valid: true", "  valid: 1", 13, "runs[1].valid: expected true or false"),
        ("repeat: 2", "repeat: 1", 8, "runs[1] is the cell of runs[0] again"),
        ("          0]", "          2]", 17, "runs[1].scenarios.q.r[1]: expected 1, 0"),
        ("    q: [1]", "    q: [3]", 15, "runs[1].scenarios.q[0]: expected 1, 0"),
        ("    q: [1]", "    q: []", 15, "runs[1].scenarios.q: expected at least one verdict"),
        ("  valid: true\n", "", 8, "runs[1]: valid is missing"),
        ("  valid: true\n", "  valid: true\n  note: x\n", 14, "runs[1]: unknown key 'note'"),
        ("    u: [q, q.r]", "    u: [q, q]", 4, "tree.U.v.u[1]: scenario q stands also in"),
        ("[3, 4]", "[4, 3]", 1, "threshold: expected a fraction"),
        ("runs:", "notes: 1\nruns:", 5, "the document: unknown key 'notes'"),
        ("  scenarios:\n    q: [1]", "  scenarios: 1\n  x:\n    q: [1]", 15, "runs[1]: unknown key 'x'"),
    ],
)
def test_an_error_in_a_hand_written_document_names_its_line(old: str, new: str, line: int, told: str) -> None:
    text = YAML.replace(old, new)
    assert text != YAML
    with pytest.raises(ScoreInputError, match=rf"^x\.yaml: line {line}: {re.escape(told)}"):
        load_score_input(text, "x.yaml")


def test_what_is_missing_altogether_has_no_line() -> None:
    with pytest.raises(ScoreInputError, match=r"^x\.yaml: the document: runs is missing"):
        load_score_input("tree: {U: {u: [q]}}\n", "x.yaml")
