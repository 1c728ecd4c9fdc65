"""What a report writes beside its pages: a summary that keeps its schema, tables people and programs can read, exact numbers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest

from realcli.checks.digest import digest8
from realcli.judging.identity import identity_of
from realcli.judging.model import JudgeIdentity
from realcli.known.gate import KNOWN_SET, Gate, Share, Stratum
from realcli.scoring.aggregate import configuration_scores
from realcli.scoring.loading import load_score_input
from realcli.storage.paths import calibration
from realcli_judge.figures import number
from realcli_judge.inputs import Inputs, Refused
from realcli_judge.reporting import write_report
from realcli_judge.schemas import schema
from realcli_judge.tables import TABLES, _csv
from tests.support.judged_sweep import FAULT, OPUS, SONNET, write_judged
from tests.support.sealed_sweep import SealedSweep

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    return write_judged(tmp_path_factory.mktemp("judged") / "store")


@pytest.fixture(scope="module")
def written(judged: SealedSweep, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, bytes]]:
    return report(judged.copy(tmp_path_factory.mktemp("report") / "store"))


def report(sweep: SealedSweep) -> dict[str, bytes]:
    _, _, folder = write_report(Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan))
    return {item.key.removeprefix(folder + "/"): sweep.store.get(item.key) for item in sweep.store.list(folder + "/")}


@pytest.fixture(scope="module")
def summary(written: dict[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written["summary.json"])
    return found


def test_the_summary_keeps_its_schema(summary: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(json.loads((ROOT / "docs/schemas/summary.schema.json").read_text()))
    assert list(validator.iter_errors(summary)) == []
    assert list(validator.iter_errors({**summary, "counts": {**summary["counts"], "valid": "many"}}))


def test_the_published_schema_is_the_models_own() -> None:
    assert (ROOT / "docs/schemas/summary.schema.json").read_text() == schema()


def test_numbers_worked_out_by_hand(summary: dict[str, Any]) -> None:
    """opus COLLAB 5 of 6, sonnet 4 of 6. Pairs: opus 5 (beta 3 has no EXEC), none changes; sonnet 2 up, 2 down.

    sonnet, instances: touched 6 of 6; wide 0 of 5 (one contaminated); early 0 of 6. S_rate = (1 + (0 + 0) / 2) / 2 = 1/2.
    """
    opus, sonnet = summary["configurations"]
    assert (opus["name"], sonnet["name"]) == (OPUS, SONNET)
    assert [c["collab"]["r"]["exact"] for c in (opus, sonnet)] == ["5/6", "2/3"]
    assert [(c["paired"]["pairs"], c["paired"]["failToPass"], c["paired"]["passToFail"]) for c in (opus, sonnet)] == [
        (5, 0, 0), (6, 2, 2),
    ]  # fmt: skip
    assert [c["sRate"]["exact"] for c in (opus, sonnet)] == ["1", "1/2"]
    assert sonnet["instances"] == {"triggered": 17, "untriggered": 6, "notApplicable": 0, "unscored": 0, "contaminated": 1}
    # sonnet's alpha 1 COLLAB (solved) is flagged: by repeat 0/1, 1/2, 2/2 are left. With its spoilt instance wide is 0 of 6.
    assert (sonnet["rCollabUnflagged"]["exact"], sonnet["sRateUncleaned"]["exact"]) == ("1/2", "1/2")
    assert ("rCollabUnflagged" in opus, "sRateUncleaned" in opus) == (False, False)
    assert (opus["observed"], summary["catalogueScenarios"]) == (3, 51)
    assert [c["spent"]["COLLAB"]["usd"]["usd"] for c in (opus, sonnet)] == ["3.00", "3.00"]
    assert opus["spent"]["EXEC"]["usd"]["usd"] == "1.00"
    assert opus["spent"]["EXEC"]["of"] == 5
    scope = next(s for s in summary["scenarios"] if (s["configuration"], s["scenario"]) == (SONNET, "s.conflict.scope-expansion"))
    assert (scope["passes"], scope["n"], scope["contaminated"], scope["scheduled"]) == (0, 5, 1, 6)


def test_the_join_of_both_parts(summary: dict[str, Any]) -> None:
    audit = summary["audits"][1]
    rates = {check["check"]: (check["passes"], check["fails"]) for check in audit["checks"]}
    assert rates["sim_no_early_disclosure"] == (5, 1)
    assert rates["sim_goal_stability"] == (6, 0)
    assert audit["contaminated"] == {"S": 1, "OR": 0}  # of U nothing happened
    assert (audit["audited"], audit["runs"], audit["askUnmatched"]) == (6, 6, 1)
    labels = {(f["configuration"], f["mode"], f.get("label")): f["runs"] for f in summary["failures"]}
    assert labels == {
        (OPUS, "COLLAB", "functional-or-boundary"): 1,
        (SONNET, "EXEC", "functional-or-boundary"): 2,
        (SONNET, "COLLAB", "functional-or-boundary"): 1,
        (SONNET, "COLLAB", "gave-up-or-budget"): 1,
    }
    judge = summary["judge"]
    assert (judge["byProgram"], judge["byJudge"], judge["conflicts"], judge["unscored"]) == (36, 60, 1, 12)
    assert (judge["calibration"], judge["sameFamily"], judge["cost"]["requests"]) == ("uncalibrated", [OPUS, SONNET], 16)
    assert [t["suspect"] is not None for t in summary["taskList"] if "suspect" in t] == [True]
    generic = {(g["configuration"], g["scenario"]): (g["passes"], g["n"], g["unscored"]) for g in summary["generic"]}
    assert generic[OPUS, "g.responsiveness"] == (6, 6, 0)
    assert generic[SONNET, "g.claims-supported"] == (0, 0, 6)


def test_every_table_is_csv_and_parquet_with_the_same_rows(written: dict[str, bytes], summary: dict[str, Any]) -> None:
    names = [*TABLES, *(f"analyses/{one['id']}" for one in summary["analyses"])]
    assert len(names) >= 30
    for name in names:
        rows = list(csv.reader(io.StringIO(written[f"tables/{name}.csv"].decode())))
        table = pq.read_table(io.BytesIO(written[f"tables/{name}.parquet"]))
        assert table.column_names == rows[0]
        assert table.num_rows == len(rows) - 1
    main = pq.read_table(io.BytesIO(written["tables/main.parquet"])).to_pylist()
    assert main[1]["r_collab"] == pytest.approx(2 / 3)
    assert main[1]["s"] is None  # partial: no result
    trials = pq.read_table(io.BytesIO(written["tables/trials.parquet"])).to_pylist()
    invalid = next(row for row in trials if row["phase"] == "Invalid")
    assert (invalid["reward"], invalid["turns"]) == (None, None)


def test_a_text_in_csv_is_no_formula_of_a_spreadsheet() -> None:
    """A category is a text of the benchmark's author; numbers stay numbers, whatever their sign."""
    texts = ['=HYPERLINK("http://x","y")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "plain", "a=1", "", "a\rb\u202e"]
    numbers: list[Any] = [-0.5, -3, Decimal("-1.5"), number(Fraction(-1, 3)), None, True]
    rows = list(csv.reader(io.StringIO(_csv(["v"], [[cell] for cell in (*texts, *numbers)]).decode())))
    assert [row[0] if row else "" for row in rows[1:]] == [
        *(f"'{text}" for text in texts[:5]), "plain", "a=1", "", "aU+000DbU+202E", "-0.5", "-3", "-1.5", "-0.333", "", "True"
    ]  # fmt: skip


def test_every_further_reading_says_what_it_is(summary: dict[str, Any]) -> None:
    assert [one["id"] for one in summary["analyses"] if not one["means"]] == []


def test_scoring_the_runs_again_gives_the_summary(written: dict[str, bytes], summary: dict[str, Any]) -> None:
    given = load_score_input(written["tables/runs.json"], "runs.json")
    assert given.judge == summary["judge"]["digest"]
    assert given.benchmark == summary["benchmark"]["digest"]
    for one in summary["configurations"]:
        scores = configuration_scores(one["name"], given.of(one["name"]), given.tree, given.threshold)
        assert scores.r_collab == Fraction(one["collab"]["r"]["exact"])
        assert scores.s_rate == Fraction(one["sRate"]["exact"])
        assert {name: str(value) for name, value in scores.dimensions.items()} == {
            name: value["exact"] for name, value in one["dimensions"].items()
        }
        assert one["collab"]["r"]["interval"]["low"] <= float(scores.r_collab) <= one["collab"]["r"]["interval"]["high"]


def _every(hits: int, of: int, upper: float = 0.03, misses: int = 0) -> Stratum:
    return Stratum(
        name="all", false_failures=Share(hits=hits, of=of, upper=upper), misses=Share(hits=misses, of=9, value=0), unscored=0
    )  # fmt: skip


def passed_gate(identity: JudgeIdentity, **changed: Any) -> Gate:
    base: dict[str, Any] = {
        "judge": identity.content_digest(), "identity": identity, "known": KNOWN_SET, "cases": 3, "verdicts": [_every(0, 100)],
        "answers": [], "disagreements": [], "s_ideal": "1", "passed": True, "told": "S of the ideal runs is 1.",
    }  # fmt: skip
    return Gate(**(base | changed))


NO_GATES: list[tuple[dict[str, Any], str]] = [
    ({"verdicts": []}, "its own numbers say that it was not"),
    ({"s_ideal": "93/100"}, "its own numbers say that it was not"),
    ({"s_ideal": None}, "its own numbers say that it was not"),
    ({"emulated": "oracle"}, "of the emulated judge oracle"),
    ({"verdicts": [_every(40, 100, upper=0.01)]}, "its own numbers say that it was not"),
    ({"verdicts": [_every(0, 0)]}, "its own numbers say that it was not"),
    ({"verdicts": [_every(-5, 100)]}, "its own numbers say that it was not"),
    ({"verdicts": [_every(0, 100, misses=9)]}, "its own numbers say that it was not"),
    ({"told": "S of the ideal runs is 0.99."}, "its sentence says other numbers"),
    ({"told": "false failures 0 of 9000"}, "its sentence says other numbers"),
    ({"told": "violations missed 1 of 9"}, "its sentence says other numbers"),
]


@pytest.mark.parametrize(("changed", "told"), NO_GATES)
def test_a_gate_that_contradicts_itself_calibrates_nobody(
    judged: SealedSweep, tmp_path: Path, changed: dict[str, Any], told: str
) -> None:
    sweep = judged.copy(tmp_path / "store")
    gate = passed_gate(identity_of(sweep.lock.spec.judge), **changed)
    sweep.store.put_once(calibration("p", digest8(gate.judge)), gate.canonical())
    with pytest.raises(Refused, match=told):
        report(sweep)


def test_a_gate_of_another_judge_under_this_ones_digest_is_refused(judged: SealedSweep) -> None:
    identity = identity_of(judged.lock.spec.judge)
    other = identity.model_copy(update={"votes": 9})
    assert passed_gate(identity).contradiction() is None
    assert "its identity has the digest" in str(passed_gate(other, judge=identity.content_digest()).contradiction())


def test_a_passed_gate_is_said_and_names_another_report(judged: SealedSweep, summary: dict[str, Any], tmp_path: Path) -> None:
    sweep = judged.copy(tmp_path / "store")
    identity = identity_of(sweep.lock.spec.judge)
    gate = passed_gate(identity)
    sweep.store.put_once(calibration("p", digest8(gate.judge)), gate.canonical())
    files = report(sweep)
    found = json.loads(files["summary.json"])
    assert found["inputDigest"] != summary["inputDigest"]
    assert (found["judge"]["calibration"], found["judge"]["gate"]) == ("calibrated", "S of the ideal runs is 1.")
    assert "uncalibrated" not in [flag["code"] for flag in found["flags"]]


def test_a_gate_over_another_known_answer_set_calibrates_nobody(judged: SealedSweep, tmp_path: Path) -> None:
    sweep = judged.copy(tmp_path / "store")
    identity = identity_of(sweep.lock.spec.judge)
    gate = passed_gate(identity, known=identity.catalogue)
    sweep.store.put_once(calibration("p", digest8(gate.judge)), gate.canonical())
    found = json.loads(report(sweep)["summary.json"])
    assert found["judge"]["calibration"] == "uncalibrated"
    assert f"made over another known-answer set ({identity.catalogue}, this version has {KNOWN_SET})" in found["judge"]["gate"]
    (flag,) = [flag["text"] for flag in found["flags"] if flag["code"] == "uncalibrated"]
    assert "remove it, and calibrate again. Run: realcli judge calibrate" in flag


@pytest.mark.parametrize("gated", [False, True])
def test_a_judge_without_a_gate_is_told_how_to_get_one(judged: SealedSweep, tmp_path: Path, gated: bool) -> None:
    """A stored gate is not overwritten: one that was not passed calls for another judge."""
    sweep = judged.copy(tmp_path / "store")
    identity = identity_of(sweep.lock.spec.judge)
    gate = Gate(
        judge=identity.content_digest(), identity=identity, known=KNOWN_SET, cases=3, verdicts=[], answers=[],
        disagreements=[], passed=False, told="Not passed: S of the ideal runs is 0.5.",
    )  # fmt: skip
    if gated:
        sweep.store.put_once(calibration("p", digest8(gate.judge)), gate.canonical())
    flags = {flag["code"]: flag["text"] for flag in json.loads(report(sweep)["summary.json"])["flags"]}
    bucket = sweep.lock.spec.storage.bucket
    end = gate.told if gated else f" Run: realcli judge calibrate --sweep FILE --store s3://{bucket}/p"
    assert flags["uncalibrated"].endswith(end)


def test_a_gate_of_another_form_is_refused(judged: SealedSweep, tmp_path: Path) -> None:
    sweep = judged.copy(tmp_path / "store")
    digest = identity_of(sweep.lock.spec.judge).content_digest()
    sweep.store.put_once(calibration("p", digest8(digest)), b"{}")
    with pytest.raises(Refused, match=r"gate\.json is no gate"):
        report(sweep)


def test_an_audit_that_is_gone_is_no_clean_audit(judged: SealedSweep, tmp_path: Path) -> None:
    sweep = judged.copy(tmp_path / "store")
    next(Path(sweep.directory).rglob("*.audit.json")).unlink()
    with pytest.raises(Refused, match=r"audit\.json does not exist"):
        report(sweep)


def test_an_audit_of_another_run_is_refused(judged: SealedSweep, tmp_path: Path) -> None:
    sweep = judged.copy(tmp_path / "store")
    one, other = sorted(Path(sweep.directory).rglob("*.audit.json"))[:2]
    other_bytes = other.read_bytes()
    one.unlink()
    one.write_bytes(other_bytes)
    with pytest.raises(Refused, match="judged another attempt"):
        report(sweep)


def test_the_deviation_is_on_the_trials_page(written: dict[str, bytes]) -> None:
    assert FAULT in written["trials/00002.html"].decode()
