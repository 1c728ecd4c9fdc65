"""Snapshot and restore: every kind of entry, every hostile archive, every limit."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import os
import socket
import stat
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from realcli.wire import archive
from realcli.wire.archive import Member
from realcli.wire.protocol import ErrorCode
from realcli_session.runner import ArchiveInvalid, PathRefused, RunnerError, StateTooLarge

BIG = 1 << 30


class Sink:
    def __init__(self) -> None:
        self.data = bytearray()

    async def write(self, data: bytes) -> None:
        self.data += data


async def source(data: bytes, size: int = 10_007) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.fixture
def here(pod) -> Path:
    return pod.host_work


def describe(root: Path) -> dict[bytes, tuple[object, ...]]:
    """Everything a restore has to bring back, by relative name; hard links by the first name of their inode."""
    found: dict[bytes, tuple[object, ...]] = {}
    first: dict[int, bytes] = {}
    base = os.fsencode(root)
    for folder, folders, files in os.walk(base):
        for name in sorted([*folders, *files]):
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            relative = os.path.relpath(path, base)
            content: object = None
            if stat.S_ISREG(facts.st_mode):
                content = (first.setdefault(facts.st_ino, relative), Path(os.fsdecode(path)).read_bytes())
            elif stat.S_ISLNK(facts.st_mode):
                content = os.readlink(path)
            found[relative] = (facts.st_mode, facts.st_uid, facts.st_gid, facts.st_mtime_ns, content)
    return found


def a_tree(root: Path) -> None:
    root.mkdir()
    (root / "empty").touch()
    (root / "data").write_bytes(os.urandom(200_000))
    (root / "program").write_bytes(b"#!/bin/sh\n")
    (root / "program").chmod(0o4755)
    os.chown(root / "program", 4321, 99)
    (root / "program").chmod(0o4755)
    os.link(root / "data", root / "zz-second-name")
    (root / "closed").mkdir()
    (root / "closed" / "inside").write_text("x")
    (root / "closed").chmod(0)
    (root / "secret").write_text("s")
    (root / "secret").chmod(0)
    os.symlink("/etc/shadow", root / "absolute-link")
    os.symlink("nowhere", root / "dangling")
    os.lchown(root / "dangling", 4321, 4321)
    os.symlink(b"\xff\xfe", os.fsencode(root) + b"/odd-target")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe name\n")).write_bytes(b"odd")
    long = root
    for _ in range(12):
        long = long / ("d" * 200)
        os.mkdir(long.name, dir_fd=(fd := os.open(long.parent, os.O_RDONLY)))
        os.close(fd)
    (long / "leaf").write_text("leaf")
    with (root / "holes").open("wb") as holes:
        holes.seek(50_000_000)
        holes.write(b"end")
    for number, path in enumerate(sorted(root.iterdir(), key=os.fsencode)):
        os.utime(path, ns=(0, 1_600_000_000_123_456_789 + number), follow_symlinks=False)
    os.utime(root / "empty", ns=(0, -5_500_000_000))


async def test_round_trip(pod, here: Path) -> None:
    a_tree(here / "state")
    before = describe(here / "state")
    sink = Sink()
    report = await pod.client.snapshot([f"{here}/state"], sink, max_bytes=BIG)
    assert (report.entries, report.skipped, report.missing, report.changed) == (len(before) + 1, (), (), ())
    assert report.bytes == sum(
        len(content[1]) for name, (*_, content) in before.items() if isinstance(content, tuple) and content[0] == name
    )
    os.rename(here / "state", here / "original")
    restored = await pod.client.restore(source(bytes(sink.data)), max_bytes=BIG)
    assert (restored.entries, restored.bytes) == (report.entries, report.bytes)
    assert describe(here / "state") == before
    assert (here / "state/holes").stat().st_blocks * 512 < 1_000_000  # still a hole
    again = Sink()
    await pod.client.snapshot([f"{here}/state"], again, max_bytes=BIG)
    assert again.data == sink.data


async def test_tarfile_reads_a_snapshot(pod, here: Path) -> None:
    a_tree(here / "state")
    sink = Sink()
    await pod.client.snapshot([f"{here}/state"], sink, max_bytes=BIG)
    with tarfile.open(fileobj=io.BytesIO(sink.data), errors="surrogateescape") as tar:
        found = {os.fsencode(member.name) for member in tar}
    assert found == {os.fsencode(here)[1:] + b"/state/" + name for name in describe(here / "state")} | {
        os.fsencode(here)[1:] + b"/state"
    }


async def test_what_cannot_be_taken_is_listed(pod, here: Path) -> None:
    (here / "s").mkdir()
    os.mkfifo(here / "s/fifo")
    os.mknod(here / "s/device", 0o20666, os.makedev(1, 5))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"{here}/s/socket")
    os.symlink("s", here / "way")
    sink = Sink()
    report = await pod.client.snapshot([f"{here}/s", f"{here}/way/x", f"{here}/none", f"{here}/none/deeper"], sink, max_bytes=BIG)
    assert dict(report.skipped) == {
        f"{here}/s/fifo": "a FIFO",
        f"{here}/s/device": "a device",
        f"{here}/s/socket": "a socket",
        f"{here}/way/x": f"{here}/way is a symbolic link: name the real path",
    }
    assert (report.skipped_count, report.missing) == (4, (f"{here}/none",))  # the deeper one lies below it
    assert report.entries == 1


async def test_excluded_overlapping_and_single_paths(pod, here: Path) -> None:
    for name in ("s/a", "s/b/c", "s/skip/x", "t"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(name)
    sink = Sink()
    paths = [f"{here}/t", f"{here}/s/b", f"{here}/s", f"{here}/s/"]
    await pod.client.snapshot(paths, sink, max_bytes=BIG, exclude=[f"{here}/s/skip"])
    with tarfile.open(fileobj=io.BytesIO(sink.data)) as tar:
        names = [name.removeprefix(f"{str(here)[1:]}/") for name in tar.getnames()]
    assert names == ["s", "s/a", "s/b", "s/b/c", "t"]


async def test_the_whole_root_leaves_out_kernel_and_runner(start, empty_root: Path) -> None:
    running = await start("empty")
    (empty_root / "app").mkdir()
    (empty_root / "app/result").write_text("42")
    try:
        sink = Sink()
        report = await running.client.snapshot(["/"], sink, max_bytes=BIG)
    finally:
        (empty_root / "app/result").unlink()
        (empty_root / "app").rmdir()
    with tarfile.open(fileobj=io.BytesIO(sink.data)) as tar:
        assert tar.getnames() == ["app", "app/result", "opt", "run"]
    assert dict(report.skipped) == {
        "/opt/realcli": "the runner's own", "/run/realcli": "the runner's own", "/proc": "a kernel file system",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("build", "limits", "limit"),
    [
        (lambda root: sparse(root / "x"), {"max_bytes": BIG}, "bytes"),
        (lambda root: [(root / f"f{n}").write_bytes(bytes(100)) for n in range(11)], {"max_bytes": 1000}, "bytes"),
        (lambda root: [(root / f"f{n}").touch() for n in range(11)], {"max_bytes": BIG, "max_entries": 10}, "entries"),
        (lambda root: deep(root, 250), {"max_bytes": BIG}, "depth"),
        (lambda root: deep(root, 201 - len(root.parts), "file"), {"max_bytes": BIG}, "depth"),
    ],
    ids=["sparse terabyte", "bytes", "entries", "depth", "a file in the deepest directory"],
)
async def test_over_a_limit(pod, here: Path, build: Callable[[Path], object], limits: dict[str, int], limit: str) -> None:
    (here / "s").mkdir()
    build(here / "s")
    with pytest.raises(StateTooLarge) as caught:
        await pod.client.snapshot([f"{here}/s"], Sink(), **limits)
    assert caught.value.limit == limit
    assert f"{here}/s"[-20:] in caught.value.path or limit == "depth"
    assert (await pod.client.get_file("/etc/hostname")) is not None  # the runner goes on


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def deep(root: Path, levels: int, file: str | None = None) -> None:
    fd = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    if file is not None:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, dir_fd=fd))
    os.close(fd)


async def test_whatever_an_archive_may_hold_can_be_restored(pod, here: Path) -> None:
    """The deepest file that is archived is one that is put back."""
    (here / "s").mkdir()
    deep(here / "s", 199 - len(here.parts), "file")
    sink = Sink()
    await pod.client.snapshot([f"{here}/s"], sink, max_bytes=BIG)
    report = await pod.client.restore(source(bytes(sink.data)), root=f"{here}/copy", max_bytes=BIG)
    assert report.entries == 201 - len(here.parts)


async def test_files_that_change_while_they_are_read_keep_the_archive_whole(pod, here: Path) -> None:
    (here / "s").mkdir()
    names = [f"{n:03}" for n in range(40)]
    for name in names:
        (here / "s" / name).write_bytes(b"a" * 500_000)
    script = "while :; do for f in *; do truncate -s 100 $f; truncate -s 600000 $f; done; done"
    await pod.client.spawn(["sh", "-c", script], env={"PATH": "/usr/bin:/bin"}, cwd=f"{here}/s")
    sink = Sink()
    report = await pod.client.snapshot([f"{here}/s"], sink, max_bytes=BIG)
    with tarfile.open(fileobj=io.BytesIO(sink.data)) as tar:
        members = tar.getmembers()
    assert [os.path.basename(member.name) for member in members] == ["s", *names]
    assert sum(member.size for member in members) == report.bytes


async def test_a_slow_sink_slows_the_runner_and_a_failing_one_frees_it(pod, here: Path) -> None:
    (here / "data").write_bytes(bytes(5_000_000))

    class Failing(Sink):
        async def write(self, data: bytes) -> None:
            await super().write(data)
            await asyncio.sleep(0)
            if len(self.data) > 300_000:
                raise OSError("storage is gone")

    for _ in range(10):  # more often than there are workers
        with pytest.raises(OSError, match="storage is gone"):
            await pod.client.snapshot([f"{here}/data"], Failing(), max_bytes=BIG)
    sink = Sink()
    assert (await pod.client.snapshot([f"{here}/data"], sink, max_bytes=BIG)).bytes == 5_000_000


# -- restore -----------------------------------------------------------------------------------------------------------


def tar_of(*items: Member | tuple[Member, bytes]) -> bytes:
    out = []
    for item in items:
        member, content = item if isinstance(item, tuple) else (item, b"")
        out += [archive.header(member), content, archive.padding(len(content))]
    return b"".join([*out, archive.END])


def file(name: str | bytes, content: bytes = b"new", **facts: int) -> tuple[Member, bytes]:
    raw = name if isinstance(name, bytes) else name.encode()
    return Member(raw, "file", size=len(content), **facts), content  # type: ignore[arg-type]


def link(name: str, target: str) -> Member:
    return Member(name.encode(), "symlink", link=target.encode())


HOSTILE = {
    "absolute": [file("{outside}/evil")],
    "dot dot": [file("a/../../evil")],
    "dot dot alone": [Member(b"..", "dir")],
    "empty name": [file("")],
    "root as a file": [file(".")],
    "through a link": [link("way", "{outside}"), file("way/evil")],
    "through a relative link": [link("way", "../outside"), file("way/evil")],
    "through a link of the image": [file("image-link/evil")],
    "through a file": [file("a"), file("a/evil")],
    "hard link to the image": [Member(b"h", "hardlink", link=b"image-file")],
    "hard link outside": [Member(b"h", "hardlink", link=b"../outside/victim")],
    "absolute hard link": [Member(b"h", "hardlink", link=b"{outside}/victim")],
    "hard link to nothing": [Member(b"h", "hardlink", link=b"nothing")],
    "hard link through a link": [link("way", "{outside}"), Member(b"h", "hardlink", link=b"way/victim")],
    "hard link to a link": [link("l", "{outside}/victim"), Member(b"h", "hardlink", link=b"l")],
    "deep": [file("/".join(["d"] * 201))],
}


def aimed(item: Member | tuple[Member, bytes], outside: bytes) -> Member | tuple[Member, bytes]:
    """With the real place for `{outside}`: a restore that is fooled hits the test's own directory."""
    member, content = item if isinstance(item, tuple) else (item, b"")
    name, target = (value.replace(b"{outside}", outside) for value in (member.name, member.link))
    member = dataclasses.replace(member, name=name, link=target)
    return (member, content) if content else member


@pytest.mark.parametrize("items", HOSTILE.values(), ids=HOSTILE)
async def test_hostile_archives_are_refused_and_touch_nothing_outside(pod, here: Path, items: list[Member]) -> None:
    (here / "outside").mkdir()
    (here / "outside/victim").write_text("untouched")
    dest = here / "dest"
    dest.mkdir()
    (dest / "image-file").write_text("of the image")
    os.symlink("../outside", dest / "image-link")
    archived = tar_of(*(aimed(item, os.fsencode(here / "outside")) for item in items))
    with pytest.raises(RunnerError) as caught:
        await pod.client.restore(source(archived), root=str(dest), max_bytes=BIG)
    assert caught.value.code in (ErrorCode.PATH_REFUSED, ErrorCode.NOT_FOUND)
    assert describe(here / "outside").keys() == {b"victim"}
    assert (here / "outside/victim").read_text() == "untouched"
    assert (here / "outside/victim").stat().st_nlink == 1
    assert (dest / "image-file").stat().st_nlink == 1
    assert await pod.client.procs() == ()  # it lives


FOREIGN = {
    "kernel file": file("proc/sys/kernel/x"),
    "kernel directory": file("proc/x/y"),
    "kernel file system itself": file("proc"),
    "runner file": file("opt/realcli/runner/x"),
    "runner directory": Member(b"opt/realcli/x", "dir"),
    "below a new directory of the runner": file("opt/realcli/new/x"),
    "facts of the runner's directory": Member(b"opt/realcli/runner", "dir", mode=0o777),
    "runner as a link": link("opt/realcli", "elsewhere"),
    "above the runner": link("opt", "elsewhere"),
    "socket folder": file("run/realcli/session.sock"),
}


@pytest.mark.parametrize("item", FOREIGN.values(), ids=FOREIGN)
async def test_kernel_and_runner_are_not_restored_into(start, empty_root: Path, item: Member) -> None:
    running = await start("empty")
    before = describe(empty_root / "opt")
    with pytest.raises(PathRefused):
        await running.client.restore(source(tar_of(item)), max_bytes=BIG)
    assert describe(empty_root / "opt") == before
    assert (await running.client.run([*running.python, "-c", ""], env={}, cwd="/", seconds=60)).status.code == 0


async def test_what_is_in_the_way_is_replaced_never_written_through(pod, here: Path) -> None:
    dest = here / "dest"
    dest.mkdir()
    (here / "victim").write_text("untouched")
    os.symlink(here / "victim", dest / "link-to-file")
    os.link(here / "victim", dest / "hard-link")
    os.symlink(here, dest / "link-to-dir")
    (dest / "full").mkdir()
    (dest / "full/x").touch()
    os.symlink(here, dest / "full/out")
    os.mkfifo(dest / "fifo")
    (dest / "kept").mkdir()
    (dest / "kept/of-the-image").touch()
    (dest / "was-file").touch()
    items = [
        file("link-to-file"), file("hard-link"), file("fifo"), file("full"), Member(b"link-to-dir", "dir"),
        file("link-to-dir/inside"),
        Member(b"kept", "dir", mode=0o700), Member(b"was-file", "dir"), link("was-file/l", "x"),
    ]  # fmt: skip
    await pod.client.restore(source(tar_of(*items)), root=str(dest), max_bytes=BIG)
    assert (here / "victim").read_text() == "untouched"
    assert sorted(os.listdir(here)) == ["dest", "victim"]
    assert {name for name, facts in describe(dest).items() if stat.S_ISREG(facts[0])} == {  # type: ignore[arg-type]
        b"link-to-file", b"hard-link", b"fifo", b"full", b"link-to-dir/inside", b"kept/of-the-image",
    }  # fmt: skip
    assert (dest / "kept").stat().st_mode & 0o7777 == 0o700
    assert os.readlink(dest / "was-file/l") == "x"


async def test_clear_removes_what_the_state_does_not_have(pod, here: Path) -> None:
    (here / "app/old").mkdir(parents=True)
    (here / "app/old/x").touch()
    (here / "target").mkdir()
    (here / "target/kept").touch()
    os.symlink(here / "target", here / "app/link")
    (here / "beside").touch()
    tar = tar_of(Member(str(here / "app")[1:].encode(), "dir"), file(str(here / "app/new")[1:]))
    await pod.client.restore(source(tar), clear=[f"{here}/app", f"{here}/none/such"], max_bytes=BIG)
    assert describe(here).keys() == {b"app", b"app/new", b"beside", b"target", b"target/kept"}


@pytest.mark.parametrize("path", ["/", "/opt", "/opt/realcli", "/opt/realcli/runner", "/proc", "/proc/sys", "/run"])
async def test_what_is_never_cleared(start, empty_root: Path, path: str) -> None:
    running = await start("empty")
    with pytest.raises(PathRefused):
        await running.client.restore(source(tar_of()), clear=[path], max_bytes=BIG)
    assert (await running.client.run([*running.python, "-c", ""], env={}, cwd="/", seconds=60)).status.code == 0


async def test_limits_of_restore(pod, here: Path) -> None:
    for limits in ({"max_bytes": 5}, {"max_bytes": 100, "max_entries": 1}):
        with pytest.raises(StateTooLarge):
            await pod.client.restore(source(tar_of(file("a"), file("b"))), root=f"{here}/d", **limits)
    bomb = archive.header(Member(b"bomb", "file", size=1 << 45))
    with pytest.raises(StateTooLarge):
        await pod.client.restore(source(bomb + bytes(3_000_000)), root=f"{here}/d", max_bytes=BIG)


def device() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("d")
        info.type, info.devmajor, info.devminor = tarfile.CHRTYPE, 1, 5
        tar.addfile(info)
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [b"", b"x" * 512, archive.header(Member(b"a", "file", size=5)) + b"abc", device(), tar_of(file("a"))[:-1024]],
    ids=["nothing", "garbage", "cut", "device", "no end"],
)
async def test_archives_that_are_none(pod, here: Path, data: bytes) -> None:
    with pytest.raises(ArchiveInvalid):
        await pod.client.restore(source(data), root=f"{here}/d", max_bytes=BIG)


async def test_a_source_that_fails_leaves_the_runner_free(pod, here: Path) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield archive.header(Member(b"a", "file", size=5_000_000))
        yield bytes(400_000)
        raise OSError("storage is gone")

    for _ in range(10):
        with pytest.raises(OSError, match="storage is gone"):
            await pod.client.restore(failing(), root=f"{here}/d", max_bytes=BIG)
    await pod.client.restore(source(tar_of(file("x"))), root=f"{here}/d", max_bytes=BIG)
    assert (here / "d/x").read_bytes() == b"new"


async def test_put_tree_takes_what_tarfile_writes(pod, here: Path, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test.sh").write_text("#!/bin/sh\n")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(tmp_path / "tests", arcname=".")
    report = await pod.client.put_tree(f"{here}/new/tests", source(out.getvalue()))
    assert report.entries == 2
    assert (here / "new/tests/test.sh").read_text() == "#!/bin/sh\n"
