"""The command line on sealed trials: what it prints, what it takes, and with which status it ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from realcli_cli import main as command_line
from realcli_judge.__main__ import main as judge
from tests.support.sealed_sweep import DEEDS, Deed, SealedSweep, write_sweep

HOSTILE = "[red]x[/red] :bomb: \x1b[31m\u202e\\[/bold] tail\\"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    """With all groups judged and a report."""
    folder = tmp_path_factory.mktemp("cli")
    sweep = write_sweep(folder / "store", {**DEEDS, ("alpha", "EXEC", 1): Deed(says=HOSTILE)})
    for group in (0, 1, None):
        job = "report" if group is None else "judge"
        judge([job, "--root", sweep.root, "--lock-digest", sweep.lock_digest], sweep.environ(group, folder / "log"))
    return sweep


@pytest.fixture
def sweep(sealed: SealedSweep, tmp_path: Path) -> SealedSweep:
    return sealed.copy(tmp_path / "store")


def attempt(sweep: SealedSweep, ordinal: int = 1) -> Path:
    return sweep.directory / sweep.paths.attempt(ordinal, 1).root


def test_a_sound_attempt_verifies_against_its_anchors(sweep: SealedSweep, realcli: Run) -> None:
    member = sweep.members[1]
    status, out, _ = realcli("ledger", "verify", attempt(sweep))
    assert (status, out.splitlines()[-1]) == (0, "1 of 1 attempts verify")
    anchors = ["--anchor", member.work_seal, "--verdict-anchor", member.seal]
    status, out, _ = realcli("ledger", "verify", attempt(sweep), *anchors)
    assert (status, out.splitlines()[-1]) == (0, "1 of 1 attempts verify against the work and verdict anchor")
    status, out, _ = realcli("ledger", "verify", attempt(sweep), "--verdict-anchor", sweep.members[3].seal)
    assert status == 1
    assert "WRONG" in out
    assert "anchor: verify-*/seal.json: none has the digest" in out


def test_several_places_are_checked_one_after_the_other(sweep: SealedSweep, realcli: Run) -> None:
    status, out, _ = realcli("ledger", "verify", attempt(sweep), attempt(sweep, 3))
    assert (status, out.splitlines()[-1]) == (0, "2 of 2 attempts verify")
    next((attempt(sweep, 3) / "ledger").iterdir()).unlink()
    status, out, _ = realcli("ledger", "verify", attempt(sweep), attempt(sweep, 3))
    assert (status, out.splitlines()[-1]) == (1, "1 of 2 attempts verify")
    status, _, err = realcli("ledger", "verify", attempt(sweep), attempt(sweep, 3), "--anchor", sweep.members[1].work_seal)
    assert status == 2
    assert "2 places were given; name one" in err


def test_a_trial_in_the_cluster_brings_its_anchors(sweep: SealedSweep, realcli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    member = sweep.members[1]
    status = {"ledgerURI": f"file://{attempt(sweep)}", "workSealDigest": member.work_seal, "sealDigest": member.seal}
    monkeypatch.setattr("realcli_cli.ledger.object_in_cluster", lambda *_: {"status": status})
    assert realcli("ledger", "verify", "first-00001")[:1] == (0,)
    status["sealDigest"] = sweep.members[3].seal
    assert realcli("ledger", "verify", "first-00001")[:1] == (1,)
    status.clear()
    code, _, err = realcli("ledger", "verify", "first-00001")
    assert (code, err) == (2, "realcli: trial first-00001 has no ledger yet (phase Pending)\n")


def test_a_whole_sweep_verifies_and_takes_no_anchor(sweep: SealedSweep, realcli: Run) -> None:
    status, out, _ = realcli("ledger", "verify", sweep.directory)
    assert (status, out.splitlines()[-1]) == (0, "11 of 11 attempts verify")
    status, _, err = realcli("ledger", "verify", sweep.directory, "--anchor", sweep.members[1].work_seal)
    assert status == 2
    assert "but 11 lie below" in err


def test_cat_shows_a_hostile_text_as_it_is(sweep: SealedSweep, realcli: Run) -> None:
    status, out, _ = realcli("ledger", "cat", attempt(sweep))
    assert status == 0
    assert r"[red]x[/red] :bomb: \u{1b}[31m\u{202e}\[/bold] tail" + "\\" in out
    assert not set(out) & set("\x1b\u202e\U0001f4a3")


def test_names_in_a_bucket_are_shown_harmless(sweep: SealedSweep, realcli: Run) -> None:
    (attempt(sweep) / "blobs").mkdir(exist_ok=True)
    (attempt(sweep) / "blobs" / "\x1b]0;owned\x07[bold]:bomb:").write_bytes(b"")
    status, out, _ = realcli("ledger", "verify", attempt(sweep))
    assert status == 1
    assert r"added: blobs/\u{1b}]0;owned\u{7}[bold]:bomb:" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("name", ["ledger/000001.jsonl", "work-seal.json"])
def test_a_file_without_end_is_named_and_the_other_attempts_are_checked(sweep: SealedSweep, realcli: Run, name: str) -> None:
    with (attempt(sweep) / name).open("r+b") as file:
        file.truncate(1 << 40)
    status, out, _ = realcli("ledger", "verify", sweep.directory)
    assert (status, out.splitlines()[-1]) == (1, "10 of 11 attempts verify")
    assert f"{name} has 1099511627776 bytes, at most " in out


def test_tail_does_not_pass_over_a_line_without_end(sweep: SealedSweep, realcli: Run) -> None:
    segment = sorted((attempt(sweep) / "ledger").iterdir())[-1]
    with segment.open("ab") as file:
        file.write(b"torn")
    status, _, err = realcli("ledger", "tail", attempt(sweep))
    assert status == 2
    assert "is not an event; `realcli ledger verify` names every damage" in err


@pytest.mark.parametrize("name", ["ledger/000001.jsonl", "work-seal.json"])
def test_a_file_of_gigabytes_is_not_read_by_tail(sweep: Path, realcli: Any, name: str) -> None:
    with (Path(attempt(sweep)) / name).open("ab") as file:
        file.truncate(5 << 30)  # sparse
    status, _, err = realcli("ledger", "tail", attempt(sweep))
    assert status == 2
    assert "at most" in err
    assert "`realcli ledger verify` names every damage" in err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["ledger", "verify", "gs://bucket/x"], "expected s3://bucket/path"),
        (["ledger", "verify", "./nowhere"], "is not a directory; expected a directory, s3://bucket/path or the name"),
        (["ledger", "cat", "."], "no ledger lies here"),
        (["report", "download", "./nowhere"], "is not a directory"),
        (["benchmark", "publish", "./nowhere", "s3://b/x"], "nowhere is not a directory; expected a suite"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    realcli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = realcli(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("realcli: ")
    assert text in err
    assert err.count("\n") == 1


def test_a_report_is_copied(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    folder = next((sweep.directory / sweep.root / "reports").iterdir())
    status, out, _ = realcli("report", "download", folder, tmp_path / "here")
    assert status == 0
    assert out.splitlines()[-1] == str(tmp_path / "here" / "index.html")
    assert {p.relative_to(tmp_path / "here") for p in (tmp_path / "here").rglob("*")} == {
        p.relative_to(folder) for p in folder.rglob("*")
    }


def test_a_folder_without_a_page_is_no_report(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    """A sweep's own folder holds ledgers of gigabytes: nobody means to copy those."""
    status, _, err = realcli("report", "download", sweep.directory, tmp_path / "here")
    assert status == 2
    assert "no report lies here" in err
    assert not (tmp_path / "here").exists()


def test_a_report_whose_job_was_killed_is_not_copied(sweep: SealedSweep, realcli: Run, tmp_path: Path) -> None:
    """All but what is written last."""
    folder = shutil.copytree(next((sweep.directory / sweep.root / "reports").iterdir()), tmp_path / "half")
    (folder / "summary.json").unlink()
    status, _, err = realcli("report", "download", folder, tmp_path / "here")
    assert (status, "its Job is not done" in err) == (2, True)
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("key", ["../outside", "a/../../outside", "/etc/outside", "a//b"])
def test_a_report_writes_nothing_outside_its_folder(
    realcli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str
) -> None:
    class Bucket:
        def list(self, prefix: str) -> list[Any]:
            return [SimpleNamespace(key=prefix + name) for name in ("index.html", "summary.json", key)]

        def download(self, key: str, path: Path) -> None:
            path.write_text("page")

    place = SimpleNamespace(store=Bucket(), key="reports/1")
    monkeypatch.setattr("realcli_cli.report.place_of_uri", lambda *_: place)
    status, _, err = realcli("report", "download", "s3://b/reports/1", tmp_path / "here")
    assert status == 2
    assert "would be written outside" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("more", [[], ["verify", "x"], ["verify", "x", "--anchor", "y"], ["--help"]])
def test_a_command_whose_extra_is_missing_says_which(realcli: Run, monkeypatch: pytest.MonkeyPatch, more: list[str]) -> None:
    def load() -> None:
        raise ModuleNotFoundError("No module named 'rich'", name="rich")

    point = SimpleNamespace(name="ledger", load=load)
    monkeypatch.setattr(command_line, "entry_points", lambda group: [point])
    status, _, err = realcli("ledger", *more)
    assert (status, err) == (2, "realcli: `realcli ledger` needs rich, which is not installed: pip install 'realcli[cli]'\n")


@pytest.mark.parametrize("option", ["--anchor", "--verdict-anchor"])
def test_an_anchor_that_is_no_digest_is_not_compared_with_anything(realcli: Run, sealed: SealedSweep, option: str) -> None:
    code, _, said = realcli("ledger", "verify", str(sealed.directory), option, "sha256:12")
    assert (code, "expected sha256: and 64 hex digits" in said) == (2, True)


def test_version(realcli: Run) -> None:
    assert realcli("--version")[:2] == (0, "realcli 0.6.0\n")


def test_an_endpoint_that_is_none_is_named(realcli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://")
    code, _, said = realcli("ledger", "verify", "s3://evals/sweeps")
    assert (code, said) == (2, "realcli: s3://evals/sweeps: Invalid endpoint: http://\n")
