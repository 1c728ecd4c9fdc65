"""The session's view of the runner: what it can ask, and what it gets back.

`RunnerPort` is what phases and adapters take as an argument; `RunnerClient` is the real one. Paths are absolute; `str` is
taken as UTF-8 with surrogateescape, `bytes` as they are. Everything here may raise `RunnerLost`; a refused request raises
a `RunnerError`. Everything a runner says is a claim about the container, never proof (architecture.md 2).
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from realcli_session.runner.errors import RunnerLost

Path = str | bytes
SignalTarget = Literal["process", "group", "session"]
EntryKind = Literal["file", "dir", "symlink", "fifo", "socket", "char", "block"]


@dataclass(frozen=True, slots=True)
class Hello:
    """What the runner found when it started, before anything of the agent existed."""

    version: int
    pid: int
    uid: int
    gid: int
    kernel: str
    machine: str
    python: str
    libc: Literal["glibc", "musl", "none"]
    """What a dynamically linked program can be started with in this image."""
    home: str
    cwd: str
    environ: Mapping[str, str]
    """The image's environment without KUBERNETES_*; undecodable bytes as surrogates."""
    environ_omitted: tuple[str, ...]
    """Names of variables left out because the whole did not fit into 1 MiB."""
    cgroup: Mapping[str, str]
    """Raw limits by file name (`memory.max`, `pids.max`, `cpu.max`) and `version`; a missing one was not readable."""
    peer_uid: int
    """Uid of the peer as the kernel of the session sees it (SO_PEERCRED), the one field that is no claim."""

    @property
    def owns_pid_namespace(self) -> bool:
        """Whether quiesce can prove that nothing else runs (the runner is PID 1)."""
        return self.pid == 1


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended: exactly one of the two is set."""

    code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True)
class ProcInfo:
    """One row of the container's process table. `start_ticks` and `pid` together name a process for ever."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    uid: int
    state: str
    start_ticks: int
    argv: tuple[str, ...]
    """At most 4 KiB of it; the name in brackets for a zombie or kernel thread."""


@dataclass(frozen=True, slots=True)
class QuiesceReport:
    """What quiesce did. `survivors` empty = nothing but the runner runs in its pid namespace."""

    survivors: tuple[ProcInfo, ...]
    found: tuple[ProcInfo, ...]
    """What ran when quiesce began (the first 1000)."""
    killed: tuple[ProcInfo, ...]
    """What outlived SIGTERM and the grace (the first 1000)."""
    proven: bool
    """The kernel said that no other process exists (`kill(-1, 0)`); false when the runner is not PID 1."""


@dataclass(frozen=True, slots=True)
class ScanEntry:
    """One file system entry matched by a glob, as lstat saw it."""

    raw: bytes
    kind: EntryKind
    size: int
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    sha256: str | None
    """Of a regular file at most `hash_limit` long and readable, else None."""
    link: bytes | None
    ctime_ns: int = 0
    """Time of the last change of the inode by the machine's clock, which a program cannot set."""

    @property
    def path(self) -> str:
        """Printable and JSON-safe; exact when the name is UTF-8 without a backslash escape in it."""
        return self.raw.decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Entries sorted by path. Incomplete means: what is not listed may exist."""

    entries: tuple[ScanEntry, ...]
    complete: bool
    stopped_by: Literal["files", "bytes", "time"] | None
    unreadable: tuple[str, ...]
    """Directories and files that could not be opened, with the reason (the first 100)."""


@dataclass(frozen=True, slots=True)
class SnapshotReport:
    """What went into a state archive, and what could not."""

    entries: int
    bytes: int
    """Sum of the apparent sizes of regular files (a hard link counts once)."""
    missing: tuple[str, ...]
    """Asked paths that do not exist."""
    skipped: tuple[tuple[str, str], ...]
    """(path, why) of sockets, devices, FIFOs, refused paths (the first 1000)."""
    skipped_count: int
    changed: tuple[str, ...]
    """Files whose length changed while they were read (the first 1000): the agent was still running."""
    deleted: int = 0
    """Names of a delta that are not there any more, of `entries`."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What an archive put into the file system."""

    entries: int
    bytes: int
    deleted: int = 0
    """Names that a delta removed, of `entries`."""
    unset: tuple[tuple[str, str], ...] = ()
    """(path, attribute) of extended attributes that this container may not set (the first 1000)."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished `run`: its end, and at most `output_limit` bytes of each stream."""

    status: ExitStatus
    stdout: bytes
    stderr: bytes
    truncated: bool


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A program that was executed. `id` rises in the order of execution; `parent` is that of the nearest recorded ancestor."""

    when_ns: int
    """CLOCK_MONOTONIC of the machine, which session and runner share."""
    id: int
    pid: int
    parent: int | None
    argv: tuple[str, ...]
    cut: bool
    cwd: str
    path: str
    """"" for a root."""
    root: bool
    """The session started it itself: the agent's program, not a deed of the agent."""


@dataclass(frozen=True, slots=True)
class CommandEndRow:
    """It ended; both None where the kernel does not say how. Programs that replaced each other in one process end together."""

    when_ns: int
    id: int
    code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True)
class GapRow:
    """So many rows are missing here."""

    when_ns: int
    count: int
    why: str


Recorded = CommandRow | CommandEndRow | GapRow


@dataclass(frozen=True, slots=True)
class Recording:
    """The record of commands: whether there is one, if not why, and its rows until the runner is gone (RunnerLost)."""

    works: bool
    why: str
    rows: AsyncIterator[Recorded]


class ByteSink(Protocol):
    """Where a snapshot goes. Awaiting `write` is the back-pressure."""

    async def write(self, data: bytes, /) -> object:
        """Take all of `data`."""


class RemoteStdin(Protocol):
    """The write end of a process's standard input."""

    def write(self, data: bytes) -> None:
        """Queue bytes. Follow with `drain`; ignored once the process has closed its end (as for a real pipe, see `broken`)."""

    async def drain(self) -> None:
        """Wait until what is queued has been handed to the runner (at most a window is in flight beyond the pipe)."""

    async def close(self) -> None:
        """End of file for the process, after what is queued."""

    @property
    def broken(self) -> bool:
        """The process closed its end; what was written since is lost."""


class RemoteStream(Protocol):
    """A process's stdout or stderr. Not reading it stops the process (as a full pipe does), never the runner."""

    async def read(self) -> bytes:
        """Next chunk, at most 64 KiB; b"" at the end. Raises RunnerLost if the runner goes before the end."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Chunks until the end."""

    def discard(self) -> None:
        """Throw away what is buffered and what comes, for ever."""


class RemoteProcess(Protocol):
    """A process group leader started by the runner."""

    @property
    def pid(self) -> int:
        """In the container's pid namespace."""

    @property
    def stdin(self) -> RemoteStdin | None:
        """None if it was started without."""

    @property
    def stdout(self) -> RemoteStream:
        """What the process (and whoever inherited the pipe) prints."""

    @property
    def stderr(self) -> RemoteStream:
        """Its error output."""

    @property
    def exit(self) -> ExitStatus | None:
        """None while the leader runs."""

    async def wait(self) -> ExitStatus:
        """Until the leader ends; its streams may be held open by background processes, and may hold unread output."""

    async def streams_closed(self) -> None:
        """Until both streams ended (nobody holds them any more). They must be read or discarded for that."""

    async def signal(self, signum: int, *, to: SignalTarget = "group") -> int:
        """Signal the leader, its process group, or all of its session. Returns how many were signalled, 0 = all gone."""


class RunnerPort(Protocol):
    """The exec server in the agent (or verifier) container."""

    @property
    def hello(self) -> Hello:
        """What the runner said when it connected."""

    @property
    def lost(self) -> RunnerLost | None:
        """Why there is no runner any more, None while there is."""

    async def wait_lost(self) -> RunnerLost:
        """Until the runner is gone, also when that is because of `close`."""

    async def spawn(
        self,
        argv: Sequence[Path],
        *,
        env: Mapping[str, str],
        cwd: Path,
        uid: int | None = None,
        gid: int | None = None,
        stdin: bool = False,
        recorded: bool = True,
    ) -> RemoteProcess:
        """Start a program as leader of a session of its own.

        `recorded`: it is the agent's, so it and its descendants stand in the record of commands (see `record`).

        `env` is the whole environment; a program without a slash is looked up in its PATH. With `uid` the supplementary
        groups are dropped and `gid` defaults to `uid`. Without `stdin` it reads end of file. Raises `SpawnFailed`.
        """

    async def run(
        self,
        argv: Sequence[Path],
        *,
        env: Mapping[str, str],
        cwd: Path,
        uid: int | None = None,
        gid: int | None = None,
        input: bytes = b"",
        seconds: float,
        output_limit: int = 1 << 20,
        recorded: bool = False,
    ) -> Completed:
        """Spawn, feed, collect, wait. After `seconds` its whole session is killed and TimeoutError raised.

        Not `recorded` by default: a helper of the session's, not the agent's deed.
        Returns when the leader has ended; output of background processes that hold the streams is not waited for longer
        than one second.
        """

    async def signal_pid(self, pid: int, signum: int, *, to: SignalTarget = "process", start_ticks: int | None = None) -> int:
        """Signal any process of the table (or its group, or its session) but the runner; 0 = not there (any more)."""

    async def procs(self) -> tuple[ProcInfo, ...]:
        """All processes of the pid namespace but the runner, by pid."""

    async def quiesce(self, *, grace: float = 10.0, kill: float = 30.0) -> QuiesceReport:
        """SIGTERM to all, at most `grace` seconds, then SIGKILL until nothing is left, at most `kill` seconds.

        Spawning is refused meanwhile and possible again afterwards.
        """

    async def record(self) -> Recording:
        """Have the commands of every program that is spawned from now on (with `recorded`) written down, as far as it works here.

        Once per runner, before anything of the agent runs. It sets no_new_privs for those programs: setuid programs do not
        work in them. Where it does not work the answer says why, and nothing is changed.
        """

    async def settle_record(self) -> None:
        """Until everything executed before this call has come out of the record's rows, which somebody has to read meanwhile."""

    async def put_file(
        self,
        path: Path,
        data: bytes,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        parents: bool = True,
    ) -> None:
        """Write a file by replacing it in one step. Missing facts are those of the replaced file, else 0644 and the runner's.

        No component may be a symbolic link; parents are made 0755.
        """

    async def put_tree(
        self, dest: Path, source: AsyncIterable[bytes], *, max_bytes: int = 1 << 30, max_entries: int = 100_000
    ) -> RestoreReport:
        """Unpack an uncompressed tar below `dest` (made if missing), nothing outside of it, no link followed."""

    async def get_file(self, path: Path, *, limit: int = 1 << 20) -> bytes:
        """A regular file, no link followed. Raises FileMissing, NotRegular, FileTooLarge, PathRefused."""

    async def scan(
        self,
        globs: Sequence[Path],
        *,
        max_files: int = 10_000,
        max_bytes: int = 64 << 20,
        hash_limit: int = 1 << 20,
        budget: float = 0.5,
    ) -> ScanResult:
        """Entries matching absolute globs (`*`, `?`, `[…]` within a component, `**` for any depth; dot files match too).

        A glob without a wildcard that names a directory lists that directory's own entry alone. Reads at most
        `max_bytes` for hashing, for at most `budget` seconds; never follows a link, never blocks on a FIFO or device.
        """

    async def snapshot(
        self,
        paths: Sequence[Path],
        to: ByteSink,
        *,
        max_bytes: int,
        max_entries: int = 1_000_000,
        exclude: Sequence[Path] = (),
    ) -> SnapshotReport:
        """Stream the paths (files or trees) as one uncompressed tar, names relative to `/`, in sorted order.

        Raises `StateTooLarge`; what `to` got until then is worthless.
        """

    async def manifest(self, to: ByteSink) -> int:
        """Write down the whole root as it is now, as rows for `delta`; how many. Content is not read.

        Left out: the runner's own places, kernel file systems, single files that are mounts (`/etc/hosts`).
        """

    async def delta(
        self,
        base: AsyncIterable[bytes],
        to: ByteSink,
        *,
        max_bytes: int,
        max_entries: int = 1_000_000,
        exclude: Sequence[Path] = (),
    ) -> SnapshotReport:
        """Stream what is new, changed or gone since the manifest `base` as one tar, with extended attributes `user.*` and
        `security.capability`. What became of the paths of `exclude` and below them is left out. Raises `StateTooLarge`; unchanged
        entries count for no limit."""

    async def restore(
        self,
        source: AsyncIterable[bytes],
        *,
        root: Path = "/",
        clear: Sequence[Path] = (),
        max_bytes: int,
        max_entries: int = 1_000_000,
        delta: bool = False,
    ) -> RestoreReport:
        """Put a snapshot back below `root`, after removing the paths of `clear`.

        `delta`: the archive is one of `delta`, which also holds FIFOs, sockets and names to be removed, and leaves the times of
        directories it does not name.
        Raises ArchiveInvalid, PathRefused, StateTooLarge.
        """

    async def close(self) -> None:
        """Let the runner kill everything and end. Idempotent; afterwards every call raises RunnerLost("closed")."""
