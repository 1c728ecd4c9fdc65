"""Files and options that are not what a command expects: exit status 2, one clear line, and nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from realcli_judge.__main__ import main as judge
from realcli_judge.inputs import Inputs
from realcli_judge.reviewing import judged_checks
from tests.support.sealed_sweep import SealedSweep, write_sweep

Run = Callable[..., tuple[int, str, str]]
LONG = "x" * 5_000
DEEP = b"[" * 100_000
FEW = ("--only", "u.plan.replan")
MODEL = ("judge", "calibrate", "--judge", "m", "--api", "chat", "--url", "http://127.0.0.1:9/v1", *FEW)
EMULATED = ("judge", "calibrate", "--judge", "emulated:oracle", *FEW)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    """Judged by program, with a report."""
    folder = tmp_path_factory.mktemp("bad-input")
    sweep = write_sweep(folder / "store")
    for group in (0, 1, None):
        job = "report" if group is None else "judge"
        judge([job, "--root", sweep.root, "--lock-digest", sweep.lock_digest], sweep.environ(group, folder / "log"))
    return sweep


@pytest.fixture
def here(sealed: SealedSweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one bad file of each kind; `sweep` and `report` lead to good ones."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    files = {
        "words": b"hi",
        "empty": b"",
        "latin": b"\xff\xfe",
        "deep": DEEP,
        "deep.yaml": DEEP,
        "two.yaml": b"a: 1\n---\nb: 2\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    sweep = sealed.directory / sealed.root
    (tmp_path / "sweep").symlink_to(sweep)
    (tmp_path / "report").symlink_to(next((sweep / "reports").iterdir()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REALCLI_KEY_JUDGE", "key")
    return tmp_path


ROWS: list[tuple[tuple[str, ...], str]] = [
    (("score", LONG), "File name too long"),
    (("verify-report", LONG), "File name too long"),
    (("compare", LONG, "report"), "File name too long"),
    (("compare", "none.json", "report"), "none.json: there is no such file"),
    (("compare", "a/none.json", "report"), "a/none.json: there is no such file"),
    (("compare", "s3://", "report"), "'s3://' is not an S3 address"),
    (("compare", "-", "report"), "'-' is neither a directory nor a name that an object in the cluster can have"),
    (("compare", "", "report"), "an empty text names nothing"),
    (("report", "download", LONG, "new"), "File name too long"),
    (("report", "download", "\x1b[31m", "new"), "is neither a directory nor a name"),
    (("report", "download", "report", "words"), "words exists, and nothing is overwritten"),
    (("report", "download", "report", "folder"), "folder exists, and nothing is overwritten"),
    (("report", "download", "report", "full"), "full exists, and nothing is overwritten"),
    (("report", "download", "report", "words/below"), "Not a directory"),
    (("report", "download", "report", LONG), "File name too long"),
    (("export", "atif", LONG, "--out", "new"), "File name too long"),
    (("export", "atif", "sweep", "--out", LONG), "File name too long"),
    (("export", "harbor", "sweep", "--out", "words/below"), "Not a directory"),
    (("export", "harbor", "", "--out", "new"), "an empty text names nothing"),
    (("judge", "review", "sweep", "--out", "folder"), "--out folder exists, and nothing is overwritten"),
    (("judge", "review", "sweep", "--out", "words"), "--out words exists, and nothing is overwritten"),
    (("judge", "review", "sweep", "--out", "words/below"), "words/below cannot be written"),
    (("judge", "review", "sweep", "--out", LONG), "File name too long"),
    (("judge", "review", "sweep", "--store"), "--store keeps the labels of a file: name it with --labels"),
    (("judge", "review", "sweep", "--labels", "none"), "none: No such file or directory; expected the file that the page saved"),
    (("judge", "review", "sweep", "--labels", "folder"), "folder: Is a directory"),
    (("judge", "review", "sweep", "--labels", "words"), "words is no file of labels: Invalid JSON"),
    (("judge", "review", "sweep", "--labels", "empty"), "empty is no file of labels: Invalid JSON"),
    (("judge", "review", "sweep", "--labels", "latin"), "latin is no file of labels: Invalid JSON"),
    (("judge", "review", "sweep", "--labels", "deep"), "deep is no file of labels: Invalid JSON: recursion limit"),
    ((*MODEL, "--record", "words"), "words is no directory that can be recorded into: File exists"),
    ((*MODEL, "--record", LONG), "can be recorded into: File name too long"),
    ((*MODEL, "--replay", "words"), "words is no directory of recordings"),
    ((*EMULATED, "--replay", "folder"), "--replay: an emulated judge answers by itself; leave it out"),
    ((*EMULATED, "--temperature", "0", "--record", "new"), "--temperature, --record: an emulated judge answers by itself"),
    (("judge", "calibrate", "--sweep", "deep.yaml", "--api", "chat", "--votes", "1"), "--api, --votes: the sweep says its own"),
    (("judge", "calibrate", "--sweep", "deep.yaml"), "deep.yaml is no YAML: maximum recursion depth exceeded"),
    (("judge", "calibrate", "--sweep", "two.yaml"), "two.yaml: 0 of its 2 documents are a BenchmarkSweep; expected one"),
    (("judge", "calibrate", "--sweep", "latin"), "latin is no BenchmarkSweep: Input should be a valid dictionary"),
    (("judge", "calibrate", "--sweep", "words"), "words is no BenchmarkSweep: Input should be a valid dictionary"),
    ((*MODEL[:-2], "--store", "words"), "--store words: it is a file; expected a directory or s3://bucket/path"),
    ((*MODEL[:-2], "--store", ""), "--store : an empty text names nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "text"), ROWS, ids=[" ".join(row[0])[:60] for row in ROWS])
def test_a_clear_line_and_nothing_written(here: Path, realcli: Run, arguments: tuple[str, ...], text: str) -> None:
    before = sorted((path, path.read_bytes() if path.is_file() else b"") for path in here.rglob("*"))
    status, out, err = realcli(*arguments)
    assert (status, out) == (2, "")
    assert text in err
    assert err.startswith("realcli: ")
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert sorted((path, path.read_bytes() if path.is_file() else b"") for path in here.rglob("*")) == before


def test_a_page_of_checks_in_a_folder_that_is_not_there_yet(here: Path, realcli: Run) -> None:
    status, out, _ = realcli("judge", "review", "sweep", "--out", here / "new" / "page.html")
    assert status == 0
    assert out.splitlines()[-1] == str(here / "new" / "page.html")
    assert (here / "new" / "page.html").read_text().endswith("</html>\n")


def _labels(sealed: SealedSweep, **changed: Any) -> dict[str, Any]:
    inputs = Inputs(sealed.config, sealed.store, sealed.root, sealed.lock, sealed.plan)
    rows = [{"workSeal": one.work_seal, "check": one.id, "label": "1"} for one in judged_checks(inputs)]
    judge = inputs.judge.content_digest()
    return {"schema": "realcli.dev/labels/1", "judge": judge, "rater": "Eve", "seed": "1", "labels": rows, **changed}


def test_a_check_that_is_labelled_twice_would_count_twice(sealed: SealedSweep, here: Path, realcli: Run) -> None:
    rows = _labels(sealed)["labels"]
    (here / "twice.json").write_text(json.dumps(_labels(sealed, labels=[*rows, {**rows[0], "label": "0"}])))
    status, _, err = realcli("judge", "review", "sweep", "--labels", "twice.json")
    assert status == 2
    assert "is labelled twice; expected every check once" in err
    (here / "none.json").write_text(json.dumps(_labels(sealed, labels=[])))
    assert "labels: List should have at least 1 item" in realcli("judge", "review", "sweep", "--labels", "none.json")[2]
    (here / "once.json").write_text(json.dumps(_labels(sealed)))
    status, out, _ = realcli("judge", "review", "sweep", "--labels", "once.json")
    assert (status, str(len(rows)) in out) == (0, True)


def test_what_kubectl_logs_beside_its_answer_is_left_out(here: Path, realcli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl = here / "kubectl"
    kubectl.write_text("#!/bin/sh\necho 'E1130 20:42:27.873 2735 memcache.go:265] \"Unhandled\"' >&2\necho refused >&2\nexit 1\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{here}:/usr/bin:/bin")
    status, _, err = realcli("compare", "nightly", "report")
    assert (status, err) == (2, "realcli: benchmarksweeps nightly in the current namespace (-n names another): refused\n")
    assert realcli("compare", "latest-good:a=b", "report")[2] == "realcli: latest-good:a=b: refused\n"
