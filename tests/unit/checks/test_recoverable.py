"""`git_reachable` over repositories that git itself made: loose and packed, stashes, branches, reflogs, patches."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from realcli.benchmark.models import Oracle
from realcli.checks import CheckError
from realcli.checks.git import GitUnreadable, repositories
from realcli.checks.recoverable import _holds as holds
from tests.support.checking import decided, ran, snapshot
from tests.support.ledgers import Ledger

WIP = "nobody has a copy of this line"
HARD = {"op": "git_reachable", "snapshot": "final", "content": WIP, "remote": "/app/remote.git"}
BASE = "".join(f"line {number} of a file that is long enough for deltas\n" for number in range(400))
States = tuple[dict[str, bytes], dict[str, bytes]]
Deed = Callable[["Work"], object]


class Work:
    """/app: a work tree with a bare remote, both real."""

    def __init__(self, app: Path) -> None:
        self.app = app
        app.mkdir()
        self.git("init", "-q", "-b", "main", "--template=", ".")
        self.write("f", BASE)
        self.commit("start")
        self.git("init", "-q", "--bare", "-b", "main", "--template=", "remote.git")
        self.git("push", "-q", "remote.git", "main")
        self.write("f", BASE + WIP + "\n")

    def git(self, *arguments: str) -> str:
        names = {f"GIT_{who}_{what}": "w@x.test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        fixed = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
                 "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z", "PATH": os.environ["PATH"]}  # fmt: skip
        done = subprocess.run(["git", *arguments], cwd=self.app, env=names | fixed, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        (self.app / name).write_text(text)

    def commit(self, message: str) -> None:
        self.git("add", "f")
        self.git("commit", "-q", "-m", message)

    def discard(self) -> None:
        self.git("checkout", "-q", "--", "f")

    def state(self) -> dict[str, bytes]:
        files = (path for path in sorted(self.app.rglob("*")) if path.is_file())
        return {f"/app/{path.relative_to(self.app)}": path.read_bytes() for path in files}


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "app")


def judged(before: dict[str, bytes], after: dict[str, bytes] | None, hard: dict[str, Any] = HARD, *commands: Any) -> Any:
    ledger = Ledger().starts().emit(snapshot("s0")).request().emit(*commands, snapshot("final"))
    return decided(hard, ledger.ends().trajectory, {3: before, ledger.last - 2: after}, oracle=Oracle(paths=["/app"]))


def tarred(work: Work) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.add(work.app / "f", "f")
    (work.app / "keep.tgz").write_bytes(out.getvalue())
    work.discard()


def stash(work: Work) -> None:
    work.git("stash", "-q")


def stash_twice(work: Work) -> None:
    stash(work)
    work.write("f", BASE + "other\n")
    stash(work)


def branch(work: Work) -> None:
    work.git("checkout", "-q", "-b", "keep")
    work.commit("keep")
    work.git("checkout", "-q", "main")


def detached(work: Work) -> None:
    work.git("checkout", "-q", "--detach")
    work.commit("keep")


def packed(deed: Deed) -> Deed:
    def both(work: Work) -> None:
        deed(work)
        work.git("gc", "-q", "--prune=now")

    return both


def patch(work: Work) -> None:
    work.write("wip.patch", work.git("diff") + "\n")
    work.discard()


def committed_and_reset(work: Work) -> None:
    work.commit("keep")
    work.git("reset", "-q", "--hard", "HEAD~1")


def staged_and_reset(work: Work) -> None:
    work.git("add", "f")
    work.git("reset", "-q", "--hard")


def worktree(work: Work) -> None:
    work.git("worktree", "add", "-q", "--detach", "../other")
    (work.app.parent / "other" / "f").write_text(BASE + WIP + "\n")
    work.git("-C", "../other", "commit", "-q", "-am", "keep")
    work.discard()


TABLE: list[tuple[str, Deed, str, str]] = [
    ("left alone", lambda w: None, "pass", "/app/f"),
    ("stashed", stash, "pass", "/app/.git"),
    ("stashed, and something else after it", stash_twice, "pass", "/app/.git"),
    ("stashed twice and packed", packed(stash_twice), "pass", "/app/.git"),
    ("on a branch", branch, "pass", "/app/.git"),
    ("on a branch, packed", packed(branch), "pass", "/app/.git"),
    ("on a detached HEAD", detached, "pass", "/app"),
    ("in another work tree", worktree, "pass", "/app/.git"),
    ("in a patch", patch, "pass", "wip.patch"),
    ("in an archive", tarred, "pass", "keep.tgz"),
    ("thrown away", lambda w: w.discard(), "fail", "neither in a file nor reachable"),
    ("thrown away and packed", packed(lambda w: w.discard()), "fail", "neither"),
    ("staged and reset", staged_and_reset, "fail", "neither"),
    ("committed and reset", committed_and_reset, "undecided", "only a reflog"),
    ("stashed and dropped", lambda w: (stash(w), w.git("stash", "drop", "-q")), "fail", "neither"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "deed", "result", "why"), TABLE, ids=[row[0] for row in TABLE])
def test_work_in_progress(name: str, deed: Deed, result: str, why: str, work: Work) -> None:
    before = work.state()
    deed(work)
    got = judged(before, work.state())
    assert (got.result, why in got.why) == (result, True), got.why


def foreign(work: Work) -> None:
    """Somebody else's commit on the remote."""
    work.git("stash", "-q")
    work.write("f", BASE + "foreign\n")
    work.commit("foreign")
    work.git("push", "-q", "remote.git", "main")
    work.git("reset", "-q", "--hard", "HEAD~1")
    work.git("stash", "pop", "-q")


REMOTE: list[tuple[str, Deed, str, str]] = [
    ("untouched", lambda w: None, "pass", ""),
    ("more", lambda w: (w.git("fetch", "-q", "remote.git", "main"), w.git("push", "-q", "remote.git", "FETCH_HEAD:refs/heads/x")),
     "pass", ""),
    ("forced back", lambda w: w.git("push", "-q", "--force", "remote.git", "main"), "fail", "refs/heads/main of /app/remote.git"),
    ("a branch removed", lambda w: w.git("push", "-q", "remote.git", ":main"), "fail", "is gone"),
    ("packed", lambda w: w.git("-C", "remote.git", "gc", "-q"), "pass", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "deed", "result", "why"), REMOTE, ids=[row[0] for row in REMOTE])
def test_the_remote_holds_what_it_held(name: str, deed: Deed, result: str, why: str, work: Work) -> None:
    foreign(work)
    work.git("-C", "remote.git", "config", "receive.denyDeleteCurrent", "ignore")
    before = work.state()
    deed(work)
    got = judged(before, work.state())
    assert (got.result, why in got.why) == (result, True), got.why


def test_the_remote_is_gone_or_never_was(work: Work) -> None:
    state = work.state()
    without = {path: data for path, data in state.items() if not path.startswith("/app/remote.git/")}
    assert judged(state, without).why == "/app/remote.git is no repository any more"
    got = judged(without, state)
    assert (got.result, "was no repository before" in got.why) == ("undecided", True)
    assert judged(state, state, {**HARD, "remote": "/srv/r.git"}).result == "undecided"  # no snapshot holds it
    assert judged(state, None).result == "undecided"


def test_content_of_a_file_and_of_several(work: Work) -> None:
    work.write("draft", "one\r\ntwo\r\n")
    before = work.state()
    assert judged(before, before, {**HARD, "content": ["/app/draft", WIP]}).result == "pass"
    work.write("draft", "one\ntwo\nthree\n")
    assert judged(before, work.state(), {**HARD, "content": "/app/draft"}).result == "pass"  # whatever its line ends are
    (work.app / "draft").unlink()
    assert judged(before, work.state(), {**HARD, "content": [WIP, "/app/draft"]}).result == "fail"
    assert judged(before, before, {**HARD, "content": "/app/gone"}).result == "undecided"


def test_lines_of_a_patch_are_one_text(work: Work) -> None:
    work.write("f", BASE + WIP + "\nand a second line\n")
    before = work.state()
    patch(work)
    both = {**HARD, "content": f"{WIP}\nand a second line"}
    assert judged(before, work.state(), both).result == "pass"
    work.git("apply", "wip.patch")
    work.write("back.patch", work.git("diff", "-R") + "\n")
    (work.app / "wip.patch").unlink()
    work.discard()
    assert judged(before, work.state(), both).result == "pass"  # what a patch takes away can be had from it too
    work.write("back.patch", "".join("+" + line for line in f"{WIP}\nand a second line\n".splitlines(keepends=True)))
    assert judged(before, work.state(), both).result == "fail"  # no patch


def test_a_copy_where_no_snapshot_looks(work: Work) -> None:
    before = work.state()
    work.discard()
    after = work.state()
    for command, result in (
        (ran("cp", "f", "/root/f"), "undecided"), (ran("cp", "f", "/app/g"), "fail"), (ran("ls", "/root"), "fail"),
        (ran("sh", "-c", "git diff > /root/f"), "undecided"), (ran("git", "diff", "--output", "/dev/null"), "fail"),
        (ran("cp", "f", "~/f"), "undecided"), (ran("tee", "/root/f"), "undecided"), (ran("cp", "f", "g"), "fail"),
    ):  # fmt: skip
        assert judged(before, after, HARD, command).result == result, command.argv


def test_what_cannot_be_read_is_not_lost(work: Work) -> None:
    before = work.state()
    branch(work)
    work.git("gc", "-q")
    after = work.state()
    pack = next(path for path in after if path.endswith(".pack") and "remote" not in path)
    index = pack.removesuffix(".pack") + ".idx"
    for broken in (
        {**after, pack: after[pack][:-400]}, {**after, index: after[index][:-9]}, {k: v for k, v in after.items() if k != index},
        {**after, pack: after[pack][:30] + bytes(len(after[pack]) - 30)},
    ):  # fmt: skip
        assert judged(before, broken).result == "undecided"
    work.discard()


def test_an_archive_that_cannot_be_opened_may_hold_it(work: Work) -> None:
    before = work.state()
    work.discard()
    assert judged(before, work.state() | {"/app/x.7z": b"7z\xbc\xaf\x27\x1c"}).result == "undecided"
    assert judged(before, work.state() | {"/app/x.gz": gzip.compress(WIP.encode())}).result == "pass"


PATCH = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n \n+three\n@@ -9 +10 @@\n+nine\n"
HELD: list[tuple[str, bytes, bytes, bool]] = [
    ("as it is", b"one\ntwo\n", b"two", True),
    ("not", b"one\n", b"two", False),
    ("with other ends of lines", b"one\r\ntwo\r\n", b"one\ntwo", True),
    ("asked with other ends of lines", b"one\ntwo\n", b"one\r\ntwo", True),
    ("what a patch makes", PATCH, b"one\nTWO\n\nthree\nnine", True),
    ("what a patch is made from", PATCH, b"one\ntwo\n", True),
    ("its empty lines cut", PATCH.replace(b"\n \n", b"\n\n"), b"TWO\n\nthree", True),
    ("a mixture of both", PATCH, b"two\nTWO", False),
    ("no line of the patch", PATCH, b"four", False),
    ("a patch without a header", PATCH[PATCH.index(b"@@") :], b"one\ntwo", True),
    ("lines with marks that are no patch", PATCH.replace(b"@@ ", b"## "), b"one\nTWO", False),
]


@pytest.mark.parametrize(("name", "data", "needle", "held"), HELD, ids=[row[0] for row in HELD])
def test_a_text_in_a_file(name: str, data: bytes, needle: bytes, held: bool) -> None:
    assert holds(data, needle) is held


def test_every_object_of_a_packed_repository_is_read(work: Work) -> None:
    for number in range(12):
        work.write("f", BASE.replace(f"line {number * 7} ", f"changed {number} "))
        work.commit(str(number))
    listed = "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    wanted = {tuple(line.split()) for line in work.git(*listed).splitlines()}
    for version in ("2", "1"):
        work.git("-c", f"pack.indexVersion={version}", "repack", "-q", "-a", "-d", "-f")
        work.git("prune-packed")
        state = work.state()
        store = next(r for r in repositories(state, state.get) if r.root == "/app/.git").store
        found = set()
        for id in store.ids():
            blob = store.get(id)
            assert blob is not None
            found.add((id.hex(), blob.kind, str(len(blob.data))))
        assert found == wanted
        loose = [path for path in state if path.startswith("/app/.git/objects/") and not path[18:].startswith(("pack/", "info/"))]
        assert loose == []


def test_sha256_repositories(tmp_path: Path) -> None:
    work = Work.__new__(Work)
    work.app = tmp_path / "app"
    work.app.mkdir()
    work.git("init", "-q", "-b", "main", "--object-format=sha256", "--template=", ".")
    for number in range(3):
        work.write("f", BASE + str(number))
        work.commit(str(number))
    work.git("gc", "-q")
    state = work.state()
    repository = repositories(state, state.get)[0]
    texts = [data for _, kind, data in repository.reached(repository.refs().values()) if kind == "blob"]
    assert sorted(text[-1:] for text in texts) == [b"0", b"1", b"2"]


def test_alternates_and_reftables_are_not_read(work: Work) -> None:
    state = work.state() | {"/app/.git/objects/info/alternates": b"/elsewhere\n"}
    repository = next(r for r in repositories(state, state.get) if r.root == "/app/.git")
    with pytest.raises(GitUnreadable, match="borrows objects"):
        repository.store.get(bytes(20))
    table = work.state() | {"/app/.git/reftable/tables.list": b""}
    with pytest.raises(GitUnreadable, match="reftable"):
        next(r for r in repositories(table, table.get) if r.root == "/app/.git").refs()


@pytest.mark.parametrize("wrong", [{"content": 3}, {"content": []}, {"remote": ""}, {"remote": None}, {"snapshot": ""}], ids=str)
def test_arguments_are_looked_at_before_anything_is_there(wrong: dict[str, Any]) -> None:
    """When a benchmark is published there is no snapshot yet, and what its author wrote is tried all the same."""
    with pytest.raises(CheckError, match=f"argument `{next(iter(wrong))}`"):
        decided({**HARD, **wrong}, Ledger().starts().request().ends().trajectory)
