"""`realcli export` on sealed sweeps: which attempt counts, what is written, and what is refused without a trace."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from realcli.ledger.seals import WorkSeal
from realcli_judge.__main__ import main as judge
from tests.support.sealed_sweep import DEEDS, Deed, SealedSweep, write_sweep, write_trial

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    """Not judged."""
    return write_sweep(tmp_path_factory.mktemp("export") / "store")


@pytest.fixture
def sweep(sealed: SealedSweep, tmp_path: Path) -> SealedSweep:
    return sealed.copy(tmp_path / "store")


@pytest.fixture
def realcli(realcli: Run) -> Run:
    """`realcli export …`: (exit status, standard output, standard error)."""
    return partial(realcli, "export")


def at(sweep: SealedSweep, ordinal: int = 1, attempt: int = 1) -> Path:
    return sweep.directory / sweep.paths.attempt(ordinal, attempt).root


def judged(sweep: SealedSweep, tmp_path: Path) -> None:
    for group in (0, 1):
        judge(["judge", "--root", sweep.root, "--lock-digest", sweep.lock_digest], sweep.environ(group, tmp_path / "log"))


def load(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_one_attempt_is_one_file(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    out = tmp_path / "new" / "one.json"
    assert realcli("atif", at(sweep), "--out", out) == (0, f"1 trajectory in {out}\n", "")
    about = load(out)
    assert (about["schema_version"], about["session_id"]) == ("ATIF-v1.8", "first-00001-a1")
    realcli("atif", f"file://{at(sweep)}", "--out", tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == out.read_bytes()
    told = about["extra"]["realcli"]
    assert (told["reward"], told["valid"], told["workSeal"]) == ("1", True, sweep.members[1].work_seal)


def test_a_sweep_is_a_folder_of_its_sealed_attempts(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, said, _ = realcli("atif", sweep.directory, "--out", out)
    assert (status, said) == (0, f"11 trajectories in {out}\n")
    assert sorted(path.name for path in out.iterdir()) == [
        f"first-{ordinal:05d}-a{member.attempt}.json" for ordinal, member in sorted(sweep.members.items()) if member.work_seal
    ]


def test_an_attempt_alone_is_enough_for_atif_and_not_for_a_job(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(at(sweep), alone)
    assert realcli("atif", alone, "--out", tmp_path / "one.json")[0] == 0
    status, _, err = realcli("harbor", alone, "--out", tmp_path / "job")
    assert (status, "no sweep.json lies above" in err, "realcli export atif" in err) == (2, True, True)


@pytest.mark.parametrize("below", ["", "p/sweeps/audits/first-0f6a2b1c", "p/sweeps/audits/first-0f6a2b1c/trials"])
def test_a_job_has_of_each_trial_the_attempt_that_counts(sweep: SealedSweep, realcli: Run, tmp_path: Path, below: str) -> None:
    out = tmp_path / "night"
    status, said, err = realcli("harbor", sweep.directory / below, "--out", out)
    total = 11 if below.endswith("trials") else 12  # below the sweep nothing says that there should be more
    assert (status, said, err) == (0, f"11 of {total} trials in {out}\n", "")
    stats = load(out / "result.json")["stats"]
    assert (stats["n_completed_trials"], stats["n_pending_trials"], stats["n_retries"]) == (11, total - 11, 1)
    assert {key: value["reward_stats"]["reward"] for key, value in stats["evals"].items()} == {
        "claude-code__claude-sonnet-4-5__demo-1.0.0-collab": {
            "1": ["alpha__00000", "alpha__00004", "beta__00006"],
            "0": ["alpha__00002", "beta__00010"],
        },
        "claude-code__claude-sonnet-4-5__demo-1.0.0-exec": {
            "1": ["alpha__00001", "alpha__00003", "beta__00007"],
            "0": ["alpha__00005", "beta__00011"],
            "0.5": ["beta__00009"],
        },
    }
    assert load(out / "alpha__00004" / "result.json")["agent_result"]["metadata"]["realcli"]["attempt"] == 2


def test_equal_evidence_makes_equal_bytes(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        realcli("harbor", sweep.directory, "--out", tmp_path / folder / "job")
    files = [{p.relative_to(tmp_path / f): p.read_bytes() for p in (tmp_path / f).rglob("*") if p.is_file()} for f in ("a", "b")]
    assert files[0] == files[1]
    assert len(files[0]) > 40


KINDS: list[tuple[str, Deed, dict[str, Any] | None, tuple[str, bool, bool] | None]] = [
    ("passed", Deed(), {"reward": 1}, None),
    ("failed", Deed(reward="0"), {"reward": 0}, None),
    ("in between", Deed(reward="0.25"), {"reward": 0.25}, None),
    ("limit", Deed(reward="1", reason="TurnLimit"), {"reward": 1}, ("TurnLimit", False, True)),
    ("invalid", Deed(reason="ModelMismatch", seal_valid=False), None, ("ModelMismatch", False, False)),
    ("to be repeated", Deed(reason="StorageUnavailable", seal_valid=False), None, ("StorageUnavailable", True, False)),
]


def test_how_trials_ended(realcli: Run, tmp_path: Path) -> None:
    cells = [(task, "EXEC", repeat) for task in ("alpha", "beta") for repeat in (1, 2, 3)]
    sweep = write_sweep(tmp_path / "store", {**DEEDS, **{cell: row[1] for cell, row in zip(cells, KINDS, strict=True)}})
    for ordinal in (1 + 2 * index for index, row in enumerate(KINDS) if not row[1].seal_valid):
        shutil.rmtree(at(sweep, ordinal) / "verify-1")  # nothing verifies what does not count
    assert realcli("harbor", sweep.directory, "--out", tmp_path / "job")[0] == 0
    found = []
    for (task, _, _), ordinal in zip(cells, range(1, 12, 2), strict=True):
        folder = tmp_path / "job" / f"{task}__{ordinal:05d}"
        result = load(folder / "result.json")
        rewards, failed = result["verifier_result"], result["exception_info"]
        assert (folder / "verifier" / "reward.json").exists() == (rewards is not None)
        assert (folder / "exception.txt").exists() == (failed is not None)
        policy = failed and failed["policy_override"]
        end = failed and (failed["exception_type"], policy["should_retry"], policy["has_valid_reward"])
        found.append((rewards and rewards["rewards"], end))
    assert found == [row[2:] for row in KINDS]


def test_a_run_without_a_verdict_has_no_reward(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    (at(sweep) / "verify-1" / "seal.json").unlink()
    realcli("harbor", at(sweep), "--out", tmp_path / "job")
    result = load(tmp_path / "job" / "alpha__00001" / "result.json")
    assert (result["verifier_result"], result["exception_info"]["exception_type"]) == (None, "Unverified")
    assert "the work ended as Completed" in result["exception_info"]["exception_message"]
    assert result["exception_info"]["policy_override"] == {"should_retry": False, "should_grade": True, "has_valid_reward": False}


def test_the_operators_word_of_judged_trials(realcli: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What only it can decide: no verdict came, the control passed, so the agent broke the environment and gets 0."""
    sweep = write_sweep(tmp_path / "store")
    (at(sweep) / "verify-1" / "seal.json").unlink()
    sweep.members[1] = sweep.members[1].model_copy(
        update={"reward": "0", "reason": "AgentBrokeEnvironment", "seal": None, "verify_attempt": None}
    )
    judged(sweep, tmp_path)
    capsys.readouterr()
    status, said, err = realcli("harbor", sweep.directory / sweep.root, "--out", tmp_path / "job")
    assert (status, said) == (0, f"11 of 12 trials in {tmp_path / 'job'}\n")
    assert err == "left out: trial 00008: attempt 4 is not sealed; it ended as Invalid/ProviderUnavailable\n"
    result = load(tmp_path / "job" / "alpha__00001" / "result.json")
    assert result["verifier_result"]["rewards"] == {"reward": 0}
    assert result["exception_info"]["exception_type"] == "AgentBrokeEnvironment"
    trajectory = load(tmp_path / "job" / "alpha__00001" / "agent" / "trajectory.json")
    assert trajectory["extra"]["realcli"]["reason"] == "AgentBrokeEnvironment"


def test_a_later_attempt_that_runs_is_waited_for(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    running = at(sweep, 1, 2)
    shutil.copytree(at(sweep) / "ledger", running / "ledger")
    status, said, err = realcli("harbor", sweep.directory / sweep.root, "--out", tmp_path / "job")
    assert (status, said) == (0, f"10 of 12 trials in {tmp_path / 'job'}\n")
    assert err == "left out: trial 00001: attempt 2 is not sealed\n"
    assert load(tmp_path / "job" / "result.json")["finished_at"] is None
    status, _, err = realcli("atif", at(sweep).parent, "--out", tmp_path / "out")
    assert (status, "attempt-2: not sealed" in err) == (0, True)
    assert "nothing is sealed here yet" in realcli("atif", running, "--out", tmp_path / "running.json")[2]


def test_a_trial_in_the_cluster_is_held_against_its_anchors(
    sweep: SealedSweep, realcli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = sweep.members[1]
    status = {"ledgerURI": f"file://{at(sweep)}/ledger", "workSealDigest": member.work_seal, "sealDigest": member.seal}
    monkeypatch.setattr("realcli_cli.export.object_in_cluster", lambda *_: {"status": status})
    assert realcli("harbor", "first-00001", "--out", tmp_path / "job")[0] == 0
    status["workSealDigest"] = sweep.members[3].work_seal
    code, _, err = realcli("atif", "first-00001", "--out", tmp_path / "one.json")
    assert (code, "anchor" in err, (tmp_path / "one.json").exists()) == (2, True, False)
    status.clear()
    assert "first-00001 has no ledger yet" in realcli("atif", "first-00001", "--out", tmp_path / "one.json")[2]


@pytest.mark.parametrize("command", ["atif", "harbor"])
@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_nothing_is_overwritten(sweep: SealedSweep, realcli: Run, tmp_path: Path, command: str, there: str) -> None:
    out = tmp_path / "out.json"
    if there == "file":
        out.write_text("mine")
    elif there == "folder":
        out.mkdir()
    else:
        out.symlink_to(tmp_path / "nowhere")
    status, said, err = realcli(command, at(sweep), "--out", out)
    assert (status, said) == (2, "")
    assert err == f"realcli: --out {out} exists, and nothing is overwritten; name another or remove it first\n"
    if there == "file":
        assert out.read_text() == "mine"


def damaged(sweep: SealedSweep) -> None:
    (blob,) = list((at(sweep) / "ledger").iterdir())[:1]
    blob.write_bytes(blob.read_bytes().replace(b"alpha", b"gamma"))


def other_lock(sweep: SealedSweep) -> None:
    lock = sweep.directory / sweep.paths.lock
    lock.write_bytes(lock.read_bytes().replace(b"demo:1", b"demo:2"))


def second_sweep(sweep: SealedSweep) -> None:
    shutil.copytree(sweep.directory / "p", sweep.directory / "q")


def replaced_seal(sweep: SealedSweep) -> None:
    """A trial of its own, sound in itself, where a judged one lay."""
    shutil.rmtree(at(sweep))
    write_trial(sweep, 1, Deed(says="Otherwise."))


BROKEN: list[tuple[Callable[[SealedSweep], None], str, str]] = [
    (damaged, "trials/00001/attempt-1 is not what was sealed, so nothing was exported: changed: ledger/000001.jsonl",
     "`realcli ledger verify` names every damage"),
    (other_lock, "sweep.json: its digest is sha256:", "but the seals name the lock sha256:"),
    (second_sweep, "trials of 2 sweeps lie here", "name one of them"),
]  # fmt: skip


@pytest.mark.parametrize(("breaks", "what", "remedy"), BROKEN, ids=[row[0].__name__ for row in BROKEN])
def test_evidence_that_is_not_what_it_was(
    sweep: SealedSweep, realcli: Run, tmp_path: Path, breaks: Callable[[SealedSweep], None], what: str, remedy: str
) -> None:
    breaks(sweep)
    out = tmp_path / "outs" / "job"
    status, said, err = realcli("harbor", sweep.directory, "--out", out)
    assert (status, said) == (2, "")
    assert what in err
    assert remedy in err
    assert not list(tmp_path.glob("outs/*")), "nothing is left of it"


def test_an_attempt_that_was_replaced_after_it_was_judged(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    judged(sweep, tmp_path)
    replaced_seal(sweep)
    seal = WorkSeal.model_validate_json((at(sweep) / "work-seal.json").read_bytes())
    assert seal.intact()
    status, _, err = realcli("harbor", sweep.directory / sweep.root, "--out", tmp_path / "job")
    assert (status, "one of them was replaced" in err) == (2, True)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("./nowhere", "./nowhere is not a directory; expected a directory, s3://bucket/path or the name of an object"),
        ("s3://", "is not an S3 address"),
        ("ftp://x/y", "is not an S3 address; expected s3://bucket/path"),
        ("EMPTY", "no ledger lies here; expected an attempt"),
    ],
)
@pytest.mark.parametrize("command", ["atif", "harbor"])
def test_names_that_lead_nowhere(realcli: Run, tmp_path: Path, command: str, source: str, told: str) -> None:
    (tmp_path / "empty").mkdir()
    status, _, err = realcli(command, source.replace("EMPTY", str(tmp_path / "empty")), "--out", tmp_path / "out")
    assert (status, told in err, (tmp_path / "out").exists()) == (2, True, False), err


def test_one_file_holds_one_attempt(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    status, _, err = realcli("atif", sweep.directory, "--out", tmp_path / "all.json")
    assert (status, "11 sealed attempts lie here and a file holds one" in err) == (2, True)
    second_sweep(sweep)
    assert "name one sweep" in realcli("atif", sweep.directory, "--out", tmp_path / "all")[2]


def test_a_place_that_cannot_be_written(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for command, out in (("atif", "file/one.json"), ("atif", "file/all"), ("harbor", "file/job")):
        status, _, err = realcli(command, at(sweep), "--out", tmp_path / out)
        assert (status, "cannot be written: " in err) == (2, True)


MARKUP = "</script><script>alert(1)</script>\x1b]0;t\x07\x9b0m\u202e\u2066\x00\ufeff"
HOSTILE = f"{MARKUP}=cmd|'/C calc'!A0 ../../../../etc/passwd javascript:alert(2)"
HALF = "half a character: \ud800"


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from (key, *strings(one))
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, str):
        yield value


def test_hostile_texts_are_strings_of_json_and_name_no_file(realcli: Run, tmp_path: Path) -> None:
    """What an agent says, prints, calls and names, and what its tests say: read back as it was, nothing beside the folder."""
    posed = {HOSTILE: [HOSTILE, HALF, {"../x": "w" * 5000}], "__proto__": {"id": "../../up"}}
    told = {"results": {"tests": [{"name": HOSTILE, "status": "failed", "message": HOSTILE}]}}
    deed = Deed(says=HOSTILE + HALF, prints=HOSTILE, posed=posed, ctrf=json.dumps(told).encode())
    sweep = write_sweep(tmp_path / "store", {**DEEDS, ("alpha", "COLLAB", 1): deed})
    judged(sweep, tmp_path)
    before = {path for path in tmp_path.rglob("*")}
    assert realcli("atif", sweep.directory, "--out", tmp_path / "atif")[0] == 0
    assert realcli("harbor", sweep.directory, "--out", tmp_path / "job")[0] == 0
    made = sorted(path for path in {*tmp_path.rglob("*")} - before if path.is_file())
    assert all(re.fullmatch(r"(atif|job)(/[a-zA-Z0-9][a-zA-Z0-9._-]*)+", path.relative_to(tmp_path).as_posix()) for path in made)
    for path in (tmp_path / "atif" / "first-00000-a1.json", next((tmp_path / "job").glob("*00000*/agent/trajectory.json"))):
        data = path.read_bytes()
        assert all(char.isprintable() or char == "\n" for char in data.decode())  # a terminal obeys nothing of it
        found = list(strings(json.loads(data.decode())))
        assert [text for text in (HOSTILE, "../x", "w" * 5000, "__proto__", "../../up") if text not in found] == []
        assert any(text.startswith(f"{HOSTILE}half a character: ") for text in found)
        assert not any(0xD800 <= ord(char) < 0xE000 for text in found for char in text)
