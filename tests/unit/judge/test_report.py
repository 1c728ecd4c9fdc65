"""The report Job: numbers worked out by hand, pages that say them, and nothing of the agent's text that acts."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.api.termination import MAX_REPORT_BYTES, Result, Termination
from realcli.ledger.seals import VerifySeal
from realcli.scoring.records import InstanceRecord
from realcli_judge.__main__ import _fitting
from realcli_judge.figures import number
from realcli_judge.pages import environment
from realcli_judge.scores import _cell as task_cell
from realcli_judge.sheets import Places, collaboration
from realcli_judge.summary import SetUp, Summary, TrialSummary
from realcli_judge.tables import TABLES
from tests.support.sealed_sweep import DEEDS, SCENARIO, Deed, SealedSweep, write_sweep, write_trial

HOSTILE = "<script>alert(1)</script></div><img src=x onerror=alert(2)>\x1b[31m\u202egnp.exe\u200b{{ 7*7 }}{% raw %}"


Reported = tuple[Summary, dict[str, str], Termination]


def report(sweep: SealedSweep, job: Callable[..., Any]) -> Reported:
    """Summary, pages by name, termination message."""
    status, message = job("report", sweep)
    assert (status, message.result) == (0, Result.REPORTED)
    folder = message.uri.split(str(sweep.directory) + "/")[1]
    found = {item.key.removeprefix(folder + "/"): sweep.store.get(item.key) for item in sweep.store.list(folder + "/")}
    files = {name: data.decode() for name, data in found.items() if not name.endswith(".parquet")}
    assert sha256_digest(files["summary.json"].encode()) == message.seal
    return Summary.model_validate_json(files["summary.json"]), files, message


@pytest.fixture(scope="module")
def reported(judged_once: SealedSweep, job_in: Any, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """The report of the sweep as it is, to be read."""
    folder = tmp_path_factory.mktemp("reported")
    return report(judged_once.copy(folder / "store"), job_in(folder))


def judge_all(sweep: SealedSweep, job: Callable[..., Any]) -> SealedSweep:
    for group in range(sweep.plan.groups):
        assert job("judge", sweep, group)[1].result == "Judged"
    return sweep


def words(html: str) -> str:
    """What a reader sees of a page."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html.split("<main id=")[1]))


def test_numbers(reported: Reported) -> None:
    """By hand, from DEEDS. R_exec by repeat 1, 1/2, 0; R_collab 1, 0 (one run invalid), 1/2. Invalid as 1: 1, 1/2, 1/2.

    Instances: repeat 1 one of two, repeat 2 none of one, repeat 3 one of one; S 0, 0, 1; S_rate 1/2, 0, 1; J 0, 0, 1/2;
    J of S_rate 1/2, 0, 1/2.
    Pairs: alpha 1→1, 1→0, 0→1; beta 1→1, 0→0 and one incomplete.
    """
    summary, _, message = reported
    one = summary.configurations[0]
    assert one.exec is not None
    assert one.collab is not None
    assert one.collab.bounds is not None
    bounds = one.collab.bounds
    numbers = {
        "r_exec": one.exec.r, "r_collab": one.collab.r, "low": bounds.invalid_as_0, "high": bounds.invalid_as_1, "s": one.s,
        "s_rate": one.s_rate, "j": one.j, "j_rate": one.j_rate,
        "delta_r": one.delta_r, "delta_j": one.delta_j, "paired": one.paired.delta_r,
    }  # fmt: skip
    assert {name: value and value.exact for name, value in numbers.items()} == {
        "r_exec": "1/2", "r_collab": "1/2", "low": "1/2", "high": "2/3", "s": "1/3", "s_rate": "1/2", "j": "1/6", "j_rate": "1/3",
        "delta_r": "0",        "delta_j": "-1/3", "paired": "0",
    }  # fmt: skip
    assert one.exec.bounds is None  # nothing invalid there
    assert (one.paired.pairs, one.paired.fail_to_pass, one.paired.pass_to_fail) == (5, 1, 1)
    assert (one.exec.valid, one.collab.valid, one.collab.invalid, one.collab.missing, one.invalid_attempts) == (6, 5, 1, 0, 5)
    assert one.instances.dump() == {"triggered": 4, "untriggered": 1, "notApplicable": 0, "unscored": 0, "contaminated": 0}
    assert (one.partial, one.headline) == (True, "S_rate")
    assert message.scores[0].dump() == {
        "configuration": "claude-code.sonnet", "rExec": "0.500", "rCollab": "0.500", "s": "0.500~", "j": "0.333",
    }  # fmt: skip
    assert (message.phase, message.reason) == ("Report", "Incomplete")
    assert [(s.scenario, s.passes, s.n, s.untriggered) for s in summary.scenarios] == [(SCENARIO, 2, 4, {"not_reached": 1})]
    assert summary.counts.dump() == {
        "trials": 12, "valid": 11, "invalid": 1, "missing": 0, "groups": 2, "groupsJudged": 2, "groupsIncomplete": 1,
        "groupsWithdrawn": 0, "tasksWithdrawn": 0, "withdrawn": 0,
    }  # fmt: skip
    assert [f.code for f in summary.flags] == ["invalid", "egress-unenforced", "partial", "development", "uncalibrated"]
    by_cell = {(c.task, c.mode): (c.successes, c.valid, c.invalid, c.mean_reward and c.mean_reward.exact) for c in summary.tasks}
    assert by_cell == {
        ("alpha", "EXEC"): (2, 3, 0, "2/3"), ("alpha", "COLLAB"): (2, 3, 0, "2/3"),
        ("beta", "EXEC"): (1, 3, 0, "1/2"), ("beta", "COLLAB"): (1, 2, 1, "1/2"),
    }  # fmt: skip


def test_a_valid_run_whose_reward_nobody_knows_is_a_failure_without_a_reward() -> None:
    def trial(repeat: int, reward: str | None) -> TrialSummary:
        return TrialSummary(
            ordinal=repeat, name=f"t-{repeat}", configuration="a.m", task="alpha", mode="EXEC", repeat=repeat,
            phase="Sealed", success=reward == "1", reward=reward,
        )  # fmt: skip

    cell = task_cell("a.m", "alpha", "EXEC", [trial(1, "1"), trial(2, None), trial(3, "0.5")])
    assert (cell.successes, cell.valid, cell.rewards) == (1, 3, {"1": "1", "3": "0.5"})
    assert cell.mean_reward is not None
    assert cell.mean_reward.exact == "3/4"
    assert task_cell("a.m", "alpha", "EXEC", [trial(1, None)]).mean_reward is None


def test_trials_in_the_summary(reported: Reported) -> None:
    summary, _, _ = reported
    assert [t.ordinal for t in summary.trials] == list(range(12))
    invalid, limited = summary.trials[8], summary.trials[11]
    assert (invalid.phase, invalid.reason, invalid.success, invalid.reward, invalid.turns) == (
        "Invalid",
        "ProviderUnavailable",
        None,
        None,
        None,
    )
    assert (limited.phase, limited.reason, limited.success, limited.reward, limited.limit) == (
        "Sealed",
        "TurnLimit",
        False,
        "0",
        "turns",
    )
    assert (summary.trials[5].checks and summary.trials[5].checks.dump()) == {"passed": 7, "total": 8}


def test_pages_say_it(reported: Reported) -> None:
    _, files, _ = reported
    page = words(files["index.html"])
    assert "solves 0.500 of its runs (5 valid runs); its collaboration scores 0.500 (S_rate), seen on 1 of 51 scenarios" in page
    assert (
        "does not change when a user takes part: of 5 pairs of runs 1 turn from failure to success and 1 the other way round"
        in page
    )
    assert "1 invalid: 0.500 to 0.667" in page
    assert "Invalid/ProviderUnavailable" in page
    assert "egress Unenforced" in page
    assert "Collaboration: partial, not a result" in page
    main = files["index.html"].split('id="main"')[1].split("</table>")[0]
    assert ">S<" not in main  # a partial S is in no table of results
    assert sorted(name for name in files if "analyses/" not in name) == sorted(
        ["SHA256SUMS", "index.html", "scenarios.html", "summary.json", "tables/runs.json",
         *(f"tables/{name}.csv" for name in TABLES),
         "configurations/claude-code.sonnet.html", "tasks/alpha.html", "tasks/beta.html",
         *(f"trials/{o:05d}.html" for o in range(12))]
    )  # fmt: skip
    for name in ("index.html", "tasks/alpha.html", "trials/00000.html"):  # one configuration has nothing to stand beside
        assert "ide by side" not in words(files[name])


def test_every_link_leads_somewhere(reported: Reported) -> None:
    _, files, _ = reported
    for name, page in files.items():
        if not name.endswith(".html"):
            continue
        for target in re.findall(r'href="([^"]+)"', page):
            path, _, fragment = target.partition("#")
            resolved = os.path.normpath(Path(name).parent / path) if path else name
            if resolved.endswith(".parquet"):
                continue
            assert resolved in files, (name, target)
            assert not fragment or f'id="{fragment}"' in files[resolved], (name, target)


def test_trial_page_shows_the_conversation(judged_once: SealedSweep, reported: Reported) -> None:
    _, files, _ = reported
    blind = words(files["trials/00002.html"])
    assert "reread-first ✗ 0" in blind
    assert "its content had not been shown" in blind
    for said in (
        "Please make me a plan.", "I was just in plan.md myself.", "probe touched delivered", "slice s1 released with the batch",
        "dynamic plant in /app/plan.md", "Tuesdays added.", "Thank you, that is all.", "user: closer (not sent)",
    ):  # fmt: skip
        assert said in blind
    assert (judged_once.members[2].work_seal or "?") in files["trials/00002.html"]
    assert "none: the trial has no outcome and is not counted" in words(files["trials/00008.html"])
    assert "all 4 attempts were invalid" in words(files["trials/00008.html"])
    assert "limit turns: 601 of 600" in words(files["trials/00011.html"])


def test_hostile_text_is_only_text(tmp_path: Path, job: Any) -> None:
    big = HOSTILE + "\n" * 40 + "y" * 100_000  # over the size that may stand in a ledger line: it lies in a blob
    deeds = {**DEEDS, ("alpha", "COLLAB", 1): Deed(says=HOSTILE, prints=big)}
    sweep = judge_all(write_sweep(tmp_path / "hostile", deeds), job)
    _, files, _ = report(sweep, job)
    page = files["trials/00000.html"]
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2
    assert '<span class="hid">U+202E</span>gnp.exe<span class="hid">U+200B</span>{{ 7*7 }}{% raw %}' in page
    assert "characters left out" in page
    for name, text in files.items():
        if name.endswith(".html"):
            assert "<script" not in text
            assert "<img" not in text
            assert not set(text) & set("\x1b\u202e\u200b")
            assert "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"" in text
            assert not re.search(r"""(?:src|href)=["'](?:[a-z]+:|//)""", text)  # nothing is fetched, nothing leads out


def ctrf(*tests: dict[str, str]) -> bytes:
    return json.dumps({"results": {"tests": list(tests)}}).encode()


def test_failed_tests_stand_on_the_trials_page(tmp_path: Path, job: Any) -> None:
    """In their own words, which are the agent's side: text and nothing else."""
    said = ctrf({"name": "test_rounding", "status": "failed", "message": "expected 1.25, got 1.3"},
                {"name": HOSTILE, "status": "failed", "message": HOSTILE}, {"name": "test_fine", "status": "passed"})  # fmt: skip
    many = ctrf(*({"name": f"test_{n}", "status": "failed", "message": ""} for n in range(250)))
    deeds = {
        **DEEDS,
        ("alpha", "EXEC", 1): Deed(reward="0", checks=(6, 8), ctrf=said),
        ("alpha", "EXEC", 2): Deed(reward="0", ctrf=many),
        ("alpha", "EXEC", 3): Deed(reward="0", ctrf=b"[" * 100_000),
    }
    sweep = judge_all(write_sweep(tmp_path / "failed", deeds), job)
    _, files, _ = report(sweep, job)
    page = files["trials/00001.html"]
    assert (
        "Failed tests in the words of the tests, which ran beside what the agent left test_rounding expected 1.25, got 1.3"
        in (words(page))
    )
    assert "test_fine" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2
    assert "<script" not in page
    assert "U+202E" in page
    assert "test_99 and 150 more" in words(files["trials/00003.html"])
    assert "Failed tests" not in words(files["trials/00005.html"])
    assert "Failed tests" not in words(files["trials/00000.html"])


def test_failed_tests_that_were_changed_are_not_shown(tmp_path: Path, job: Any) -> None:
    told = ctrf({"name": "test_rounding", "status": "failed", "message": ""})
    sweep = judge_all(write_sweep(tmp_path / "changed", {**DEEDS, ("alpha", "EXEC", 1): Deed(reward="0", ctrf=told)}), job)
    path = Path(sweep.directory) / sweep.paths.attempt(1, 1).verify(1).ctrf
    path.unlink()
    path.write_bytes(told.replace(b"rounding", b"anything"))
    summary, files, _ = report(sweep, job)
    assert "ctrf.json has the digest" in (summary.trials[1].trouble or "")
    assert "test_anything" not in files["trials/00001.html"]


def test_the_agents_own_set_up_is_told(reported: Reported) -> None:
    _, files, _ = reported
    assert "Own set-up none: the program as it comes" in words(files["trials/00001.html"])
    assert "Agent claude-code 2.1.140 · claude-sonnet-4-5 · permissions Bypass" in words(files["trials/00001.html"])
    own = SetUp(
        digest="sha256:" + "1" * 64, files=3, mcp_servers=["docs"], tool_images=["tools:1 at /tools"], in_reach=["team/key"]
    )
    macro = "{% from 'macros.html' import told_setup %}<main id=>{{ told_setup(x) }}"
    told = words(environment().from_string(macro).render(x=own))
    assert "3 files · MCP servers docs · images tools:1 at /tools · secrets the agent can read: team/key" in told
    assert own.digest in told


def test_a_mode_with_no_valid_run_shows_its_bounds_and_no_zero(tmp_path: Path, job: Any) -> None:
    lost = {
        cell: Deed(invalid="ProviderUnavailable", invalid_attempts=1) for cell in DEEDS if cell[0] == "beta" or cell[1] == "EXEC"
    }
    summary, files, _ = report(judge_all(write_sweep(tmp_path / "lost", {**DEEDS, **lost}), job), job)
    one, beta = summary.configurations[0], summary.task_list[1]
    assert one.exec is not None
    assert (one.exec.r, one.exec.valid, one.exec.invalid) == (None, 0, 6)
    assert (one.paired.pairs, one.paired.delta_r, one.delta_r, one.delta_j) == (0, None, None, None)
    assert (beta.r_exec, beta.r_collab, beta.pairs) == (None, None, 0)
    spent = one.spent["EXEC"]
    assert (spent.of, spent.turns, spent.tool_calls, spent.input_tokens, spent.usd, spent.hours) == (0, *[None] * 5)
    assert "none valid 6 invalid: 0.000 to 1.000" in words(files["index.html"])
    assert "not defined not defined 0" in words(files["index.html"])  # R EXEC, R COLLAB, pairs of beta


def test_an_audit_nobody_made_has_no_counts(sweep: SealedSweep, job: Any) -> None:
    summary, _, _ = report(sweep, job)
    assert [(a.audited, a.ask_unmatched, a.unscripted_answers) for a in summary.audits] == [(0, None, None)]


def test_what_the_judge_says_beside_the_programs_verdict_is_told_apart() -> None:
    """Its quotes speak for its own verdict, not for the one that counts."""
    answer = {"check_id": "touched/reread-first", "vote": 1, "zero_clause_met": False, "na_clause_met": False, "verdict": "1",
              "evidence": [{"kind": "quote", "exchange": 1, "quote": "I looked."}], "reason": "It says so."}  # fmt: skip
    hard = {"op": "order", "result": "fail", "why": "it wrote first", "events": [4]}
    check = {"check": "reread-first", "verdict": "0", "by": "program", "hard": hard, "answers": [answer], "conflict": True}
    record = InstanceRecord.model_validate(
        {
            "scenario": SCENARIO,
            "probe": "touched",
            "dimension": "OR",
            "sub_dimension": "x",
            "state": "triggered",
            "checks": [check],
        }
    )
    (line,) = collaboration([record], None, Places(None))[0].checks
    assert (line.verdict, line.judge_said, line.reason) == ("0", "1", "it wrote first")
    by_judge = record.model_copy(update={"checks": [record.checks[0].model_copy(update={"by": "judge"})]})
    assert collaboration([by_judge], None, Places(None))[0].checks[0].judge_said is None


def test_again_writes_the_same_bytes(judged: SealedSweep, job: Any) -> None:
    first = report(judged, job)
    assert report(judged, job) == first


def test_missing_groups_are_not_zero(sweep: SealedSweep, job: Any) -> None:
    job("judge", sweep, 0)
    summary, files, message = report(sweep, job)
    one = summary.configurations[0]
    assert one.exec is not None
    assert (one.exec.r and one.exec.r.exact, one.exec.valid, one.exec.missing) == ("2/3", 3, 3)
    assert (summary.state, summary.counts.missing, summary.counts.groups_judged) == ("Incomplete", 6, 1)
    assert summary.flags[0].code == "incomplete"
    assert (summary.trials[7].phase, summary.trials[7].success, summary.trials[7].reward) == ("Missing", None, None)
    assert message.message == "6 valid, 0 invalid, 6 missing of 12 trials; 1 of 2 groups judged"
    assert "trials/00007.html" not in files
    test_links = re.findall(r'href="(\d+\.html)"', files["trials/00005.html"])
    assert test_links == ["00004.html"]


def test_no_group_at_all_is_still_a_report(sweep: SealedSweep, job: Any) -> None:
    summary, files, message = report(sweep, job)
    assert (summary.counts.valid, summary.counts.missing) == (0, 12)
    assert message.scores[0].dump() == {"configuration": "claude-code.sonnet"}
    assert "none valid" in files["index.html"]
    assert "cannot be compared" in summary.reading.rq2


def test_a_complete_sweep(tmp_path: Path, job: Any) -> None:
    deeds = {**DEEDS, ("beta", "COLLAB", 2): Deed()}
    summary, files, message = report(judge_all(write_sweep(tmp_path / "complete", deeds), job), job)
    assert (summary.state, message.reason) == ("Complete", None)
    assert "invalid" not in [f.code for f in summary.flags]
    assert "changes by +0.167" in words(files["index.html"])  # beta 2 now turns from failure to success: 2 - 1 of 6


def test_changed_evidence_is_said_and_not_shown(judged: SealedSweep, job: Any) -> None:
    target = Path(judged.directory) / judged.paths.attempt(1, 1).segment(1)
    data = target.read_bytes()
    target.unlink()
    target.write_bytes(data.replace(b"whole", b"wider"))
    summary, files, _ = report(judged, job)
    assert summary.flags[0].code == "evidence"
    assert "first-00001" in summary.flags[0].text
    assert "000001.jsonl" in (summary.trials[1].trouble or "")
    page = words(files["trials/00001.html"])
    assert "it is not what the operator anchored" in page
    assert "wider" not in page


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_long_text_that_is_not_the_sealed_one_spoils_its_page_alone(tmp_path: Path, job: Any, damage: str) -> None:
    deeds = {**DEEDS, ("alpha", "EXEC", 1): Deed(prints="y" * 100_000)}
    sweep = judge_all(write_sweep(tmp_path / "long", deeds), job)
    blob = next((Path(sweep.directory) / sweep.paths.attempt(1, 1).root / "blobs").iterdir())
    blob.unlink()
    if damage == "changed":
        blob.write_bytes(b"something else")
    summary, files, _ = report(sweep, job)
    assert [t.ordinal for t in summary.trials if t.trouble] == [1]
    assert summary.flags[0].code == "evidence"
    assert "Not shown." in words(files["trials/00001.html"])
    assert summary.counts.valid == 11


def test_an_input_that_poses_as_a_blob_is_shown_as_what_it_is(tmp_path: Path, job: Any) -> None:
    """A model asks for a call with the input of a reference: no reader may go looking for it."""
    posed = {**DEEDS, ("alpha", "EXEC", 1): Deed(posed={"blob": "a" * 64, "size": 3})}
    sweep = judge_all(write_sweep(tmp_path / "posed", posed), job)
    summary, files, _ = report(sweep, job)
    assert not [t for t in summary.trials if t.trouble]
    assert "a" * 64 in words(files["trials/00001.html"])


def test_a_success_without_a_verify_seal_is_said(sweep: SealedSweep, job: Any) -> None:
    sweep.members[1] = sweep.members[1].model_copy(update={"seal": None, "verify_attempt": None})
    summary, _, _ = report(judge_all(sweep, job), job)
    assert "no verify seal says so" in (summary.trials[1].trouble or "")


def test_a_verdict_on_another_work_seal_is_refused_by_the_judge(sweep: SealedSweep, job: Any) -> None:
    path = Path(sweep.directory) / sweep.paths.attempt(1, 1).verify(1).seal
    other = VerifySeal.model_validate_json(path.read_bytes()).model_copy(update={"work_seal": sweep.members[3].work_seal}).seal()
    path.unlink()
    path.write_bytes(other)
    sweep.members[1] = sweep.members[1].model_copy(update={"seal": sha256_digest(other)})
    status, message = job("judge", sweep, 0)
    assert (status, message.reason) == (0, "EvidenceSwapped")
    assert "verified work seal" in (message.message or "")


def test_a_reward_that_is_not_the_sealed_one_is_said(sweep: SealedSweep, job: Any) -> None:
    sweep.members[5] = sweep.members[5].model_copy(update={"reward": "1"})
    summary, _, _ = report(judge_all(sweep, job), job)
    assert "the seal says reward 0, the group file 1" in (summary.trials[5].trouble or "")


def test_a_valid_trial_without_seal_widens_the_bounds(tmp_path: Path, job: Any) -> None:
    deeds = {**DEEDS, ("alpha", "COLLAB", 1): Deed(sealed=False, reason="AgentDiskLimit"), ("beta", "COLLAB", 1): Deed()}
    summary, files, _ = report(judge_all(write_sweep(tmp_path / "disk", deeds), job), job)
    one = summary.configurations[0]
    first = one.per_repeat[0]
    assert one.instances.unscored == 1
    assert (first.s, first.s_low and first.s_low.exact, first.s_high and first.s_high.exact) == (None, "0", "1")
    assert (summary.trials[0].success, summary.trials[0].reward) == (False, "0")
    assert "its scenarios are unscored" in words(files["trials/00000.html"])


def test_two_configurations(tmp_path: Path, job: Any) -> None:
    def deed(configuration: str, task: str, mode: str, repeat: int) -> Deed:
        return Deed(reward="0") if configuration.endswith("opus") and mode == "COLLAB" else Deed()

    names = ("claude-code.opus", "claude-code.sonnet")
    summary, files, message = report(judge_all(write_sweep(tmp_path / "two", deed, names), job), job)
    assert [row.dump() for row in message.scores] == [
        {"configuration": "claude-code.opus", "rExec": "1.000", "rCollab": "0.000", "s": "1.000~", "j": "0.000"},
        {"configuration": "claude-code.sonnet", "rExec": "1.000", "rCollab": "1.000", "s": "1.000~", "j": "1.000"},
    ]
    assert "2 configurations solve 0.000 to 1.000 of their runs" in summary.reading.rq1
    assert (
        "0 of 12 pairs of runs turn from failure to success when a user takes part and 6 the other way round"
        in summary.reading.rq2
    )
    rows = list(csv.DictReader(io.StringIO(files["tables/main.csv"])))
    assert [(r["configuration"], r["r_collab"], r["delta_r_paired"], r["s"], r["j"], r["partial"]) for r in rows] == [
        ("claude-code.opus", "0.000", "-1.000", "", "", "True"), ("claude-code.sonnet", "1.000", "0.000", "", "", "True"),
    ]  # fmt: skip


def test_groups_of_another_judge_or_lock_are_refused(judged: SealedSweep, job: Any) -> None:
    key = next(item.key for item in judged.store.list(judged.root + "/judgements") if item.key.endswith("alpha/group-1.json"))
    path = Path(judged.directory) / key
    group = json.loads(path.read_bytes())
    path.unlink()
    path.write_text(json.dumps({**group, "lockDigest": "sha256:" + "0" * 64}))
    assert job("report", judged)[1].reason == "EvidenceSwapped"
    path.write_text("{}")
    assert job("report", judged)[1].reason == "EvidenceChanged"
    path.write_text(json.dumps({**group, "judgements": {}}))
    assert job("report", judged)[1].reason == "EvidenceMissing"
    path.write_text(json.dumps(group))
    path.with_name("group-2.json").write_text(json.dumps(group))  # an old list under a newer name
    assert job("report", judged)[1].reason == "EvidenceSwapped"


def test_names_that_are_no_group_files_are_left_alone(judged: SealedSweep, job: Any) -> None:
    key = next(item.key for item in judged.store.list(judged.root + "/judgements") if item.key.endswith("alpha/group-1.json"))
    path = Path(judged.directory) / key
    for name in ("group-\u00b2.json", "group-07.json", "group-9.json.bak", "group-x.json"):
        path.with_name(name).write_bytes(path.read_bytes())
    assert report(judged, job)[0].counts.groups_judged == 2


def test_a_judgement_that_is_gone_is_said(judged: SealedSweep, job: Any) -> None:
    key = next(item.key for item in judged.store.list(judged.root + "/judgements") if "alpha/repeat-1-" in item.key)
    (Path(judged.directory) / key).unlink()
    status, message = job("report", judged)
    assert (status, message.reason, key in (message.message or "")) == (0, "EvidenceMissing", True)


def test_a_judgement_of_another_attempt_is_refused(judged: SealedSweep, job: Any) -> None:
    key = next(item.key for item in judged.store.list(judged.root + "/judgements") if "alpha/repeat-1-" in item.key)
    path = Path(judged.directory) / key
    judgement = json.loads(path.read_bytes())
    path.unlink()
    for change in ({"attempt": 2}, {"repeat": 2}, {"task": "beta"}, {"configuration": "other.sonnet"}):
        path.write_text(json.dumps({**judgement, **change}))
        message = job("report", judged)[1]
        assert (message.reason, "judged another attempt" in (message.message or "")) == ("EvidenceSwapped", True)


def test_the_renewed_group_counts(judged: SealedSweep, job: Any) -> None:
    """The invalid repeat was run again: group-2.json stands beside group-1.json, and the report has another name."""
    before = job("report", judged)[1]
    judged.members[8] = write_trial(judged, 8, Deed(invalid_attempts=4))
    asked = judged.group_input(1).model_copy(update={"n": 2})
    assert job("judge", judged, REALCLI_GROUP=asked.model_dump_json(by_alias=True, exclude_none=True))[1].result == "Judged"
    summary, _, message = report(judged, job)
    assert (summary.state, summary.counts.valid, summary.trials[8].attempt) == ("Complete", 12, 5)
    assert message.uri != before.uri


def test_a_difference_that_reads_as_zero_has_no_sign() -> None:
    found = [number(Fraction(*parts)) for parts in ((1, 3000), (-1, 3000), (1, 3), (-1, 3), (0, 1))]
    assert [one and one.signed() for one in found] == ["0.000", "0.000", "+0.333", "-0.333", "0.000"]
    macro = "{% from 'macros.html' import signed %}{{ signed(x, '/x') }}"
    assert ">0.000<" in environment().from_string(macro).render(x=found[0])


def test_templates_escape_by_themselves() -> None:
    assert environment().from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"


@pytest.mark.parametrize("count", [1, 30, 200])
def test_as_many_rows_as_fit_the_message(reported: Reported, count: int) -> None:
    _, _, message = reported
    rows = [message.scores[0].model_copy(update={"configuration": f"claude-code.model-{n}"}) for n in range(count)]
    fitted = _fitting(message.model_copy(update={"scores": rows, "checksum": None}), MAX_REPORT_BYTES)
    assert len(fitted.encode(MAX_REPORT_BYTES)) <= MAX_REPORT_BYTES
    assert fitted.scores == rows[: len(fitted.scores)]
    left = count - len(fitted.scores)
    assert (left == 0) == (count <= 30)
    assert left == 0 or f"{left} score rows are in summary.json only" in (fitted.message or "")
