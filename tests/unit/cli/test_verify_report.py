"""`realcli verify-report`: nothing in a report can be changed, nor in what it rests on, without the number being named."""

from __future__ import annotations

import copy
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from realcli.benchmark.catalogue import load_catalogue
from realcli.checks.digest import digest8
from realcli.judging.identity import identity_of
from realcli.known.gate import KNOWN_SET, Gate, Share, Stratum
from realcli.scoring.tree import tree_of
from realcli.storage.local import PART
from realcli.storage.paths import calibration as calibration_of
from realcli_cli.recount.csvs import csvs_of
from realcli_cli.recount.evidence import Evidence, read_sweep
from realcli_cli.recount.expected import Recount
from realcli_cli.recount.files import files_of, says, shown_of
from realcli_cli.recount.held import held
from realcli_cli.recount.parquets import parquets_of
from realcli_cli.recount.words import words
from realcli_cli.verify_report import _document, _inputs, places
from realcli_judge.__main__ import main as judge
from realcli_judge.hostile import plain
from realcli_judge.inputs import Inputs
from realcli_judge.reporting import write_report
from tests.support.judged_sweep import write_judged
from tests.support.sealed_sweep import DEEDS, Deed, SealedSweep, write_sweep

Run = Callable[..., tuple[int, str, str]]


def reported(sweep: SealedSweep) -> SealedSweep:
    write_report(Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan))
    return sweep


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    return reported(write_judged(tmp_path_factory.mktemp("verified") / "store"))


@pytest.fixture
def sweep(whole: SealedSweep, tmp_path: Path) -> Path:
    """The folder of a copied sweep, free to be damaged."""
    copy = whole.copy(tmp_path / "store")
    return copy.directory / copy.root


@pytest.fixture(scope="session")
def judged_by_program(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    """With an invalid trial, one that left no seal, one whose probe did not come, and rewards that no double holds."""
    folder = tmp_path_factory.mktemp("program")
    deeds = {
        **DEEDS,
        ("beta", "COLLAB", 1): Deed(sealed=False, reason="AgentDiskLimit"),
        ("alpha", "EXEC", 3): Deed(reward="0.99999999999999999999", checks=(7, 8)),
        ("beta", "EXEC", 2): Deed(reward="0.33333333333333333333", checks=(4, 8)),
    }
    sweep = write_sweep(folder / "store", deeds)
    for group in (0, 1, None):
        job = "report" if group is None else "judge"
        judge([job, "--root", sweep.root, "--lock-digest", sweep.lock_digest], sweep.environ(group, folder / "log"))
    return sweep


def report_of(sweep: Path) -> Path:
    return next((sweep / "reports").iterdir())


def edit(path: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(path.read_bytes())
    change(value)
    path.unlink()
    path.write_text(json.dumps(value))


def test_a_sound_report_is_met_number_by_number(sweep: Path, realcli: Run) -> None:
    status, out, _ = realcli("verify-report", sweep)
    assert (status, out.count("WRONG")) == (0, 0)
    assert "23 sealed ledgers; all are what the report says" in out
    assert int(out.split()[0]) > 2000
    for folder in (report_of(sweep), sweep.parents[3]):  # a folder above it will do
        assert places(folder, None) == places(sweep, None) == (sweep, report_of(sweep))


def _set(*path: str | int, to: Any) -> Callable[[Any], None]:
    def change(value: Any) -> None:
        for step in path[:-1]:
            value = value[step]
        value[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_set("configurations", 1, "collab", "r", "exact", to="5/6"),
         "/configurations/1/collab/r: the report says 5/6, the evidence gives 2/3"),
        (_set("configurations", 1, "collab", "r", "text", to="0.767"), "/configurations/1/collab/r: the report says 2/3"),
        (_set("configurations", 1, "collab", "r", "value", to=0.7), "/configurations/1/collab/r: the report says 2/3"),
        (_set("configurations", 0, "sRate", "interval", "low", to=0.5), "/configurations/0/sRate/interval/low: the report says"),
        (_set("configurations", 0, "sRate", "interval", "text", to="0.9 to 1"), "/configurations/0/sRate/interval: its text"),
        (_set("configurations", 0, "spent", "EXEC", "usd", "text", to="$9"), "/configurations/0/spent/EXEC/usd: its text"),
        (_set("configurations", 0, "partial", to=False), "/configurations/0/partial: the report says False"),
        (_set("configurations", 0, "sPartial", to=False), "/configurations/0/sPartial: the report says False"),
        (_set("reference", 0, "text", to="99 %"), "/reference: the report says"),
        (_set("configurations", 1, "dimensions", "S", "exact", to="1"), "/configurations/1/dimensions/S: the report says 1"),
        (_set("scenarios", 0, "passes", to=99), "/scenarios/0/passes: the report says 99"),
        (_set("audits", 1, "contaminated", "S", to=0), "/audits/1/contaminated/S: the report says 0, the evidence gives 1"),
        (_set("trials", 5, "reward", to="0.9"), "/trials/5/reward: the report says 0.9"),
        (_set("judge", "byJudge", to=1), "/judge/byJudge: the report says 1, the evidence gives 60"),
        (_set("failures", 0, "runs", to=7), "/failures/0/runs: the report says 7"),
        (_set("taskList", 1, "passToFail", to=0), "/taskList/1/passToFail: the report says 0, the evidence gives 2"),
        (_set("analyses", 0, "rows", 0, 1, to=44), "/analyses/0/rows/0/1: the report says 44"),
        (_set("configurations", 0, "sRate", "rank", to=1),
         "/configurations/0/sRate/rank: the report says 1, and no evidence gives such a number"),
        (_set("configurations", 0, "sRate", "note", to="best"), "/configurations/0/sRate/note: the report says best, and no"),
        (_set("counts", "won", to=3), "/counts/won: the report says 3, and no evidence gives such a number"),
        (_set("inputDigest", to="sha256:" + "0" * 64), "/inputDigest: the report counts from sha256:000"),
    ],
)  # fmt: skip
def test_a_number_of_the_report_that_was_changed_is_named(counted: Any, expected: Any, change: Any, told: str) -> None:
    found, summary, tables = counted
    changed = copy.deepcopy(summary)
    change(changed)
    lines = [*_inputs(found, None, changed), *words(found, changed, None, tables), *held(changed, expected)[1]]
    assert [line for line in lines if line.startswith(told)], lines


def test_numbers_that_were_changed_are_said_and_fail(sweep: Path, realcli: Run) -> None:
    """To whoever runs it: the number, and an exit code."""
    edit(report_of(sweep) / "summary.json", _set("configurations", 1, "collab", "r", "exact", to="5/6"))
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert "WRONG /configurations/1/collab/r: the report says 5/6, the evidence gives 2/3" in out


@pytest.mark.parametrize(("known", "calibration"), [(KNOWN_SET, "calibrated"), (f"sha256:{'0' * 64}", "uncalibrated")])
def test_the_gate_beside_the_sweeps_is_counted_with(
    whole: SealedSweep, tmp_path: Path, realcli: Run, known: str, calibration: str
) -> None:
    """Made over another known-answer set it calibrates nobody; a report that says otherwise is wrong."""
    copied = whole.copy(tmp_path / "store")
    identity = identity_of(copied.lock.spec.judge)
    few, none = Share(hits=0, of=100, upper=0.03), Share(hits=0, of=9, value=0)
    gate = Gate(
        judge=identity.content_digest(), identity=identity, known=known, cases=3, answers=[], disagreements=[], s_ideal="1",
        verdicts=[Stratum(name="all", false_failures=few, misses=none, unscored=0)], passed=True, told="S is 1.",
    )  # fmt: skip
    copied.store.put_once(calibration_of("p", digest8(gate.judge)), gate.canonical())
    reported(copied)
    sweep = copied.directory / copied.root
    here = max((sweep / "reports").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert json.loads((here / "summary.json").read_bytes())["judge"]["calibration"] == calibration
    assert realcli("verify-report", here)[0] == 0
    other = {"calibrated": "uncalibrated", "uncalibrated": "calibrated"}[calibration]
    edit(here / "summary.json", _set("judge", "calibration", to=other))
    assert (
        f"WRONG /judge/calibration: the report says {other}, the evidence gives {calibration}"
        in realcli("verify-report", here)[1]
    )


def judgement(sweep: Path, kind: str = "repeat-1-*[0-9a-f].json") -> Path:
    return sorted((sweep / "judgements").glob(f"*/claude-code.opus/alpha/{kind}"))[0]


def test_a_verdict_that_was_changed_moves_numbers_and_the_digest(sweep: Path, realcli: Run) -> None:
    edit(judgement(sweep), _set("instances", 0, "checks", 0, "verdict", to="0"))
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert "/inputDigest" in out
    assert "/configurations/0/sRate: the report says 1, the evidence gives " in out
    assert "tables/runs.json: claude-code.opus, alpha, COLLAB, 1 is another run than the evidence gives" in out


def test_an_audit_that_was_changed_moves_numbers(sweep: Path, realcli: Run) -> None:
    edit(judgement(sweep, "repeat-1-*.audit.json"), _set("contaminated", to={"wide": "said so"}))
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert "/configurations/0/instances/contaminated: the report says 0, the evidence gives 1" in out


def test_a_reward_that_no_seal_gives_is_named(sweep: Path, realcli: Run) -> None:
    group = next((sweep / "judgements").glob("*/claude-code.sonnet/beta/group-1.json"))
    members = json.loads(group.read_bytes())["members"]
    at = next(i for i, m in enumerate(members) if (m["mode"], m["repeat"]) == ("COLLAB", 1))
    edit(group, _set("members", at, "reward", to="1"))
    edit(report_of(sweep) / "summary.json", _set("trials", members[at]["ordinal"], "reward", to="1"))
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert f"/trials/{members[at]['ordinal']}/reward: the report says 1, the evidence gives 0" in out


def test_a_ledger_that_was_changed_is_named(sweep: Path, realcli: Run) -> None:
    segment = sweep / "trials" / "00004" / "attempt-1" / "ledger" / "000001.jsonl"
    data = segment.read_bytes()
    segment.unlink()
    segment.write_bytes(data.replace(b"plan", b"plot"))
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert "WRONG trial 4: " in out


def test_a_record_that_is_gone_is_named(sweep: Path, realcli: Run) -> None:
    judgement(sweep).unlink()
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert "repeat-1-" in out
    assert "does not exist" in out


def test_the_lock_is_held_against_its_digest(sweep: Path, realcli: Run) -> None:
    lock = sweep / "sweep.json"
    data = lock.read_bytes()
    lock.unlink()
    lock.write_bytes(data + b"\n")
    status, out, _ = realcli("verify-report", sweep)
    assert (status, "WRONG sweep.json has the digest" in out) == (1, True)


@pytest.fixture(scope="session")
def recount(whole: SealedSweep) -> tuple[Evidence, Any, Recount, list[tuple[str, Any]]]:
    """(what lies there, its summary, the recount, every number of it), counted once."""
    root = whole.directory / whole.root
    summary = json.loads((report_of(root) / "summary.json").read_bytes())
    found = read_sweep(root, summary)
    tree = {dimension: dict(subs) for dimension, subs in tree_of(load_catalogue()).items()}
    evidence = {c.id: c.evidence for t in load_catalogue().templates.values() for c in t.checks}
    recount = Recount(found, summary, tree, _document(found, summary), evidence)
    return found, summary, recount, list(recount.everything())


@pytest.fixture(scope="session")
def counted(recount: Any) -> tuple[Evidence, Any, Any]:
    """(what lies there, its summary, all analyses)."""
    return recount[0], recount[1], recount[2].tables


@pytest.fixture(scope="session")
def expected(recount: Any) -> list[tuple[str, Any]]:
    """Every number by its place; a report in the same order has the same."""
    return list(recount[3])


def _drop(*path: str | int) -> Callable[[Any], None]:
    def change(value: Any) -> None:
        for step in path[:-1]:
            value = value[step]
        del value[path[-1]]

    return change


ZERO = "sha256:" + "0" * 64
WORDS: list[tuple[Callable[[Any], None], str]] = [
    (_drop("configurations", 1), "/configurations: the report lists 1 and the evidence gives 2; what differs: ['claude"),
    (_drop("taskList", 0), "/taskList: the report lists 1 and the evidence gives 2; what differs: ['alpha']"),
    (_drop("tasks", 0), "/tasks: the report lists 7 and the evidence gives 8"),
    (_drop("trials", 23), "/trials: the report lists 23 and the evidence gives 24; what differs: [23]"),
    (_drop("scenarios", 0), "/scenarios: the report lists 7 and the evidence gives 8"),
    (_drop("generic", 0), "/generic: the report lists 3 and the evidence gives 4"),
    (_drop("audits", 1), "/audits: the report lists 1 and the evidence gives 2"),
    (_drop("audits", 1, "checks", 1), "/audits/1/checks: the report lists 6 and the evidence gives 7"),
    (_set("audits", 1, "outcomeFlagged", to=[]), "/audits/1/outcomeFlagged: the report lists 0 and the evidence gives 1"),
    (_drop("failures", 0), "/failures: the report lists 3 and the evidence gives 4"),
    (_drop("outcomes", 0), "/outcomes: the report lists"),
    (_set("outcomes", 0, "happened", to="all went well"), "/outcomes: the report lists"),
    (_drop("analyses", 0), "/analyses: the report lists"),
    (_drop("analyses", 0, "rows", 1), "/analyses/0/rows: the report lists"),
    (lambda v: v["analyses"][0]["columns"].reverse(), "/analyses/0/columns: the report says ['excess"),
    (_set("analyses", 0, "id", to="nothing"), "/analyses: the report lists"),
    (lambda v: v["configurations"].reverse(), "gives 2; what differs: ['their order']"),
    (_set("configurations", 0, "modelId", to="gpt-5"), "/configurations/0/modelId: the report says gpt-5"),
    (_set("configurations", 0, "agentVersion", to="9"), "/configurations/0/agentVersion: the report says 9"),
    (_set("configurations", 0, "setup", to={"files": 3}), "/configurations/0/setup: the report says {'files': 3}"),
    (_set("configurations", 0, "row", "j", to="0.999"), "/configurations/0/row: the report says"),
    (_drop("configurations", 0, "row", "s"), "/configurations/0/row: the report says"),
    (_set("trials", 0, "reason", to="TurnLimit"), "/trials/0/reason: the report says TurnLimit, the evidence gives Completed"),
    (_set("trials", 0, "phase", to="Invalid"), "/trials/0/phase: the report says Invalid, the evidence gives Sealed"),
    (_set("trials", 0, "task", to="beta"), "/trials/0/task: the report says beta, the evidence gives alpha"),
    (_set("trials", 0, "workSeal", to=ZERO), "/trials/0/workSeal: the report says sha256:000"),
    (_set("trials", 0, "workingSeconds", to="1.000"), "the report says 1.000, the evidence gives 61.500"),
    (_set("trials", 0, "trouble", to="x"), "/trials/0/trouble: the report says x, the evidence gives nothing"),
    (_set("trials", 0, "failure", to="other"), "/trials/0/failure: the report says other, the evidence gives nothing"),
    (_drop("trials", 2, "outcomeFlag"), "/trials/2/outcomeFlag: the report says nothing"),
    (_drop("taskList", 1, "suspect"), "/taskList/1/suspect: the report says nothing"),
    (_set("taskList", 1, "suspectTrials", to=[]), "/taskList/1/suspectTrials: the report says [], the evidence gives [21]"),
    (_drop("flags", 0), "/flags: the report warns of suspect,"),
    (_set("flags", to=[]), "/flags: the report warns of nothing; the evidence asks for invalid, suspect,"),
    (_set("flags", 0, "text", to="1 of 24 trials ended well."), "/flags/0/text: it says '1 of 24 trials ended well.', the"),
    (_set("reading", "rq1", to="2 configurations solve 1.000."), "its numbers are 2, 1.000, the report's own 2, 0.667, 0.833"),
    (_set("reading", "rq2", to="Nothing changes."), "/reading/rq2: its numbers are none, the report's own 2, 11, 2, 2"),
    (_set("judge", "calibration", to="calibrated"), "/judge/calibration: the report says calibrated"),
    (_set("judge", "gate", to="S of the ideal runs is 1."), "/judge/gate: the report says S of the ideal"),
    (_set("judge", "sameFamily", to=[]), "/judge/sameFamily: the report says []"),
    (_set("judge", "cost", "exhausted", to=True), "/judge/cost/exhausted: the report says True, the evidence gives False"),
    (_set("judge", "identity", "votes", to=9), "/judge/identity: the report says"),
    (_set("state", to="Complete"), "/state: the report says Complete, the evidence gives Incomplete"),
    (_set("benchmark", "version", to="9"), "/benchmark: the report says"),
    (_set("sweep", "name", to="other"), "/sweep: the report says"),
    (_set("egress", to="Enforced"), "/egress: the report says Enforced"),
    (_set("triggerFlags", to=["s.conflict.scope-expansion"]), "/triggerFlags: the report says ['s.conflict"),
    (_set("scenarios", 0, "dimension", to="SR"), "/scenarios/0/dimension: the report says SR"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "told"), WORDS)
def test_a_word_or_an_entry_of_the_report_that_was_changed_is_named(
    counted: Any, change: Callable[[Any], None], told: str
) -> None:
    found, summary, tables = counted
    assert words(found, summary, None, tables) == []
    changed = copy.deepcopy(summary)
    change(changed)
    assert [line for line in words(found, changed, None, tables) if told in line], words(found, changed, None, tables)


def test_a_configuration_nobody_reports_is_missed(sweep: Path, realcli: Run) -> None:
    edit(report_of(sweep) / "summary.json", _drop("configurations", 1))
    status, out, _ = realcli("verify-report", sweep)
    assert (status, "WRONG /configurations: the report lists 1" in out) == (1, True)


def test_half_a_file_of_a_job_that_was_killed_is_named_and_not_wrong(sweep: Path, realcli: Run) -> None:
    (report_of(sweep) / "tasks" / f"{PART}ab12").write_bytes(b"<html>")
    status, out, _ = realcli("verify-report", sweep)
    assert (status, out.count("WRONG")) == (0, 0)
    assert f"NOTE tasks/{PART}ab12 is a file that a Job did not finish" in out


@pytest.mark.parametrize(
    "text", ["a\u202eb", "\u26a0\ufe0f", "\u3164", "e\u0301\u0302\u0303\u0304", "\x1b[0m", "a\u00a0b", "U+0041"]
)
def test_a_hidden_character_is_shown_by_its_code_point_and_is_the_same_text(text: str) -> None:
    shown = plain(text)
    assert says(text, None, shown)
    assert not says(text, None, f"{shown}.")
    assert not says(text, None, shown[:-1])


def spoil(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(report: Path) -> None:
        data = (report / name).read_bytes()
        assert old in data
        (report / name).unlink()
        (report / name).write_bytes(data.replace(old, new, 1))

    return change


FILES: list[tuple[Callable[[Path], None], str]] = [
    (spoil("tables/main.csv", b"0.667", b"0.767"), "tables/main.csv is not what the report wrote"),
    (spoil("tables/main.parquet", b"PAR1", b"PAR2"), "tables/main.parquet is not what the report wrote"),
    (spoil("trials/00000.html", b"solved", b"failed"), "trials/00000.html is not what the report wrote"),
    (lambda report: (report / "side/alpha-1.html").unlink(), "side/alpha-1.html does not exist"),
    (lambda report: (report / "more.html").write_text("<b>1</b>"), "more.html is no file of this report"),
    (lambda report: (report / "SHA256SUMS").unlink(), "SHA256SUMS does not exist"),
    (spoil("SHA256SUMS", b"index.html", b"indox.html"), "SHA256SUMS has the digest"),
    (spoil("SHA256SUMS", b"  index.html", b" index.html"), "is no digest and name"),
]


@pytest.mark.parametrize(("change", "told"), FILES)
def test_a_file_of_the_report_that_was_changed_is_named(
    whole: SealedSweep, counted: Any, tmp_path: Path, change: Callable[[Path], None], told: str
) -> None:
    report = shutil.copytree(report_of(whole.directory / whole.root), tmp_path / "report")
    assert list(files_of(report, counted[1])) == []
    change(report)
    assert [line for line in files_of(report, counted[1]) if told in line]


@pytest.mark.parametrize(
    ("page", "old", "new"),
    [
        ("index.html", b">0.667<", b">0.767<"),
        ("index.html", b"0.349 to 0.985", b"0.649 to 0.985"),
        ("index.html", b">1m01s<", b">1m02s<"),
        ("index.html", b"$3.00", b"$1.00"),
        ("index.html", b'value="2/3"', b'value="5/6"'),
        ("configurations/claude-code.sonnet.html", b">0.500<", b">0.900<"),
        ("analyses/flips.html", b">-0.167<", b">0.167<"),
        ("tasks/beta.html", b"</a> </li>", b"2</a> </li>"),
    ],
)
def test_a_number_on_a_page_is_the_one_of_its_place(
    whole: SealedSweep, counted: Any, tmp_path: Path, page: str, old: bytes, new: bytes
) -> None:
    """However well the list of digests is made to fit. Of the other pages `test_a_sound_report…` reads every number."""
    report = tmp_path / "report"
    (report / page).parent.mkdir(parents=True)
    shutil.copy(report_of(whole.directory / whole.root) / page, report / page)
    if old not in (report / page).read_bytes():
        pytest.fail(f"{page} has no {old!r}")
    assert list(shown_of(report, counted[1])) == []
    spoil(page, old, new)(report)
    found = list(shown_of(report, counted[1]))
    assert found
    assert found[0].startswith(f"{page}: it shows ")


@pytest.mark.parametrize(
    ("table", "old", "new", "told"),
    [
        ("main", b"0.667", b"0.767", "row 2, r_exec: it says 0.767, the summary 2/3"),
        ("main", b"0.349", b"0.549", "row 2, "),
        ("tasks", b"claude-code.opus,EXEC,3", b"claude-code.opus,EXEC,2", "row 1, successes: it says 2, the summary 3"),
        ("trials", b",Completed,1,", b",Completed,0,", "row 1, reward: it says 0, the summary 1"),
        ("scenarios", b"0.000,6", b"1.000,6", "row 1, trigger_rate: it says 1.000, the summary 0"),
        ("dimensions", b"claude-code.opus,dimension,OR,1.000\n", b"", "it has 9 rows, the summary gives 10"),
        ("audits", b"passes,fails", b"fails,passes", "its columns are configuration, audited, runs, check, fails, passes"),
        ("generic", b"g.responsiveness,6,6", b"g.responsiveness,5,6", "row 2, passes: it says 5, the summary 6"),
        ("failures", b"gave-up-or-budget,1", b"gave-up-or-budget,0", "row 4, runs: it says 0, the summary 1"),
        ("analyses/flips", b",0.333,", b",0.000,", "row 1, churn_collab: it says 0.000, the summary 1/3"),
        ("failures", b"runs\n", b"runs\n\xff", "it cannot be read: 'utf-8' codec"),
    ],
)  # fmt: skip
def test_a_cell_of_a_table_is_the_one_of_its_place(
    whole: SealedSweep, counted: Any, tmp_path: Path, table: str, old: bytes, new: bytes, told: str
) -> None:
    """However well the list of digests is made to fit."""
    report = tmp_path / "report"
    shutil.copytree(report_of(whole.directory / whole.root) / "tables", report / "tables")
    assert list(csvs_of(report, counted[1])) == []
    spoil(f"tables/{table}.csv", old, new)(report)
    found = list(csvs_of(report, counted[1]))
    assert found
    assert found[0].startswith(f"tables/{table}.csv: {told}"), found


@pytest.mark.parametrize(
    ("table", "column", "row", "value"),
    [
        ("main", "r_collab", 1, 0.9), ("main", "configuration", 0, "another"), ("main", "partial", 0, False),
        ("main", "s", 0, 0.5),
        ("main", "cost_usd_exec", 0, 9.0), ("trials", "reward", 3, None), ("trials", "turns", 0, 7), ("tasks", "valid", 0, 9),
        ("dimensions", "score", 0, 0.123), ("scenarios", "rate", 0, 0.123), ("audits", "passes", 0, 9),
    ],
)  # fmt: skip
def test_a_cell_of_a_parquet_table_is_the_one_of_its_place(
    whole: SealedSweep, counted: Any, tmp_path: Path, table: str, column: str, row: int, value: object
) -> None:
    report = tmp_path / "report"
    shutil.copytree(report_of(whole.directory / whole.root) / "tables", report / "tables")
    assert list(parquets_of(report, counted[1])) == []
    path = report / "tables" / f"{table}.parquet"
    found = pq.read_table(path)
    cells = found.column(column).to_pylist()
    cells[row] = value
    kind = pa.array(cells).type if cells.count(None) == len(cells) - 1 else found.schema.field(column).type
    pq.write_table(found.set_column(found.column_names.index(column), column, pa.array(cells, kind)), path)
    (line,) = parquets_of(report, counted[1])
    assert f"tables/{table}.parquet: row " in line
    assert f"{column}: it says {'nothing' if value is None else value}" in line


def test_a_parquet_table_that_is_none_is_named(whole: SealedSweep, counted: Any, tmp_path: Path) -> None:
    report = tmp_path / "report"
    shutil.copytree(report_of(whole.directory / whole.root) / "tables", report / "tables")
    (report / "tables" / "main.parquet").unlink()
    (report / "tables" / "tasks.parquet").write_bytes(b"PAR1 and no more PAR1")
    pq.write_table(pq.read_table(report / "tables" / "trials.parquet").slice(1), report / "tables" / "trials.parquet")
    missing, damaged, short = parquets_of(report, counted[1])
    assert missing == "tables/main.parquet does not exist"
    assert damaged.startswith("tables/tasks.parquet: it cannot be read: ")
    assert short == "tables/trials.parquet: it has 23 rows, the summary gives 24"


def test_without_a_reader_it_is_said(sweep: Path, realcli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    status, out, _ = realcli("verify-report", sweep)
    assert (status, "NOTE tables/*.parquet were held against SHA256SUMS alone" in out) == (0, True)


def group(sweep: Path) -> Path:
    return next((sweep / "judgements").glob("*/claude-code.opus/alpha/group-1.json"))


def _facts(value: Any) -> None:
    next(iter(value["facts"].values()))["toolCalls"] = 99


GROUPS: list[tuple[Callable[[Any], None], str]] = [
    (_set("sweepUid", to="00000000-1111-2222-3333-444455556666"), "group-1.json: its sweepUid is 00000000-"),
    (_set("lockDigest", to=ZERO), "group-1.json: its lockDigest is sha256:0000"),
    (_set("judge", to=ZERO), "group-1.json: its judge is sha256:0000"),
    (_set("n", to=2), "group-1.json: its n is 2, expected 1"),
    (_set("task", to="beta"), "group-1.json: its task is beta, expected alpha"),
    (_drop("members", 5), "the plan gives it [0, 1, 4, 5, 8, 9]"),
    (lambda v: v["members"].append(v["members"][0]), "the group is of trials [0, 0, 1, 4, 5, 8, 9]"),
    (_set("members", 0, "ordinal", to=3), "trial 3 of claude-code.opus, alpha is another cell of the plan"),
    (_set("members", 0, "reward", to="0"), "trial 0: its group says reward 0, its verify seal 1"),
    (_facts, "trial 0: toolCalls 99 by the record, 5 by seal and ledger"),
    (_drop("judgements", "1"), "names no judgement of it, although it is sealed"),
    (_set("judgements", "1", to="../../../../../etc/passwd"), "which is no file of its folder"),
    (_set("judgements", "1", to=".."), "does not exist"),
]


@pytest.mark.parametrize(("change", "told"), GROUPS)
def test_a_group_that_was_changed_is_named(sweep: Path, change: Callable[[Any], None], told: str) -> None:
    edit(group(sweep), change)
    found = read_sweep(sweep, json.loads((report_of(sweep) / "summary.json").read_bytes()))
    assert [line for line in found.wrong if told in line], found.wrong


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"schema": 3}', b"[" * 100_000])
def test_records_that_are_none_are_named(sweep: Path, content: bytes) -> None:
    """Each in a group of its own."""
    summary = json.loads((report_of(sweep) / "summary.json").read_bytes())
    alpha, beta, of_sonnet, *_ = groups = sorted(path.parent for path in (sweep / "judgements").glob("*/*/*/group-1.json"))
    assert len(groups) == 4
    kinds = {
        sorted(alpha.glob("repeat-1-*.audit.json"))[0]: "AuditRecord",
        sorted(beta.glob("repeat-1-*[0-9a-f].json"))[0]: "RepeatJudgement",
        of_sonnet / "failures-1.json": "Failures",
        groups[3] / "group-1.json": "Group",
    }
    for path in kinds:
        path.unlink()
        path.write_bytes(content)
    wrong = "\n".join(read_sweep(sweep, summary).wrong)
    for path, model in kinds.items():
        assert f"{path.relative_to(sweep)} is no {model} of this version" in wrong


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"schema": "realcli.dev/summary/2"}'])
def test_a_summary_or_a_lock_that_is_none_is_said(sweep: Path, realcli: Run, content: bytes) -> None:
    for path in (report_of(sweep) / "summary.json", sweep / "sweep.json"):
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
        status, out, err = realcli("verify-report", sweep)
        assert (status, out) == (2, "")
        assert str(path) in err
        path.write_bytes(data)


def test_two_judgements_or_audits_that_were_swapped_are_named(sweep: Path) -> None:
    summary = json.loads((report_of(sweep) / "summary.json").read_bytes())
    for kind in ("*[0-9a-f].json", "*.audit.json"):
        one, other = (sorted(group(sweep).parent.glob(f"repeat-{n}-{kind}"))[0] for n in (1, 2))
        held = one.read_bytes(), other.read_bytes()
        for path, data in ((one, held[1]), (other, held[0])):
            path.unlink()
            path.write_bytes(data)
        what = "audit" if "audit" in kind else "judgement"
        found = read_sweep(sweep, summary).wrong
        assert [f"trial {ordinal}: its {what} is of another run or judge" for ordinal in (0, 4)] == [
            w for w in found if what in w
        ]


def test_a_program_judged_sweep_with_invalid_and_unsealed_trials(judged_by_program: SealedSweep, realcli: Run) -> None:
    status, out, _ = realcli("verify-report", judged_by_program.directory)
    assert (status, out.count("WRONG")) == (0, 0), out


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, "0 sweeps lie here; expected the folder of one"),
        (lambda path: (path / "sweep.json").write_text("{}"), "holds 0 reports; name the folder of one"),
        (
            lambda path: (path / "summary.json").write_text("{}"),
            "is a report, but its sweep is not above it; name it with --sweep",
        ),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, realcli: Run, make: Callable[[Path], Any], told: str) -> None:
    make(tmp_path)
    status, _, err = realcli("verify-report", tmp_path)
    assert (status, told in err) == (2, True), err


def test_a_folder_that_is_no_sweep_is_said(tmp_path: Path, realcli: Run) -> None:
    (tmp_path / "summary.json").write_text("{}")
    status, _, err = realcli("verify-report", tmp_path, "--sweep", tmp_path)
    assert (status, f"--sweep {tmp_path} holds no sweep.json; expected the folder of one sweep" in err) == (2, True), err
    status, _, err = realcli("verify-report", tmp_path / "gone")
    assert (status, f"{tmp_path / 'gone'} is no folder" in err) == (2, True), err


@pytest.mark.parametrize("arguments", [["{sweep}"], ["{sweep}/reports/0a1b/"], [".", "--sweep", "{sweep}/"]])
def test_an_address_is_copied_first(realcli: Run, arguments: list[str]) -> None:
    sweep = "s3://evals/sweeps/team/nightly-0f6a2b1c"
    status, _, err = realcli("verify-report", *(argument.format(sweep=sweep) for argument in arguments))
    assert status == 2
    assert f"reads folders only; copy the sweep (aws s3 sync {sweep} ./sweep) and name ./sweep" in err
