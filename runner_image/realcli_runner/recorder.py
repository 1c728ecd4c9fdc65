"""Executed commands of everything that is started, by seccomp user notification (measuring.md 2.2).

Two threads made once: the *spawner* carries the filter, so what it starts and all descendants are seen and nothing else is;
the *watcher* answers the kernel. It reads what a process is about to execute, writes it down, and lets it go on, always:
a row that cannot be made or kept is a gap that is counted, never a program that waits. What is recorded is what stood in the
process's memory when it asked; a process that changes its own arguments in that moment deceives the record of itself.
"""

from __future__ import annotations

import os
import queue
import resource
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from realcli.wire.body import wire_bytes
from realcli_runner import seccomp, target
from realcli_runner.exits import status_of
from realcli_runner.feed import Feed
from realcli_runner.seccomp import EXIT_GROUP, Listener, Notification

MAX_LIVE: Final = 2048
"""Processes whose end is watched for at once, each with a descriptor; fewer where the runner may not have that many."""
CHAIN: Final = 64
HIDDEN_SECONDS: Final = 1.0
BORN_SECONDS: Final = 1.0
HIDDEN_PAUSE: Final = 0.002
ANCESTORS: Final = 16
T = TypeVar("T")
Born = Callable[[int], None]


@dataclass(slots=True)
class _Live:
    """A process that runs a recorded command. `ids`: the programs it has been, one after the other."""

    ids: list[int]
    pidfd: int
    code: int | None = None


@dataclass(slots=True)
class _Hidden:
    """A process whose call could not be read: looked at again once it has become what it asked for."""

    until: float
    tgid: int
    fsuid: int
    fsgid: int
    ppid: int
    number: int


@dataclass(slots=True)
class _Starting:
    """A program that the session asked for, between fork and exec: the runner's own memory still, which the kernel hides."""

    row: dict[str, Any]
    tgid: int = 0
    told: bool = False
    born: threading.Event = field(default_factory=threading.Event)

    def announce(self, pid: int) -> None:
        """The process is there."""
        self.tgid = pid
        self.born.set()


class Recorder:
    """Makes both threads. `start` says whether it works here."""

    def __init__(self, *, allowed: bool = True) -> None:
        self._allowed = allowed
        self._feed: Feed | None = None
        self._listener: Listener | None = None
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._number = 0
        self._live: dict[int, _Live] = {}
        self._by_pidfd: dict[int, int] = {}
        self._hidden: list[_Hidden] = []
        self._starting: _Starting | None = None
        self._epoll: select.epoll | None = None
        self._own = os.getpid()
        self._most = max(0, min(MAX_LIVE, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 - 64))
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._marks: deque[int] = deque()
        self._disturbed: str | None = None

    @property
    def working(self) -> bool:
        """Commands are being recorded."""
        return self._listener is not None

    def start(self, feed: Feed) -> str | None:
        """Begin. None if it works, else why it does not. Later calls are refused."""
        if not self._allowed:
            return "the runner was started with --no-exec-record"
        if self._feed is not None:
            return "commands are recorded already"
        self._feed = feed
        threading.Thread(target=self._serve_spawns, daemon=True).start()
        try:
            self._listener = Listener(self._in_spawner(seccomp.install))
        except OSError as error:
            return error.strerror or str(error)
        self._epoll = select.epoll()
        self._epoll.register(self._listener.fd, select.EPOLLIN)
        self._epoll.register(self._wake, select.EPOLLIN)
        setattr(subprocess, "_USE_VFORK", False)  # see spawn  # noqa: B010 (typeshed does not name it)
        sys.setswitchinterval(0.0005)  # a program waits for each answer: the interpreter has to change threads quickly
        threading.Thread(target=self._watch, args=(self._listener,), daemon=True).start()
        return None

    def settle(self, mark: int) -> None:
        """Have `mark` put into the stream behind everything that the kernel has told of until now."""
        self._marks.append(mark)
        os.eventfd_write(self._wake, 1)

    # -- the spawner ---------------------------------------------------------------------------------------------------

    def spawn(self, start: Callable[[Born], subprocess.Popen[bytes]], argv: list[bytes], cwd: bytes) -> subprocess.Popen[bytes]:
        """Start a program where it is recorded; what `start` raises comes back. It says the number of the process before it waits
        for the program, and must not use vfork: the interpreter would wait for the program, the program for the watcher, and the
        watcher for the interpreter."""
        self._starting = starting = _Starting({"argv": [wire_bytes(part) for part in argv], "cwd": wire_bytes(cwd)})
        try:
            return self._in_spawner(lambda: start(starting.announce))
        finally:
            self._starting = None

    def _in_spawner(self, call: Callable[[], T]) -> T:
        answer: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                answer.put((call(), None))
            except BaseException as error:
                answer.put((None, error))

        self._asked.put(run)
        result, error = answer.get()
        if error is not None:
            raise error
        return result  # type: ignore[return-value]  # the call returned

    def _serve_spawns(self) -> None:
        while True:
            self._asked.get()()

    # -- the watcher ---------------------------------------------------------------------------------------------------

    def _watch(self, listener: Listener) -> None:
        while True:
            try:
                self._watch_once(listener)
            except Exception as error:  # whatever it is: without this thread no program would start any more
                self._disturbed = f"the record was disturbed: {type(error).__name__}: {error}"
                time.sleep(HIDDEN_PAUSE)

    def _watch_once(self, listener: Listener) -> None:
        assert self._epoll is not None
        if (disturbed := self._disturbed) is not None:
            self._gap(1, disturbed)
            self._disturbed = None
        ready = [fd for fd, _ in self._epoll.poll(HIDDEN_PAUSE if self._hidden else -1)]
        for fd in ready:
            if fd not in (listener.fd, self._wake):
                self._on_end(fd)
        if listener.fd in ready:  # after the ends: its process may have got the number of one that ended
            self._on_call(listener)
        if self._hidden:
            self._look_again()
        elif ready == [self._wake]:
            os.eventfd_read(self._wake)
            while self._marks:
                self._push({"k": "mark", "n": self._marks.popleft()}, always=True)

    def _on_call(self, listener: Listener) -> None:
        notification = listener.receive()
        if notification is None:
            return
        try:
            if notification.call == EXIT_GROUP:
                self._on_exit(notification)
            else:
                self._on_exec(listener, notification)
        except (FileNotFoundError, ProcessLookupError):
            return  # it was killed while it waited
        except Exception as error:
            self._gap(1, f"a call could not be read: {type(error).__name__}: {error}")
        finally:
            if not listener.proceed(notification) and notification.call == EXIT_GROUP:
                self._did_not_exit(notification)

    def _on_exec(self, listener: Listener, notification: Notification) -> None:
        if (starting := self._starting) is not None and self._is(starting, target.ids(notification.pid)):
            return
        try:
            found = target.wanted(notification)
        except PermissionError:
            who = target.ids(notification.pid)
            try:
                with target.seen_as(who.fsuid, who.fsgid):
                    found = target.wanted(notification)
            except PermissionError:
                self._not_shown(who)
                return
        if found is None:
            return  # most calls: a search through PATH
        who = target.ids(notification.pid)
        if not listener.valid(notification):
            return
        parent = self._parent(who.ppid)
        self._number += 1
        self._follow(who.tgid, self._number)
        self._command(self._number, who.tgid, parent, found)

    def _is(self, starting: _Starting, who: target.Ids) -> bool:
        """The call is that of the program that is being started. One row for it, whether it succeeds or not.

        Orphans are our children too, and execute at any moment: so the number decides, which whoever starts it is about to say.
        """
        if who.ppid != self._own or not starting.born.wait(BORN_SECONDS) or who.tgid != starting.tgid:
            return False
        if not starting.told:
            starting.told = True
            self._number += 1
            self._follow(who.tgid, self._number)
            row = {"k": "cmd", "id": self._number, "pid": who.tgid, "parent": None, "path": "", "cut": False, "root": True}
            self._push(row | starting.row)
        return True

    def _not_shown(self, who: target.Ids) -> None:
        """The memory is hidden: a process that changed its ids and has executed nothing since."""
        if len(self._hidden) >= MAX_LIVE:
            self._gap(1, "too many processes hide their memory")
            return
        self._number += 1
        self._hidden = [entry for entry in self._hidden if entry.tgid != who.tgid]
        until = time.monotonic() + HIDDEN_SECONDS
        self._hidden.append(_Hidden(until, who.tgid, who.fsuid, who.fsgid, who.ppid, self._number))

    def _look_again(self) -> None:
        left = []
        for entry in self._hidden:
            try:
                with target.seen_as(entry.fsuid, entry.fsgid):
                    found = target.executed(entry.tgid)
            except (FileNotFoundError, ProcessLookupError):
                self._gap(1, "a process that changed its ids ended before it could be looked at")
                continue
            except OSError as error:
                self._gap(1, f"a process could not be looked at: {error}")
                continue
            if found is not None:
                parent = self._parent(entry.ppid)
                self._follow(entry.tgid, entry.number)
                self._command(entry.number, entry.tgid, parent, found)
            elif time.monotonic() < entry.until:
                left.append(entry)
            else:  # what it asked for was not there, or what it has become may not be looked at
                self._gap(1, "a process that hides its memory did not show what it executed")
        self._hidden = left

    def _command(self, number: int, tgid: int, parent: int | None, found: target.Wanted) -> None:
        self._push(
            {
                "k": "cmd",
                "id": number,
                "pid": tgid,
                "parent": parent,
                "root": False,
                "argv": [wire_bytes(part) for part in found.argv],
                "cut": found.cut,
                "cwd": wire_bytes(found.cwd),
                "path": wire_bytes(found.path),
            }
        )

    def _parent(self, pid: int) -> int | None:
        """The command that the nearest recorded ancestor runs."""
        for _ in range(ANCESTORS):
            live = self._live.get(pid)
            if live is not None:
                return live.ids[-1]
            if pid <= 1 or pid == self._own:
                return None
            try:
                pid = target.ids(pid).ppid
            except (FileNotFoundError, ProcessLookupError):
                return None
        return None

    def _follow(self, tgid: int, number: int) -> None:
        """Watch for the end of a process; a program that replaces another in it ends with it."""
        live = self._live.get(tgid)
        if live is not None:
            live.ids = [*live.ids[-CHAIN:], number]
            return
        if len(self._live) >= self._most:
            return  # its end stays unknown
        assert self._epoll is not None
        try:
            fd = os.pidfd_open(tgid)
        except OSError:
            return
        self._live[tgid] = _Live([number], fd)
        self._by_pidfd[fd] = tgid
        self._epoll.register(fd, select.EPOLLIN)

    def _on_exit(self, notification: Notification) -> None:
        if not self._live:
            return
        live = self._live.get(notification.pid)
        if live is None:
            live = self._live.get(target.ids(notification.pid).tgid)
        if live is not None:
            live.code = notification.args[0] & 0xFF

    def _did_not_exit(self, notification: Notification) -> None:
        """What it said is not how it ended: the kernel knows better."""
        live = self._live.get(notification.pid)
        if live is not None:
            live.code = None

    def _on_end(self, fd: int) -> None:
        assert self._epoll is not None
        tgid = self._by_pidfd.pop(fd)
        live = self._live.pop(tgid)
        code, killed = live.code, None
        if code is None and (status := status_of(fd, tgid)) is not None:  # it did not end by itself, or in a rare way
            code, killed = (None, status & 0x7F) if status & 0x7F else (status >> 8 & 0xFF, None)
        self._epoll.unregister(fd)
        os.close(fd)
        for number in live.ids:
            self._push({"k": "end", "id": number, "code": code, "signal": killed})

    def _gap(self, count: int, why: str) -> None:
        self._push({"k": "gap", "count": count, "why": why[:300]})

    def _push(self, row: dict[str, Any], *, always: bool = False) -> None:
        assert self._feed is not None
        self._feed.push({"t": time.monotonic_ns()} | row, always=always)
