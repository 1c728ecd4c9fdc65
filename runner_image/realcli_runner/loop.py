"""A small readiness loop over one thread: who waits for which descriptor, and what other threads post."""

from __future__ import annotations

import os
import selectors
import threading
from collections import deque
from collections.abc import Callable

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
Ready = Callable[[int], None]


class Loop:
    """Level-triggered. Handlers must not block and get the events that are ready."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake_read, self.wake_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._posted: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._woken = False
        self.watch(self._wake_read, READ, self._on_wake)

    def watch(self, fd: int, events: int, ready: Ready) -> None:
        """Call `ready` while one of `events` is there; 0 stops watching. Must be stopped before the descriptor is closed."""
        known = self._selector.get_map().get(fd)
        if known is None:
            if events:
                self._selector.register(fd, events, ready)
        elif not events:
            self._selector.unregister(fd)
        elif known.events != events or known.data != ready:
            self._selector.modify(fd, events, ready)

    def post(self, call: Callable[[], None]) -> None:
        """From any thread: have it called by the loop, in the order of posting."""
        with self._lock:
            self._posted.append(call)
            wake, self._woken = not self._woken, True
        if wake:
            self._wake()

    def _wake(self) -> None:
        try:
            os.write(self.wake_fd, b"\0")
        except BlockingIOError:
            return  # full: it will wake up anyway

    def _on_wake(self, _: int) -> None:
        try:
            while os.read(self._wake_read, 4096):
                pass
        except BlockingIOError:
            return

    def turn(self) -> None:
        """Wait, then handle what is ready, then what was posted."""
        for key, events in self._selector.select():
            now = self._selector.get_map().get(key.fd)
            if now is not None and now.data == key.data and events & now.events:  # an earlier handler may have changed it
                key.data(events & now.events)
        while True:
            with self._lock:
                if not self._posted:
                    self._woken = False
                    return
                call = self._posted.popleft()
            call()
