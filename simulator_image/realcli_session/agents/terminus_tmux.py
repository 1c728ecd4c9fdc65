"""The terminal of Terminus-2: the toolkit's tmux in the agent's container, driven through the runner.

The server runs in the foreground as a child of the runner, so its end is seen, and every shell and command is its descendant.
Each call is a short client process. What tmux says is a claim of the container, bounded in time and size; an agent may kill or
stop the server, or leave its shell, and then the terminal is lost.
"""

from __future__ import annotations

import asyncio
import math
import shlex
import signal
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from realcli.wire import archive
from realcli.wire.protocol import ErrorCode
from realcli_session.runner.errors import RunnerError, SpawnFailed
from realcli_session.runner.port import Completed, ProcInfo, RemoteProcess, RunnerPort

SESSION = "terminus-2"
WIDTH, HEIGHT = 160, 40
HISTORY_LIMIT = 10_000_000
MAX_CAPTURE = 16 << 20
MAX_COMMAND = 16_000  # bytes of a send-keys command in a shell's words; longer keys are pasted
CLIENT_SECONDS = 30.0
START_SECONDS = 60.0
PROMPT_LOOKS = 60  # until the shell, which may have no prompt, is taken to be there; the release waits for its recording
_OWN_VARIABLES = ("LOCPATH", "TERMINFO")
_LOADERS_VARIABLES = ("LD_", "GLIBC_TUNABLES")
"""Beginnings of what the loader obeys. An image may set it for its own programs; the toolkit's tmux must not follow."""
_SEND = f"tmux send-keys -t {SESSION} --"
_GRACE = 0.2  # seconds a command has to end after C-c
_STEP = 0.1
_ROUNDS = 6
_IDLE_TICKS = 1  # of CPU time in one step; more, or not asleep: the shell itself runs a loop


class TerminalLost(Exception):
    """There is no terminal any more: the server or the shell ended, or it does not answer. The message says which."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and as whom everything runs."""

    env: Mapping[str, str]
    """The environment of the shell."""
    cwd: str
    shell: tuple[str, ...]
    directory: str
    """For the socket; made by `start`."""
    toolkit: str
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True)
class _Stat:
    """Fields of /proc/<pid>/stat."""

    group: int
    foreground: int
    ticks: int
    sleeps: bool


class Tmux:
    """One server with one session. `start` first."""

    def __init__(self, runner: RunnerPort, place: Place) -> None:
        self._runner = runner
        self._place = place
        kept = {name: value for name, value in place.env.items() if not name.startswith(_LOADERS_VARIABLES)}
        self._env = {**kept, "LOCPATH": f"{place.toolkit}/lib/locale", "TERMINFO": f"{place.toolkit}/share/terminfo"}
        self._pastes = 0
        self.server: RemoteProcess | None = None

    @property
    def binary(self) -> str:
        """The program file."""
        return f"{self._place.toolkit}/bin/tmux.real"

    @property
    def argv(self) -> list[str]:
        """The server's command line."""
        return [*self._program(), "-D"]

    async def start(self) -> RemoteProcess:
        """Start server, session and shell. SpawnFailed where that cannot be done; then nothing of it runs."""
        await self._make_directory()
        place = self._place
        self.server = await self._runner.spawn(self.argv, env=self._env, cwd=place.cwd, uid=place.uid, gid=place.gid)
        try:
            await self._open_session(self.server)
        except (TerminalLost, TimeoutError) as error:
            await self.server.signal(signal.SIGKILL, to="session")
            said = await self._said(self.server)
            raise SpawnFailed(ErrorCode.SPAWN_FAILED, f"the terminal does not start: {error} {said}".strip()) from error
        return self.server

    async def alive(self) -> bool:
        """Whether server and session are there."""
        return (await self._client("has-session", "-t", SESSION)).status.code == 0

    async def capture(self, whole: bool) -> str:
        """The pane as text: with all its history, or what is visible."""
        extra = ["-S", "-"] if whole else []
        done = await self._call("capture-pane", "-p", *extra, "-t", SESSION)
        return done.stdout.decode("utf-8", "replace")

    async def type(self, keystrokes: str) -> None:
        """Send keys as tmux reads them: a key's name (C-c), else the characters themselves."""
        keys = keystrokes.encode("utf-8", "replace").decode()
        if not keys:
            return
        if len(shlex.quote(keys).encode()) > MAX_COMMAND - len(_SEND) - 1:
            await self._paste(keys)
            return
        for number, part in enumerate(keys.split("\0")):
            if number:
                await self._call("send-keys", "-t", SESSION, "--", "C-@")  # an argument cannot hold it
            if part and "\0" in keys:  # characters, also where they look like a key's name or end a command
                await self._call("send-keys", "-t", SESSION, "-l", "--", _argument(part))
            elif part:
                await self._call("send-keys", "-t", SESSION, "--", part)

    async def stop_running(self) -> bool:
        """End the command in the foreground: C-c, then SIGKILL for what is left of it. True: the shell itself had to go, too."""
        shell = await self._shell()
        first = await self._stat(shell)
        doomed = _family(await self._runner.procs(), first.foreground) if first.foreground != first.group else []
        await self._call("send-keys", "-t", SESSION, "--", "C-c")
        await asyncio.sleep(_GRACE)
        for process in doomed:
            await self._runner.signal_pid(process.pid, signal.SIGKILL, start_ticks=process.start_ticks)
        before, idle = await self._stat(shell), 0
        for _ in range(_ROUNDS):
            if before.foreground != before.group:
                for process in _family(await self._runner.procs(), before.foreground):
                    await self._runner.signal_pid(process.pid, signal.SIGKILL, start_ticks=process.start_ticks)
            await asyncio.sleep(_STEP)
            now = await self._stat(shell)
            quiet = now.foreground == now.group and now.sleeps and now.ticks - before.ticks <= _IDLE_TICKS
            before, idle = now, idle + 1 if quiet else 0
            if idle == 2:
                return False
        await self._replace_shell(shell)
        return True

    async def end(self, grace: float) -> None:
        """End the server and the shell it opened, and wait for both: what still runs then is the agent's own doing."""
        if self.server is None:
            return
        shell: ProcInfo | None = None
        try:
            async with asyncio.timeout(grace):
                shell = await self._own_shell()
                await self._client("kill-server")
                await self.server.wait()
        except (TimeoutError, TerminalLost):
            await self.server.signal(signal.SIGKILL, to="session")
            await self.server.wait()
        if shell is not None:
            await self._shell_gone(shell, grace)

    async def _own_shell(self) -> ProcInfo | None:
        """None: it has ended, and the server is about to."""
        try:
            pid = await self._shell()
        except TerminalLost:
            return None
        return next((process for process in await self._runner.procs() if process.pid == pid), None)

    async def _shell_gone(self, shell: ProcInfo, grace: float) -> None:
        """It gets SIGHUP with its terminal; one that takes longer than `grace`, or ignores it, is left to quiesce."""
        for _ in range(math.ceil(grace / _STEP)):
            if not any((p.pid, p.start_ticks) == (shell.pid, shell.start_ticks) for p in await self._runner.procs()):
                return
            await asyncio.sleep(_STEP)

    # ---------------------------------------------------------------------------------------------------------------- inside
    def _program(self) -> list[str]:
        """tmux through its own loader, for images with another libc or none."""
        lib = f"{self._place.toolkit}/lib"
        loader = [f"{lib}/ld-linux-x86-64.so.2", "--argv0", "tmux", "--library-path", lib, self.binary]
        return [*loader, "-u", "-S", f"{self._place.directory}/tmux"]

    async def _make_directory(self) -> None:
        parent, _, name = self._place.directory.rpartition("/")
        hello = self._runner.hello
        uid = hello.uid if self._place.uid is None else self._place.uid
        gid = self._place.gid if self._place.gid is not None else hello.gid if self._place.uid is None else uid

        async def tar() -> AsyncIterator[bytes]:
            yield archive.header(archive.Member(name.encode(), "dir", mode=0o700, uid=uid, gid=gid)) + archive.END

        source: AsyncIterable[bytes] = tar()
        await self._runner.put_tree(parent, source)

    async def _open_session(self, server: RemoteProcess) -> None:
        others = [name for name in self._place.env if name.startswith(_LOADERS_VARIABLES)]
        images = [word for name in (*_OWN_VARIABLES, *others) for word in self._reset(name)]
        line = [
            *images, *("new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), "-s", SESSION, "-c", self._place.cwd),
            *(*self._place.shell, ";"),
            *("set-option", "-g", "history-limit", str(HISTORY_LIMIT)),
        ]  # fmt: skip
        async with asyncio.timeout(START_SECONDS):
            while (done := await self._client("-N", *line)).status.code != 0:
                if server.exit is not None or (b"no server running" not in done.stderr and b"No such file" not in done.stderr):
                    raise TerminalLost(_text(done.stderr))
                await asyncio.sleep(0.05)
            await self._call("has-session", "-t", SESSION)
        for _ in range(PROMPT_LOOKS):
            if (await self.capture(False)).strip():
                break
            await asyncio.sleep(0.05)

    def _reset(self, name: str) -> list[str]:
        """The shell has the image's own value of what the server needs for itself."""
        if name in self._place.env:
            return ["set-environment", "-g", "--", name, _argument(self._place.env[name]), ";"]
        return ["set-environment", "-gu", name, ";"]

    async def _client(self, *arguments: str, input: bytes = b"") -> Completed:
        place = self._place
        if self.server is not None and self.server.exit is not None:
            raise TerminalLost("the tmux server has ended")
        try:
            return await self._runner.run(
                [*self._program(), *arguments], env=self._env, cwd="/", uid=place.uid, gid=place.gid, input=input,
                seconds=CLIENT_SECONDS, output_limit=MAX_CAPTURE,
            )  # fmt: skip
        except TimeoutError:
            raise TerminalLost(f"tmux does not answer {arguments[0]} within {CLIENT_SECONDS:g} s") from None
        except SpawnFailed as error:
            raise TerminalLost(f"tmux cannot be started any more: {error}") from error

    async def _call(self, *arguments: str, input: bytes = b"") -> Completed:
        done = await self._client(*arguments, input=input)
        if done.status.code != 0:
            raise TerminalLost(f"the terminal is gone: tmux {arguments[0]}: {_text(done.stderr)}")
        return done

    async def _paste(self, keys: str) -> None:
        """Line breaks arrive as if typed."""
        self._pastes += 1
        name = f"paste-{self._pastes}"
        await self._call("load-buffer", "-b", name, "-", input=keys.encode())
        await self._call("paste-buffer", "-d", "-b", name, "-t", SESSION)

    async def _shell(self) -> int:
        said = (await self._call("display-message", "-p", "-t", SESSION, "#{pane_pid}")).stdout.strip()
        if not said.isdigit():
            raise TerminalLost(f"tmux names no shell: {said[:80]!r}")
        return int(said)

    async def _stat(self, pid: int) -> _Stat:
        try:
            text = (await self._runner.get_file(f"/proc/{pid}/stat", limit=4096)).decode("ascii", "replace")
            fields = text[text.rindex(")") + 2 :].split()
            ticks = int(fields[11]) + int(fields[12])
            return _Stat(group=int(fields[2]), foreground=int(fields[5]), ticks=ticks, sleeps=fields[0] == "S")
        except (RunnerError, ValueError, IndexError) as error:
            raise TerminalLost(f"the shell is gone: {error}") from error

    async def _replace_shell(self, pid: int) -> None:
        await self._call("set-option", "-t", SESSION, "remain-on-exit", "on")
        await self._runner.signal_pid(pid, signal.SIGKILL, to="session")
        await self._call("respawn-pane", "-k", "-c", self._place.cwd, "-t", SESSION, *self._place.shell)
        await self._call("set-option", "-t", SESSION, "remain-on-exit", "off")

    async def _said(self, server: RemoteProcess) -> str:
        try:
            async with asyncio.timeout(2):
                return _text(await server.stderr.read())
        except TimeoutError:
            return ""


def _family(table: Sequence[ProcInfo], group: int) -> list[ProcInfo]:
    """The processes of a group and all their descendants."""
    found = {process.pid: process for process in table if process.pgid == group}
    grown = True
    while grown:
        more = {p.pid: p for p in table if p.ppid in found and p.pid not in found}
        found |= more
        grown = bool(more)
    return list(found.values())


def _argument(text: str) -> str:
    """As tmux takes it: a semicolon at the end of an argument would end the command."""
    return f"{text[:-1]}\\;" if text.endswith(";") else text


def _text(raw: bytes) -> str:
    return raw[:500].decode("utf-8", "replace").strip()
