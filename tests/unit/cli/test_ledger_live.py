"""`ledger tail` of a trial that runs, `ledger recover` of one that waits for storage, and what a hostile text does: nothing."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from realcli.ledger.events import AgentMessage
from realcli.ledger.follow import Follower
from realcli.ledger.spool import SPOOL_FILE, Spool
from realcli.storage import StorageUnavailable
from realcli.storage.local import LocalStore
from realcli_cli import ledger, ledger_tail
from realcli_cli.main import UserError
from realcli_session.phases.attempt import Attempt
from tests.support.attempts import finish, make_attempt, open_ledger, tell

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m \x9b31m \u202ereversed\nline two\r\rover \x08\x08 [bold]x[/bold] :bomb:\u2028end"
)


class Down(LocalStore):
    def put_once(self, key: str, data: bytes | Path) -> None:
        raise StorageUnavailable("down")


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(ledger.app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 2, result.stdout, str(result.exception) if isinstance(result.exception, UserError) else repr(result.exception)
    return result.exit_code, result.stdout, result.stderr


class Live:
    """A trial in a thread of its own: `step()` lets it write and upload the next piece."""

    def __init__(self, folder: Path) -> None:
        self.store = LocalStore(folder / "store")
        self.attempt = make_attempt(folder / "spool", self.store)
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self._begin())

    async def _begin(self) -> None:
        open_ledger(self.attempt)
        await self._up()

    async def _up(self) -> None:
        self.attempt.writer.roll()
        await self.attempt.uploader.drain(0)

    def say(self, text: str) -> None:
        self.attempt.writer.emit("agent", AgentMessage(text=text))
        self.loop.run_until_complete(self._up())

    def end(self) -> None:
        async def go() -> None:
            tell(self.attempt, random.Random(1), turns=2)
            await finish(self.attempt, self.store, verify=False)

        self.loop.run_until_complete(go())


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    made = Live(tmp_path)
    yield made
    made.attempt.writer.close()
    made.loop.close()


def test_tail_shows_what_comes_and_ends_with_the_seal(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_tail, "POLL_SECONDS", 0.01)
    seen: list[str] = []
    told = threading.Event()

    def show(event: Any) -> None:
        seen.append(event.kind)
        told.set()

    tail = ledger_tail.Tail(live.store, live.attempt.trial.paths.root, show, pytest.fail, poll=0.01)
    ends: list[str] = []
    thread = threading.Thread(target=lambda: ends.append(tail.follow()))
    thread.start()
    assert told.wait(30)
    for number in range(3):
        told.clear()
        live.say(f"message {number}")
        assert told.wait(30), "it came while the trial runs"
    live.end()
    thread.join(60)
    (end,) = ends
    assert end.startswith("sealed: Completed, ")
    assert f"{len(seen)} events" in end
    assert seen[:4] == ["ledger_open", "agent_message", "agent_message", "agent_message"]
    marks = list(live.store.list(live.attempt.trial.paths.following))
    assert len(marks) == 1, "it asked the session to hurry"


def test_tail_of_a_sealed_trial_prints_it_and_asks_for_nothing(live: Live, tmp_path: Path) -> None:
    live.end()
    code, out, _ = run("tail", tmp_path / "store")
    assert code == 0
    assert "The whole specification." in out
    assert out.splitlines()[-1].startswith("sealed: Completed")
    assert not list(live.store.list(live.attempt.trial.paths.following))


def test_tail_ends_when_the_trial_goes_on_without_a_seal(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = {"phase": "Working", "ledgerURI": f"file://{tmp_path}/store/{live.attempt.trial.paths.root}/ledger"}
    answers = iter([status, {**status, "phase": "Invalid", "reason": "NodeLost"}])
    monkeypatch.setattr(ledger, "object_in_cluster", lambda *_: {"status": next(answers)})
    monkeypatch.setattr(ledger_tail, "ASK_SECONDS", 0.0)
    code, out, _ = run("tail", "first-00001")
    assert (code, out.splitlines()[-1]) == (0, "the trial ended without a seal here: Invalid, NodeLost")


def test_the_session_hurries_while_somebody_follows(tmp_path: Path) -> None:
    store, now = LocalStore(tmp_path), [0.0]
    follower = Follower(store, "s/following/00001/attempt-1", now=lambda: now[0])

    def at(seconds: float) -> bool:
        now[0] = seconds
        return follower.followed()

    assert not at(0)
    store.put_once("s/following/00001/attempt-1/a", b"")
    assert not at(10), "it looks every 30 s"
    assert at(30)
    assert at(179)
    assert not at(181)
    store.put_once("s/following/00001/attempt-1/b", b"")
    store.put_once("s/following/00001/attempt-10/c", b"")
    assert at(220)
    assert not at(1000)


@pytest.mark.parametrize("options", [[], ["--full"], ["--all"]])
def test_escapes_in_an_agent_s_text_reach_no_terminal(live: Live, tmp_path: Path, options: list[str]) -> None:
    live.say(HOSTILE)
    live.say(HOSTILE * 2000)
    live.end()
    for command in ("cat", "tail"):
        code, out, _ = run(command, tmp_path / "store", *options)
        assert code == 0
        assert r"\u{1b}]0;owned\u{7}" in out
        assert "[bold]x[/bold] :bomb:" in out
        assert not set(out) & {chr(c) for c in (*range(32), *range(127, 160), 0x202E, 0x2028) if c != 10}


def test_cat_is_the_conversation_and_full_texts_come_from_their_blobs(live: Live, tmp_path: Path) -> None:
    live.end()
    _, short, _ = run("cat", tmp_path / "store")
    _, full, _ = run("cat", tmp_path / "store", "--full")
    _, every, _ = run("cat", tmp_path / "store", "--all")
    assert "(--full shows them)" in short
    assert full.count("        output\n") == 12_000
    assert "── exchange 1" in short
    assert "model_request" in every
    assert "model_request" not in short


# -- recover


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`kubectl(script)`: what `kubectl exec` does; the words after `--` are in "$@"."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def put(script: str) -> None:
        path = folder / "kubectl"
        path.write_text(f'#!/bin/sh\nwhile test "$1" != --; do shift; done; shift\n{script}\n')
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        status = {"phase": "Working", "pod": "first-00001-a1"}
        monkeypatch.setattr(ledger, "object_in_cluster", lambda *_: {"status": status})

    return put


def exec_in(spool: Path) -> str:
    """The exporter, as in the container."""
    return f'shift; REALCLI_SPOOL={spool} PYTHONPATH={":".join(p for p in sys.path if p)} exec {sys.executable} "$@"'


@pytest.fixture
async def blocked(tmp_path: Path) -> Any:
    """A finished session that waits: its spool, and its attempt."""
    store = Down(tmp_path / "store")
    attempt: Attempt = make_attempt(tmp_path / "spool", store, hold="1h")
    tell(attempt, random.Random(4), turns=4)
    sealing = asyncio.create_task(finish(attempt, store))
    while not (tmp_path / "spool" / SPOOL_FILE).exists():  # noqa: ASYNC110 the file is the only sign there is
        await asyncio.sleep(0.01)
    yield attempt
    sealing.cancel()
    await asyncio.gather(sealing, return_exceptions=True)
    attempt.writer.close()


async def test_recover_copies_a_spool_that_verifies_but_is_unsealed(
    blocked: Attempt, tmp_path: Path, kubectl: Callable[[str], None]
) -> None:
    kubectl(exec_in(tmp_path / "spool"))
    code, out, err = await asyncio.to_thread(run, "recover", "first-00001", "--to", tmp_path / "copy")
    assert (code, err) == (0, "")
    assert "unsealed first-00001 attempt 1:" in out
    spool = Spool.model_validate_json((tmp_path / "copy" / SPOOL_FILE).read_bytes())
    assert (spool.message, spool.trial) == ("down", blocked.trial.identity)
    files = {p.relative_to(tmp_path / "copy").as_posix() for p in (tmp_path / "copy").rglob("*") if p.is_file()}
    assert {"run.json", "state.tar.zst", "ledger/000001.jsonl"} <= files
    assert len([name for name in files if name.startswith("snapshots/")]) == 2
    code, out, _ = await asyncio.to_thread(run, "verify", tmp_path / "copy")
    assert (code, out.splitlines()[-1]) == (0, "1 of 1 attempts verify")
    assert "unsealed" in out
    code, out, _ = await asyncio.to_thread(run, "cat", tmp_path / "copy", "--all")
    assert out.splitlines()[-1].endswith("state=blocked  message=down") or "storage" in out.splitlines()[-1]
    code, out, _ = await asyncio.to_thread(run, "verify", tmp_path / "copy", "--anchor", "sha256:" + "0" * 64)
    assert code == 1
    assert "unsealed: work-seal.json" in out


async def test_a_changed_copy_is_named(blocked: Attempt, tmp_path: Path, kubectl: Callable[[str], None]) -> None:
    kubectl(exec_in(tmp_path / "spool"))
    await asyncio.to_thread(run, "recover", "first-00001", "--to", tmp_path / "copy")
    path = tmp_path / "copy" / "ledger" / "000002.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))
    code, out, _ = await asyncio.to_thread(run, "verify", tmp_path / "copy")
    assert code == 1
    assert "missing: ledger/000002.jsonl:2" in out


@pytest.mark.parametrize("what", ["blob", "snapshot", "run", "state"])
@pytest.mark.parametrize("gone", [False, True], ids=["changed", "gone"])
async def test_a_changed_file_of_a_copy_is_named(
    blocked: Attempt, tmp_path: Path, kubectl: Callable[[str], None], what: str, gone: bool
) -> None:
    """Nothing seals the copy, but its ledger tells of every file."""
    kubectl(exec_in(tmp_path / "spool"))
    await asyncio.to_thread(run, "recover", "first-00001", "--to", tmp_path / "copy")
    pattern = {"blob": "blobs/*", "snapshot": "snapshots/*", "run": "run.json", "state": "state.tar.zst"}[what]
    path = sorted((tmp_path / "copy").glob(pattern))[0]
    if gone:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b"x")
    code, out, _ = await asyncio.to_thread(run, "verify", tmp_path / "copy")
    told = out.splitlines()[1].strip()
    assert (code, told.split(": ")[:2]) == (1, ["missing" if gone else "changed", path.relative_to(tmp_path / "copy").as_posix()])


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            'echo "Error from server (NotFound): pods \\"first-00001-a1\\" not found" >&2; exit 1',
            "there is no pod first-00001-a1",
        ),
        (
            'echo "Error from server (Forbidden): pods \\"first-00001-a1\\" is forbidden: eve cannot create it" >&2; exit 1',
            "you may not exec into pod first-00001-a1 (create pods/exec in its namespace)",
        ),
        ('echo "error: cannot exec into a container in a completed pod" >&2; exit 1', "failed (1): error: cannot exec"),
        ("head -c 100000 /dev/zero; exit 0", "broke off: it holds no spool.json"),
        ("head -c 100000 /dev/urandom; exit 0", "broke off"),
    ],
    ids=["no such pod", "forbidden", "over", "nothing", "noise"],
)
def test_recover_says_why_not(tmp_path: Path, kubectl: Callable[[str], None], script: str, said: str) -> None:
    kubectl(script)
    code, _, err = run("recover", "first-00001", "--to", tmp_path / "copy")
    assert code == 2
    assert said in err
    assert not list(tmp_path.glob("copy*"))


def test_recover_of_a_session_that_does_not_wait(tmp_path: Path, kubectl: Callable[[str], None]) -> None:
    (tmp_path / "spool").mkdir()
    kubectl(exec_in(tmp_path / "spool"))
    code, _, err = run("recover", "first-00001", "--to", tmp_path / "copy")
    assert (code, "nothing to recover: the session does not wait for storage" in err) == (2, True)


def test_recover_of_a_trial_that_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "object_in_cluster", lambda *_: {"status": {"phase": "Sealed", "pod": "first-00001-a1-v1"}})
    code, _, err = run("recover", "first-00001", "--to", tmp_path / "copy")
    assert (code, "no session that could wait for storage (phase Sealed" in err) == (2, True)


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "ledger/../../x", "notes.txt", "ledger/000001.jsonl/x"])
def test_a_stream_writes_nothing_outside(tmp_path: Path, kubectl: Callable[[str], None], name: str) -> None:
    import io
    import tarfile

    with tarfile.open(tmp_path / "stream", "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    kubectl(f"cat {tmp_path / 'stream'}")
    code, _, err = run("recover", "first-00001", "--to", tmp_path / "copy")
    assert (code, "which is no file of an attempt" in err) == (2, True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "stream"]
