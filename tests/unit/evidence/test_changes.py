"""File changes as windows between requests; files shown by their marker lines."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.ledger.events import Event
from realcli.ledger.writer import LedgerWriter
from realcli.wire.protocol import ErrorCode
from realcli_session.evidence.changes import ChangeTracker
from realcli_session.evidence.markers import MarkerBook, default_markers, learn, shown_markers
from realcli_session.evidence.watch import ChangeWatch
from realcli_session.runner.errors import FileMissing
from realcli_session.runner.port import ScanEntry, ScanResult


def entry(path: str, content: str = "", *, mtime: int = 0, kind: Any = "file", sha: bool = True) -> ScanEntry:
    digest = hashlib.sha256(content.encode()).hexdigest() if sha and kind == "file" else None
    return ScanEntry(path.encode(), kind, len(content), 0o644, 0, 0, mtime, digest, None)


def scan(*entries: ScanEntry, complete: bool = True, unreadable: tuple[str, ...] = ()) -> ScanResult:
    ordered = tuple(sorted(entries, key=lambda found: found.raw))
    return ScanResult(ordered, complete, None if complete else "time", unreadable)


A, B = entry("/a", "one"), entry("/b", "two")
START = ChangeTracker().step(scan(A, B), began=0, ended=0)[0]

STEPS = [
    # name, what the scan saw, (path, how) of the changes
    ("nothing", scan(A, B), []),
    ("content", scan(entry("/a", "uno"), B), [("/a", "modified")]),
    ("same length, same time, other content", scan(entry("/a", "eno"), B), [("/a", "modified")]),
    ("written and taken back", scan(entry("/a", "one", mtime=5), B), [("/a", "modified")]),
    ("created", scan(A, B, entry("/c")), [("/c", "created")]),
    ("deleted", scan(A), [("/b", "deleted")]),
    ("replaced by a link", scan(A, entry("/b", kind="symlink")), [("/b", "modified")]),
    ("replaced by a directory", scan(A, entry("/b", kind="dir")), [("/b", "deleted")]),
    ("a new directory is no file", scan(A, B, entry("/d", kind="dir")), []),
    ("too large to hash, other time", scan(entry("/a", "one", sha=False, mtime=9), B), [("/a", "modified")]),
    ("all at once", scan(entry("/a", "x"), entry("/c")), [("/a", "modified"), ("/b", "deleted"), ("/c", "created")]),
    ("incomplete: absence proves nothing", scan(A, complete=False), []),
    ("a directory that cannot be read: the same", scan(A, unreadable=("/x: denied",)), []),
    (
        "incomplete: what is seen counts",
        scan(entry("/a", "x"), entry("/c"), complete=False),
        [("/a", "modified"), ("/c", "created")],
    ),
]


@pytest.mark.parametrize(("name", "seen", "want"), STEPS, ids=[row[0] for row in STEPS])
def test_one_step(name: str, seen: ScanResult, want: list[tuple[str, str]]) -> None:
    _, changes = START.step(seen, began=3, ended=3, accepted_ns=10**12)
    assert [(change.path, change.how) for change in changes] == want
    for change in changes:
        assert (change.after_turn, change.before_turn) == (0, 3 if change.entry is not None else 4)


def test_windows_follow_the_scan_that_last_saw_the_path() -> None:
    missed = START.step(scan(A, complete=False), began=4, ended=4)[0]
    now = scan(entry("/a", "x"), entry("/b", "x"), entry("/c"))
    later, changes = missed.step(now, began=6, ended=7, accepted_ns=10**12)
    assert [(c.path, c.after_turn, c.before_turn) for c in changes] == [("/a", 4, 7), ("/b", 0, 7), ("/c", 0, 7)]
    _, last = later.step(scan(), began=9, ended=None)
    assert [(c.path, c.how, c.after_turn, c.before_turn) for c in last] == [(p, "deleted", 6, None) for p in ("/a", "/b", "/c")]


def test_without_any_complete_scan_nothing_counts_as_created() -> None:
    first = ChangeTracker().step(scan(A, complete=False), began=0, ended=0)[0]
    second, changes = first.step(scan(entry("/a", "x"), B), began=1, ended=1)
    assert [(change.path, change.how) for change in changes] == [("/a", "modified")]
    assert [c.path for c in second.step(scan(entry("/a", "x"), B, entry("/c")), began=2, ended=2)[1]] == ["/c"]


def test_rebase_takes_one_path_alone() -> None:
    now = scan(entry("/a", "planted"), entry("/b", "agent's"))
    rebased = START.rebased(now, "/a", began=2)
    assert [change.path for change in rebased.step(now, began=3, ended=3)[1]] == ["/b"]
    gone = START.rebased(scan(B), "/a", began=2)
    assert gone.step(scan(B), began=3, ended=3)[1] == ()


FILES = st.dictionaries(st.sampled_from(["/a", "/b", "/c"]), st.sampled_from(["x", "y"]), max_size=3)


@given(st.lists(st.tuples(FILES, st.booleans()), min_size=1, max_size=12))
def test_replaying_complete_scans_gives_the_last_state(history: list[tuple[dict[str, str], bool]]) -> None:
    """Applying the reported changes to the first state gives what the last complete scan saw; windows are never empty."""
    tracker, state = ChangeTracker(), dict(history[0][0])
    tracker, _ = tracker.step(scan(*(entry(p, c) for p, c in state.items())), began=0, ended=0)
    for turn, (files, complete) in enumerate(history[1:], start=1):
        shown = dict(list(files.items())[:1]) if not complete else files
        tracker, changes = tracker.step(scan(*(entry(p, c) for p, c in shown.items()), complete=complete), began=turn, ended=turn)
        for change in changes:
            assert change.before_turn is not None
            assert change.after_turn < change.before_turn
            assert (change.path in state) is (change.how != "created")
            if change.entry is None:
                del state[change.path]
            else:
                state[change.path] = files[change.path]
        if complete:
            assert state == files


WINDOWS = [
    # name, ended, accepted (ms), changed (ms), before
    ("written by the agent before its request", 3, 1000, 900, 3),
    ("written while the model was thinking", 3, 1000, 1200, 4),
    ("too close to tell: the wider one", 3, 1000, 995, 4),
    ("after the last request", None, 1000, 1200, None),
    ("the moment of the request is not known", 3, None, 1200, 4),
]


@pytest.mark.parametrize(("name", "ended", "accepted", "changed", "before"), WINDOWS, ids=[row[0] for row in WINDOWS])
def test_a_background_write_lies_before_the_next_request(
    name: str, ended: int | None, accepted: int | None, changed: int, before: int | None
) -> None:
    seen = scan(replace(A, sha256="0" * 64, ctime_ns=changed * 10**6), B)
    accepted_ns = None if accepted is None else accepted * 10**6
    _, (change,) = START.step(seen, began=3, ended=ended, accepted_ns=accepted_ns)
    assert (change.after_turn, change.before_turn) == (0, before)


DELETIONS = [
    # name, when the folder changed (ms; None: it was not looked at), before
    ("by the agent before its request", 900, 3),
    ("while the model was thinking", 1200, 4),
    ("its folder is not watched: the wider one", None, 4),
]


@pytest.mark.parametrize(("name", "changed", "before"), DELETIONS, ids=[row[0] for row in DELETIONS])
def test_a_deletion_is_as_old_as_its_folder_says(name: str, changed: int | None, before: int) -> None:
    held = entry("/d/x")
    start = ChangeTracker().step(scan(held), began=1, ended=1)[0]
    folder = [] if changed is None else [replace(entry("/d", kind="dir"), ctime_ns=changed * 10**6)]
    _, (change,) = start.step(scan(*folder), began=3, ended=3, accepted_ns=1000 * 10**6)
    assert (change.how, change.after_turn, change.before_turn) == ("deleted", 1, before)


def test_a_deletion_after_the_last_scan_of_a_turn_has_a_window_of_its_own() -> None:
    """As at a yield: the file was there when request 3 had been accepted."""
    seen = START.step(scan(A, B), began=3, ended=3, accepted_ns=1000 * 10**6)[0]
    _, (change,) = seen.step(scan(A), began=3, ended=3, accepted_ns=1000 * 10**6)
    assert (change.path, change.after_turn, change.before_turn) == ("/b", 3, 4)


LARGE = replace(entry("/a", "one", sha=False, mtime=5), ctime_ns=10)
DOUBTFUL = [
    # name, what it is now, changes, doubts
    ("written, its time put back", replace(LARGE, ctime_ns=20), [], ["/a"]),
    ("its mode changed, and perhaps more", replace(LARGE, ctime_ns=20, mode=0o600), [], ["/a"]),
    ("nothing", LARGE, [], []),
    ("written", replace(LARGE, ctime_ns=20, mtime_ns=6), ["/a"], []),
]


@pytest.mark.parametrize(("name", "now", "changed", "doubts"), DOUBTFUL, ids=[row[0] for row in DOUBTFUL])
def test_a_large_file_that_may_have_been_written_is_a_doubt(
    name: str, now: ScanEntry, changed: list[str], doubts: list[str]
) -> None:
    start = ChangeTracker().step(scan(LARGE), began=1, ended=1)[0]
    assert list(start.doubtful(scan(now))) == doubts
    assert [change.path for change in start.step(scan(now), began=2, ended=2)[1]] == changed


# ------------------------------------------------------------------------------------------------------------- the scans


@dataclass
class Disk:
    """The two calls of a runner that the watch makes, over a dictionary."""

    files: dict[str, str] = field(default_factory=dict)
    scans: int = 0
    hold: asyncio.Event | None = None
    stale: bool = False

    async def scan(self, globs: Any, *, budget: float) -> ScanResult:
        self.scans += 1
        found = scan(*(entry(path, content) for path, content in self.files.items()))
        if self.hold is not None:
            await self.hold.wait()
        return found

    async def get_file(self, path: bytes | str, *, limit: int) -> bytes:
        name = path if isinstance(path, str) else path.decode()
        if name not in self.files:
            raise FileMissing(ErrorCode.NOT_FOUND, "gone")
        return b"newer" if self.stale else self.files[name].encode()


@pytest.fixture
def book(tmp_path: Path) -> Iterator[tuple[LedgerWriter, list[Event]]]:
    events: list[Event] = []
    ledger = LedgerWriter(tmp_path, on_event=events.append)
    yield ledger, events
    if not ledger.closed:
        ledger.close()


async def test_changes_become_events_with_content(book: tuple[LedgerWriter, list[Event]]) -> None:
    ledger, events = book
    disk, told = Disk({"/a": "one"}), []
    watch = ChangeWatch(disk, ledger, ["/*"], on_change=told.append)  # type: ignore[arg-type]
    await watch.start()
    assert events == []
    disk.files |= {"/a": "two", "/b": "new"}
    ledger.turn = 1
    await watch.on_turn(1)
    del disk.files["/a"]
    await watch.finish()
    kinds = [(event.kind, event.data["path"], event.data["afterTurn"], event.data.get("beforeTurn")) for event in events]
    assert kinds == [("file_write", "/a", 0, 1), ("file_write", "/b", 0, 1), ("file_delete", "/a", 1, None)]
    assert [event.data["created"] for event in events[:2]] == [False, True]
    blob = ledger.spool / "blobs" / events[0].data["content"]["blob"]
    assert blob.read_bytes() == b"two"
    assert told == ["/a", "/b"]
    ledger.close()


async def test_a_doubt_is_a_gap(book: tuple[LedgerWriter, list[Event]]) -> None:
    ledger, events = book

    class Large(Disk):
        async def scan(self, globs: Any, *, budget: float) -> ScanResult:
            self.scans += 1
            return scan(replace(LARGE, ctime_ns=self.scans))

    watch = ChangeWatch(Large(), ledger, ["/*"])  # type: ignore[arg-type]
    await watch.start()
    ledger.turn = 1
    await watch.on_turn(1)
    assert [(event.kind, event.data["record"]) for event in events] == [("record_gap", "file")]
    assert "/a" in events[0].data["reason"]


async def test_content_that_changed_after_the_scan_is_left_out(book: tuple[LedgerWriter, list[Event]]) -> None:
    ledger, events = book
    disk = Disk(stale=True)
    watch = ChangeWatch(disk, ledger, ["/*"])  # type: ignore[arg-type]
    await watch.start()
    disk.files["/a"] = "two"
    await watch.on_turn(1)
    assert "content" not in events[0].data
    assert events[0].data["sha256"] == hashlib.sha256(b"two").hexdigest()
    ledger.close()


async def test_parallel_turns_share_scans_and_claim_no_order(book: tuple[LedgerWriter, list[Event]]) -> None:
    ledger, events = book
    disk = Disk({"/a": "one"})
    watch = ChangeWatch(disk, ledger, ["/*"])  # type: ignore[arg-type]
    await watch.start()
    disk.hold, disk.files["/a"] = asyncio.Event(), "two"
    ledger.turn = 1
    first = asyncio.create_task(watch.on_turn(1))
    await asyncio.sleep(0)
    ledger.turn = 3  # two more requests while the scan of the first runs
    second, third = asyncio.create_task(watch.on_turn(2)), asyncio.create_task(watch.on_turn(3))
    disk.hold.set()
    await asyncio.gather(first, second, third)
    assert disk.scans == 3  # the start, the first turn, and one for both others
    assert [(event.data["afterTurn"], event.data["beforeTurn"]) for event in events] == [(0, 3)]
    ledger.close()


async def test_cancelled_scan_loses_nothing(book: tuple[LedgerWriter, list[Event]]) -> None:
    ledger, events = book
    disk = Disk({"/a": "one"})
    watch = ChangeWatch(disk, ledger, ["/*"])  # type: ignore[arg-type]
    await watch.start()
    disk.files["/a"], disk.hold = "two", asyncio.Event()
    ledger.turn = 1
    scanning = asyncio.create_task(watch.on_turn(1))
    await asyncio.sleep(0)
    scanning.cancel()
    await asyncio.gather(scanning, return_exceptions=True)
    disk.hold = None
    await watch.finish()
    assert [(event.data["afterTurn"], event.data.get("beforeTurn")) for event in events] == [(0, None)]
    ledger.close()


# ----------------------------------------------------------------------------------------------------------- files shown

MARKERS = {"/app/a.conf": ["port = 80", "  indented: yes"], "/app/b": ["port = 80"]}
SHOWN = [
    ("cat", "x\nport = 80\n", [("/app/a.conf", "port = 80"), ("/app/b", "port = 80")]),
    ("numbered", "    12\t  indented: yes", [("/app/a.conf", "  indented: yes")]),
    ("rg", "a.conf:3:  indented: yes  # why", [("/app/a.conf", "  indented: yes")]),
    ("coloured", "\x1b[35ma.conf\x1b[0m:  \x1b[1m\x1b[31mindented\x1b[0m: yes", [("/app/a.conf", "  indented: yes")]),
    ("over two lines", "port =\n80", []),
    ("nothing", "", []),
]


@pytest.mark.parametrize(("name", "text", "want"), SHOWN, ids=[row[0] for row in SHOWN])
def test_shown_markers(name: str, text: str, want: list[tuple[str, str]]) -> None:
    assert list(shown_markers(text, MARKERS)) == want


def test_blank_marker_is_refused() -> None:
    with pytest.raises(ValueError, match=r"oracle_contract.json: a marker of /x is blank"):
        shown_markers("anything", {"/x": [" "]})


async def test_what_a_background_program_writes_is_seen_at_the_yield(book: tuple[LedgerWriter, list[Event]]) -> None:
    ledger, events = book
    disk = Disk({"/a": "one"})
    watch = ChangeWatch(disk, ledger, ["/*"])  # type: ignore[arg-type]
    await watch.start()
    ledger.turn = 1
    await watch.on_turn(1)
    disk.files["/a"] = "two"
    await watch.on_turn(1)
    assert events == [], "no request came"
    await watch.at_yield()
    assert [(event.data["path"], event.data["afterTurn"]) for event in events] == [("/a", 1)]


async def test_what_cannot_be_looked_at_is_a_gap(book: tuple[LedgerWriter, list[Event]]) -> None:
    ledger, events = book

    class Blind(Disk):
        async def scan(self, globs: Any, *, budget: float) -> ScanResult:
            return ScanResult((), False, "time", ("/secret: Permission denied",))

    watch = ChangeWatch(Blind(), ledger, ["/**"])  # type: ignore[arg-type]
    await watch.start()
    ledger.turn = 1
    await watch.on_turn(1)
    assert [event.kind for event in events] == ["record_gap"] * 3
    assert "new files are not recognised" in events[0].data["reason"]
    assert "/secret" in events[1].data["reason"]
    assert "time" in events[2].data["reason"], "each scan that is cut, but a place that is closed only once"


async def test_markers_follow_what_files_become(book: tuple[LedgerWriter, list[Event]]) -> None:
    ledger, _ = book
    known = MarkerBook({"/declared": ["decisive line"]}, "the user says that the third line is here")
    disk = Disk({"/a": "first line of a\nthe third line is here\nshort\nlast line of a", "/declared": "x" * 20})
    watch = ChangeWatch(disk, ledger, ["/*"], on_content=known.learn)  # type: ignore[arg-type]
    await watch.start()
    assert known.markers == {"/declared": ["decisive line"], "/a": ("first line of a", "last line of a")}
    disk.files["/b"] = "last line of a\nsomething of its own"
    ledger.turn = 1
    await watch.on_turn(1)
    assert known.markers["/a"] == ("first line of a",), "the other line stands in two files now"
    assert known.markers["/b"] == ("something of its own",)
    del disk.files["/b"]
    await watch.at_yield()
    assert known.markers["/a"] == ("first line of a", "last line of a")
    assert "/b" not in known.markers


def test_what_an_agent_writes_does_not_fill_the_book(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realcli_session.evidence.markers.MAX_LINES", 100)
    book = MarkerBook({}, "")
    book.learn({"/task": b"a line of the task"})
    for number in range(50):
        book.learn({f"/made/{number}": "".join(f"line {number} {line} of many\n" for line in range(30)).encode()})
        assert sum(len(lines) for lines in book._lines.values()) <= 100
    book.learn({"/short": b"x\ny\n" * 1000})
    assert "/task" in book.markers
    assert "/made/49" not in book.markers, "no room"
    book.learn({"/task": b"a line of the task, changed"})
    assert book.markers["/task"] == ("a line of the task, changed",), "what is known may still change"
    book.learn({path: b"" for path in list(book._lines)})
    assert (book._lines, book._owners, book._count, book.markers) == ({}, {}, 0, {}), "nothing stays of what has gone"


def test_markers_of_so_many_files_alone_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is looked for in each tool result."""
    monkeypatch.setattr("realcli_session.evidence.markers.MAX_FILES", 5)
    book = MarkerBook({}, "")
    for number in range(50):
        book.learn({f"/made/{number}": f"line of number {number}".encode()})
    assert len(book.markers) == 5
    book.learn({"/made/0": b"something else"})
    assert book.markers["/made/0"] == ("something else",)


def test_default_markers_are_first_middle_and_last() -> None:
    lines = [f"line number {number}" for number in range(9)]
    assert default_markers(lines, lambda _: False, "") == ("line number 0", "line number 4", "line number 8")
    assert default_markers(["only one line"], lambda _: False, "") == ("only one line",)
    assert default_markers(["twice a line", "twice a line", "tiny"], lambda _: False, "") == ()


async def test_contract_files_that_nobody_watches_have_markers_too() -> None:
    known = MarkerBook({"/declared": ["decisive line"]}, "")
    disk = Disk({"/contract": "a line of its own", "/declared": "another line of its own"})
    await learn(known, disk, ["/contract", "/declared", "/missing"])  # type: ignore[arg-type]
    assert known.markers == {"/declared": ["decisive line"], "/contract": ("a line of its own",)}
