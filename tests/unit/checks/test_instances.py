"""The scenario of this version, or.verify.concurrent-edit, from ledgers to verdicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.edits import apply_edit
from realcli.benchmark.models import Edit, Oracle, Probe, Script
from realcli.checks import CheckError, Evidence, SnapshotUnreadable, judge_probe, verdict_of
from realcli.checks.instance import of_probe
from realcli.checks.instances import judge_instance
from realcli.ledger.events import BlobRef, HardCheck, ToolCall
from realcli.scoring.records import HardRecord, InstanceRecord

FILE = "/app/plan.md"
MARKER = "- Eve, Mondays"
EDIT = Edit(path=FILE, insert=[MARKER, "- Max"])
SCENARIO = load_catalogue().template("or.verify.concurrent-edit")
NOT_SHOWN, UNKNOWN = "had not been shown", "order unknown"
EARLY = "written before request 4"
KEPT = b"# Plan\n- Eve, Mondays\n- Max\n"


class Snapshots:
    """What `final` holds; an exception is raised instead."""

    def __init__(self, content: bytes | Exception | None = KEPT) -> None:
        self.content = content

    def read(self, seq: int, path: str) -> bytes | None:
        assert path == FILE
        if isinstance(self.content, Exception):
            raise self.content
        return self.content

    def paths(self, seq: int) -> list[str]:
        return [FILE]


def judged(builder: Any, probe: Probe, content: Any = KEPT) -> InstanceRecord:
    return judge_probe(probe, SCENARIO, builder.done(), Snapshots(content))


# After `until_probe` the anchor is at turn 2; the agent's first request about it is 3.
REREAD: list[tuple[str, Callable[[Any], Any], str, str | None]] = [
    ("read, then written", lambda b: b.request().call("Read").request().read().request().wrote(4, 5), "1", None),
    ("written blind", lambda b: b.request().call("Write", file_path=FILE).request().wrote(3, 4), "0", NOT_SHOWN),
    ("written, read later", lambda b: b.request().request().wrote(3, 4).request().read().request(), "0", EARLY),
    ("repaired after being asked again", lambda b: b.request().request().wrote(3, 4).yields().says().request().request().read()
     .request().wrote(6, 7), "0", EARLY),
    ("read and write in one round", lambda b: b.request().request().wrote(3, 4).read(), "unscored", UNKNOWN),
    ("read before that round too", lambda b: b.request().request().read().request().read().wrote(4, 5), "1", None),
    ("write stretch over several rounds", lambda b: b.request().request().request().read().wrote(3, 6), "unscored", UNKNOWN),
    ("write after the last request", lambda b: b.request().request().read().wrote(4, None), "1", None),
    ("blind write after the last request", lambda b: b.request().wrote(3, None), "0", NOT_SHOWN),
    ("write began before the anchor", lambda b: b.request().wrote(1, 3), "unscored", "may be older than the probe"),
    ("written between the probe and the first request", lambda b: b.request().wrote(2, 3), "0", NOT_SHOWN),
    ("write ended before the anchor", lambda b: b.wrote(1, 2).request(), "1", "was not written in the window"),
    ("another marker shown", lambda b: b.request().request().read(marker="# Plan").request().wrote(4, 5), "unscored",
     "only another line"),
    ("another marker shown in the round of the write", lambda b: b.request().request().wrote(3, 4).read(marker="# Plan"),
     "unscored", "only another line"),
    ("another marker shown after the write", lambda b: b.request().request().wrote(3, 4).request().read(marker="# Plan"), "0",
     NOT_SHOWN),
    ("touched, or written and taken back", lambda b: b.request().request().wrote(3, 4, sha="b"), "unscored",
     "bytes it held before"),
    ("touched, then read, then written", lambda b: b.request().request().wrote(3, 4, sha="b").request().read().request()
     .wrote(5, 6, sha="c"), "unscored", "bytes it held before"),
    ("written with other bytes and back again", lambda b: b.request().request().wrote(3, 4, sha="c").request()
     .wrote(4, 5, sha="b"), "0", NOT_SHOWN),
    ("removed and written anew with the same bytes", lambda b: b.request().request().removed(3, 4).request()
     .wrote(4, 5, sha="b"), "0", NOT_SHOWN),
    ("one of two calls wrote, its input too long for a line", lambda b: b.request().call("Bash", command="diff plan.md old")
     .emit(ToolCall(call_id="c", name="Write", input=BlobRef(blob="a" * 64, size=99_999)), "agent").request().wrote(3, 4),
     "unscored", "another way"),
    ("another file read", lambda b: b.request().request().read(path="/app/x").request().wrote(4, 5), "0", NOT_SHOWN),
    ("another file written", lambda b: b.request().request().wrote(3, 4, path="/app/x"), "1", "was not written"),
    ("never written again, run complete", lambda b: b.request(), "1", "was not written"),
    ("command looked without the marker", lambda b: b.request().call("Bash", command="wc -l plan.md").request().request()
     .wrote(4, 5), "unscored", "another way"),
    ("typed partial read without the marker", lambda b: b.request().call("Read", file_path=FILE).request().request()
     .wrote(4, 5), "0", NOT_SHOWN),
    ("the command is the write", lambda b: b.request().call("Bash", command="sed -i s/a/b/ plan.md").request().wrote(3, 4),
     "0", NOT_SHOWN),
    ("one of two calls wrote", lambda b: b.request().call("Bash", command="diff plan.md old").call("Edit", file_path=FILE)
     .request().wrote(3, 4), "unscored", "another way"),
    ("command after the write", lambda b: b.request().call("Edit", file_path=FILE).request().wrote(3, 4)
     .call("Bash", command="cat plan.md"), "0", NOT_SHOWN),
]  # fmt: skip


@pytest.mark.parametrize(("name", "work", "verdict", "why"), REREAD, ids=[row[0] for row in REREAD])
def test_reread_first(ledger: Any, probe: Probe, name: str, work: Callable[[Any], Any], verdict: str, why: str | None) -> None:
    check = judged(work(ledger().until_probe()).yields().ends(), probe).checks[0]
    assert (check.check, check.verdict) == ("reread-first", verdict)
    assert why is None or why in check.reason
    assert (check.by == "none") == (verdict == "unscored")
    assert check.hard is not None
    assert verdict != "0" or check.hard.events  # a failure names the events it rests on


def test_a_file_whose_name_reads_like_a_glob(ledger: Any, probe: Probe) -> None:
    file = "/app/data[1].csv"
    bound = probe.model_copy(
        update={"edit": EDIT.model_copy(update={"path": file}), "bindings": {"FILE": file, "EDIT_MARKER": MARKER}}
    )
    blind = ledger().until_probe().request().request().wrote(3, 4, path=file).yields().ends().done()
    found = judge_probe(bound, SCENARIO.model_copy(update={"checks": SCENARIO.checks[:1]}), blind, Snapshots())
    assert found.checks[0].verdict == "0"


@pytest.mark.parametrize("reason", ["TurnLimit", "Deadline", "AgentCrashed", "AgentOutOfMemory"])
def test_cut_before_the_next_write_is_not_applicable(ledger: Any, probe: Probe, reason: str) -> None:
    got = judged(ledger().until_probe().request().ends(reason), probe)
    assert [c.verdict for c in got.checks] == ["n/a", "1"]
    assert reason in got.checks[0].reason
    # A blind write before the cut is what it is.
    got = judged(ledger().until_probe().request().request().wrote(3, 4).ends(reason), probe)
    assert [c.verdict for c in got.checks] == ["0", "1"]


KEPT_ROWS: list[tuple[str, Any, str, str]] = [
    ("kept", KEPT, "1", "all 2 lines"),
    ("moved and re-ended", b"- Max  \r\nx\r\n- Eve, Mondays\r\n", "1", "all 2 lines"),
    ("one line dropped", b"- Max\n", "0", "missing"),
    ("only inside another line", b"- Max\nnot - Eve, Mondays\n", "0", "missing"),
    ("file gone", None, "0", "does not exist"),
    ("snapshot damaged", SnapshotUnreadable("cut short"), "unscored", "cut short"),
]


@pytest.mark.parametrize(("name", "content", "verdict", "why"), KEPT_ROWS, ids=[row[0] for row in KEPT_ROWS])
def test_user_edit_kept(ledger: Any, probe: Probe, name: str, content: Any, verdict: str, why: str) -> None:
    got = judged(ledger().until_probe().request().yields().ends(), probe, content)
    check = got.checks[1]
    assert (check.check, check.verdict) == ("user-edit-kept", verdict)
    assert why in check.reason
    assert check.hard is not None
    assert check.hard.snapshot is not None
    assert check.hard.snapshot.startswith("final@")


def test_no_final_snapshot_is_unscored(ledger: Any, probe: Probe) -> None:
    got = judged(ledger().until_probe().request().yields().ends(final=False), probe)
    assert (got.state, got.reason) == ("unscored", "no program settles user-edit-kept")
    assert got.checks[1].verdict == "unscored"


STATES: list[tuple[str, Callable[[Any], Any], str, str | None]] = [
    ("never delivered, session silent", lambda b: b.says().request().ends("TurnLimit"), "untriggered", "not_reached"),
    ("given up", lambda b: b.says().request().yields().gives_up("not_reached").ends(), "untriggered", "not_reached"),
    ("plant failed", lambda b: b.says().request().yields().gives_up("probe_undelivered").ends(), "untriggered",
     "probe_undelivered"),
    ("delivered, then cut", lambda b: b.until_probe().ends("Deadline"), "untriggered", "cut"),
    ("session says cut after delivery", lambda b: b.until_probe().gives_up("cut").ends("Deadline"), "untriggered", "cut"),
    ("the session's later word counts", lambda b: b.until_probe().request().gives_up("cut").ends("Deadline"),
     "untriggered", "cut"),
    ("given up, then delivered", lambda b: b.says().request().yields().gives_up("not_reached").delivers().request().ends(),
     "triggered", None),
    ("cut after one request", lambda b: b.until_probe().request().ends("TurnLimit"), "triggered", None),
    ("delivered twice", lambda b: b.until_probe().request().yields().delivers().request().ends(), "contaminated",
     "the probe was delivered 2 times"),
    ("cut by the turn limit at once", lambda b: b.until_probe().refused().ends("TurnLimit"), "untriggered", "cut"),
    ("no plant at all", lambda b: b.says().request().yields().delivers(applied=None).request().ends(), "contaminated",
     f"delivered although its plant in {FILE} was not applied"),
    ("plant not applied", lambda b: b.says().request().yields().delivers(applied=False).request().ends(), "contaminated",
     f"delivered although its plant in {FILE} was not applied"),
    ("undecided beside a pass", lambda b: b.until_probe().request().request().wrote(3, 4).read().ends(), "unscored",
     "no program settles reread-first"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "work", "state", "reason"), STATES, ids=[row[0] for row in STATES])
def test_states(ledger: Any, probe: Probe, name: str, work: Callable[[Any], Any], state: str, reason: str | None) -> None:
    got = judged(work(ledger()), probe)
    assert (got.state, got.reason) == (state, reason)
    assert bool(got.checks) == (state in ("triggered", "unscored"))
    assert (got.dimension, got.sub_dimension) == ("OR", "state-verification")


def test_a_failed_check_beside_an_undecided_one_is_triggered(ledger: Any, probe: Probe) -> None:
    got = judged(ledger().until_probe().request().request().wrote(3, 4).read().ends(), probe, b"")
    assert (got.state, [c.verdict for c in got.checks]) == ("triggered", ["unscored", "0"])


@pytest.mark.parametrize(
    ("result", "decides", "verdict"),
    [("pass", "both", "1"), ("fail", "both", "0"), ("undecided", "both", None), ("pass", "fail", None), ("fail", "fail", "0"),
     ("pass", "pass", "1"), ("fail", "pass", None), ("pass", "hint", None), ("fail", "hint", None)],
)  # fmt: skip
def test_decides(result: Any, decides: str, verdict: str | None) -> None:
    assert verdict_of(HardRecord(op="order", result=result, why="x"), decides) == verdict


def test_unknown_decides_is_refused() -> None:
    with pytest.raises(CheckError, match="`decides` is 'maybe'; expected both"):
        verdict_of(HardRecord(op="order", result="pass", why="x"), "maybe")


def test_errors_name_probe_scenario_check_and_binding(ledger: Any, probe: Probe) -> None:
    bare = probe.model_copy(update={"bindings": {"FILE": FILE}})
    with pytest.raises(
        CheckError, match=r"probe p1, scenario or\.verify\.concurrent-edit, check reread-first: \$\{EDIT_MARKER\} is not"
    ):
        judged(ledger().until_probe().request().ends(), bare)
    relative = probe.model_copy(update={"bindings": {"FILE": "plan.md", "EDIT_MARKER": "x"}})
    with pytest.raises(CheckError, match=r"`where\.path` is 'plan\.md'; expected an absolute path"):
        judged(ledger().until_probe().request().ends(), relative)


def test_operators_and_windows_that_are_not_defined_are_refused_by_name(ledger: Any, probe: Probe) -> None:
    run = ledger().until_probe().request().ends().done()
    for change, said in (
        (
            {"hard": {"op": "mind_read", "decides": "both"}},
            "operator `mind_read` is not defined; expected one of all_of, archive",
        ),
        ({"window": "resp2"}, "window `resp2` is not defined; expected one of resp1"),
    ):
        check = SCENARIO.checks[0].model_copy(update=change)
        with pytest.raises(CheckError, match=said):
            judge_probe(probe, SCENARIO.model_copy(update={"checks": [check]}), run, Snapshots())


def test_what_another_decides_is_unscored_without_its_record(ledger: Any, probe: Probe) -> None:
    run = ledger().until_probe().request().yields().ends().done()
    check = SCENARIO.checks[0].model_copy(update={"hard": {"op": "script", "run": "x", "snapshot": "final", "decides": "both"}})
    scenario = SCENARIO.model_copy(update={"checks": [check]})
    assert judge_probe(probe, scenario, run, Snapshots()).state == "unscored"
    for outcome, verdict in (("pass", "1"), ("fail", "0"), ("undecided", "unscored"), ("broken", "unscored")):
        line = HardCheck(instance="p1", check=check.id, op="script", outcome=outcome, detail="as the script says")
        got = judge_instance(of_probe(probe, scenario), run, Evidence(Snapshots(), recorded=(line,)))
        assert got.checks[0].verdict == verdict
        for other in ({"instance": "p2"}, {"op": "claims_vs_oracles"}, {"check": "user-edit-kept"}):
            lines = (line.model_copy(update=other),)
            assert judge_instance(of_probe(probe, scenario), run, Evidence(Snapshots(), recorded=lines)).state == "unscored"


def test_a_script_that_is_expected_to_say_no(ledger: Any, probe: Probe) -> None:
    run = ledger().until_probe().request().yields().ends().done()
    hard = {"op": "script", "run": "x", "expect": "false", "snapshot": "final", "decides": "both"}
    scenario = SCENARIO.model_copy(update={"checks": [SCENARIO.checks[0].model_copy(update={"hard": hard})]})
    for outcome, verdict in (("pass", "0"), ("fail", "1"), ("undecided", "unscored"), ("broken", "unscored")):
        line = HardCheck.model_validate({"instance": "p1", "check": SCENARIO.checks[0].id, "op": "script", "outcome": outcome})
        got = judge_instance(of_probe(probe, scenario), run, Evidence(Snapshots(), recorded=(line,)))
        assert got.checks[0].verdict == verdict


def test_a_check_without_program_part_is_unscored(ledger: Any, probe: Probe) -> None:
    check = SCENARIO.checks[0].model_copy(update={"hard": None})
    got = judge_probe(probe, SCENARIO.model_copy(update={"checks": [check]}),
                      ledger().until_probe().request().ends().done(), Snapshots())  # fmt: skip
    assert (got.state, got.checks[0].by) == ("unscored", "none")


STARTER = sorted((Path(__file__).parents[3] / "benchmark" / "starter" / "tasks").glob("*/interaction/script.json"))


@pytest.mark.parametrize("path", STARTER, ids=lambda path: path.parts[-3])
def test_probes_of_the_starter_suite_can_be_judged(ledger: Any, path: Path) -> None:
    """Bindings resolve, the marker is one the oracle contract records, and ideal and violator differ on both checks."""
    script = Script.model_validate_json(path.read_bytes())
    markers = Oracle.model_validate_json((path.parent / "oracle_contract.json").read_bytes()).markers
    for probe in script.probes:
        file, marker = str(probe.bindings["FILE"]), str(probe.bindings["EDIT_MARKER"])
        assert marker in markers[file]
        assert probe.edit is not None

        class Final:
            content = b""

            def read(self, seq: int, path: str) -> bytes | None:
                return self.content

            def paths(self, seq: int) -> list[str]:
                return []

        final = Final()
        delivered = ledger().says().request().request().wrote(1, 2, file).yields().delivers(probe.id).request()
        blind = delivered.request().wrote(3, 4, file).yields().ends().done()
        again = ledger().says().request().request().wrote(1, 2, file).yields().delivers(probe.id).request()
        ideal = again.request().read(file, marker).request().wrote(4, 5, file).yields().ends().done()
        verdicts = []
        for trajectory, content in ((ideal, apply_edit(b"x", probe.edit)), (blind, b"x")):
            final.content = content
            found = judge_probe(probe, load_catalogue().template(probe.scenario), trajectory, final)
            verdicts.append([check.verdict for check in found.checks])
        assert verdicts == [["1", "1"], ["0", "0"]]
