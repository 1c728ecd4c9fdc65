"""The whole root as a delta: taken in one container, put into a pristine one, the same afterwards (trust `system`).

The root is an empty one with the toolkit, so that it is small; the tree is changed from outside while the runner looks on.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from realcli.wire.archive import ArchiveReader, Member
from realcli_session.runner import RunnerClient, StateTooLarge

CAPABILITY = b"\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"  # cap_net_raw+ep
LIMITS = {"max_bytes": 64 << 20, "max_entries": 20_000}
OWN = {"proc", "run", "opt"}


class Kept:
    def __init__(self) -> None:
        self.data = bytearray()

    async def write(self, data: bytes, /) -> None:
        self.data += data


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 65536):
        yield bytes(data[start : start + 65536])


def members(archive: bytes) -> dict[str, Member]:
    reader = ArchiveReader()
    found = {os.fsdecode(item.name): item for item in reader.feed(archive) if isinstance(item, Member)}
    reader.finish()
    return found


def listing(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything of the image and all that can be said of it."""
    found: dict[str, tuple[object, ...]] = {}
    inodes: dict[int, str] = {}
    for folder, folders, files in os.walk(root):
        if folder == str(root):
            folders[:] = [name for name in folders if name not in OWN]
        for name in sorted([*folders, *files]):
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            kind = stat.S_IFMT(facts.st_mode)
            what: object = None
            if kind == stat.S_IFREG:
                with open(path, "rb") as file:
                    what = file.read() if facts.st_size < 1 << 20 else facts.st_blocks < 64
                first = inodes.setdefault(facts.st_ino, path)
                what = (what, os.path.relpath(first, root))
            elif kind == stat.S_IFLNK:
                what = os.readlink(path)
            xattrs = tuple((n, os.getxattr(path, n, follow_symlinks=False)) for n in os.listxattr(path, follow_symlinks=False))
            relative = os.path.relpath(path, root)
            found[relative] = (facts.st_mode, facts.st_uid, facts.st_gid, facts.st_mtime_ns, what, xattrs)
    return found


def pristine(image: Path) -> None:
    """What an image holds: the same bytes and times whenever it is made."""
    for name in ("app", "app/deep/er", "kept", "swap/dir", "gone/below", "owned"):
        (image / name).mkdir(parents=True)
    for name in (
        "app/a",
        "app/b",
        "app/deep/er/c",
        "kept/x",
        "swap/file",
        "swap/dir/inside",
        "gone/below/y",
        "gone/z",
        "owned/o",
    ):
        (image / name).write_text(name)
    (image / "swap/link").symlink_to("file")
    os.link(image / "app/a", image / "app/a-too")
    os.setxattr(image / "app/b", "user.note", b"first")
    (image / "owned/ping").write_text("ping")
    os.setxattr(image / "owned/ping", "security.capability", CAPABILITY)
    for path in sorted(image.rglob("*"), reverse=True):
        os.utime(path, ns=(10**18, 10**18), follow_symlinks=False)


def nothing(image: Path) -> None:
    pass


def contents(image: Path) -> None:
    (image / "app/deep/er/c").write_text("other")
    (image / "app/new").write_bytes(b"\0\xff" * 1000)
    with (image / "kept/x").open("r+") as file:  # in place: its directory keeps its time
        file.write("K")


def same_content_other_time(image: Path) -> None:
    (image / "app/b").write_text((image / "app/b").read_text())


def removed(image: Path) -> None:
    shutil.rmtree(image / "gone")
    (image / "app/b").unlink()


def renamed_directory(image: Path) -> None:
    (image / "app").rename(image / "moved")
    (image / "gone").rename(image / "app")


def made_again(image: Path) -> None:
    shutil.rmtree(image / "gone")
    (image / "gone").mkdir()
    (image / "gone/below").mkdir()
    (image / "gone/below/new").write_text("n")


def hard_links(image: Path) -> None:
    os.link(image / "app/deep/er/c", image / "kept/c-too")
    os.link(image / "app/a", image / "kept/a-three")
    (image / "owned/one").write_text("1")
    os.link(image / "owned/one", image / "app/two")


def broken_link(image: Path) -> None:
    (image / "app/a-too").unlink()


def kinds_change(image: Path) -> None:
    swap = image / "swap"
    (swap / "file").unlink()
    (swap / "file").mkdir()
    (swap / "file/child").write_text("c")
    shutil.rmtree(swap / "dir")
    (swap / "dir").symlink_to("/app")
    (swap / "link").unlink()
    (swap / "link").write_text("now a file")


def directory_to_file_and_link_to_directory(image: Path) -> None:
    shutil.rmtree(image / "swap/dir")
    (image / "swap/dir").write_text("flat")
    (image / "swap/link").unlink()
    (image / "swap/link").mkdir()


def fifos_and_sockets(image: Path) -> None:
    os.mkfifo(image / "app/pipe", 0o640)
    os.chown(image / "app/pipe", 5, 6)
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(image / "app")  # a socket's path has 107 bytes
    listener.bind("sock")
    os.chdir(here)
    listener.close()
    (image / "gone/z").unlink()
    os.mkfifo(image / "gone/z")


def names(image: Path) -> None:
    os.mkdir(os.fsencode(image) + b"/\xff\xfe dir\n")
    (Path(os.fsdecode(os.fsencode(image) + b"/\xff\xfe dir\n")) / "x").write_text("x")
    long = image
    for _ in range(12):
        long = long / ("n" * 250)
        here = os.open(long.parent, os.O_DIRECTORY)
        os.mkdir(long.name, dir_fd=here)
        os.close(here)
    (image / "ü").write_text("ü")


def modes_and_owners(image: Path) -> None:
    (image / "owned/o").chmod(0)
    (image / "app/deep").chmod(0)
    os.chown(image / "kept", 1234, 4321)
    os.chown(image / "swap/link", 77, 78, follow_symlinks=False)
    (image / "owned/suid").write_text("#!")
    os.chown(image / "owned/suid", 12, 13)
    (image / "owned/suid").chmod(0o6755)
    os.chown(image / "app/b", 3_000_000_000, 2_147_483_650)


def attributes(image: Path) -> None:
    os.setxattr(image / "app/b", "user.note", b"\x00\xff=\nsecond")
    os.setxattr(image / "app/deep", "user.dir", b"d" * 1000)
    (image / "owned/raw").write_text("raw")
    os.setxattr(image / "owned/raw", "security.capability", CAPABILITY)
    (image / "owned/ping").rename(image / "kept/ping")


def sparse(image: Path) -> None:
    with (image / "app/holes").open("wb") as file:
        file.truncate(40 << 20)


CHANGES: list[Callable[[Path], None]] = [
    nothing, contents, same_content_other_time, removed, renamed_directory, made_again, hard_links, broken_link, kinds_change,
    directory_to_file_and_link_to_directory, fifos_and_sockets, names, modes_and_owners, attributes, sparse,
]  # fmt: skip


@pytest.fixture
def image(empty_root: Path) -> Iterator[Path]:
    clean(empty_root)
    pristine(empty_root)
    yield empty_root
    clean(empty_root)


def clean(root: Path) -> None:
    for name in os.listdir(os.fsencode(root)):
        if os.fsdecode(name) not in OWN:
            path = os.path.join(os.fsencode(root), name)
            subprocess.run(["rm", "-rf", "--", path], check=True)


async def delta_of(client: RunnerClient, change: Callable[[], None], **limits: int) -> bytes:
    base, archive = Kept(), Kept()
    assert await client.manifest(base) > 10
    change()
    await client.delta(chunks(bytes(base.data)), archive, **(LIMITS | limits))
    return bytes(archive.data)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_what_was_changed_is_put_into_a_pristine_root(start, image: Path, change: Callable[[Path], None]) -> None:
    taken = await start("empty")
    archive = await delta_of(taken.client, lambda: change(image))
    await taken.client.close()
    want = listing(image)

    clean(image)
    pristine(image)
    put = await start("empty")
    report = await put.client.restore(chunks(archive), delta=True, **LIMITS)
    got = listing(image)
    # SETFCAP is none of a pod's capabilities: such attributes are named instead
    unset = {path.lstrip("/") for path, name in report.unset if name == "security.capability"}
    assert set(got) == set(want)
    for path, facts in want.items():
        kept = facts if path not in unset else (*facts[:-1], tuple(x for x in facts[-1] if x[0] != "security.capability"))
        assert got[path] == kept, path
    assert unset == ({"owned/raw", "kept/ping"} if change is attributes else set())


async def test_nothing_changed_is_nothing(start, image: Path) -> None:
    running = await start("empty")
    assert members(await delta_of(running.client, lambda: None)) == {}


async def test_only_the_changed_content_is_in_it(start, image: Path) -> None:
    running = await start("empty")
    found = members(await delta_of(running.client, lambda: removed(image)))
    assert {name: member.kind for name, member in found.items()} == {"app": "dir", "app/b": "deleted", "gone": "deleted"}


async def test_what_is_left_out_is_in_it_neither_as_new_nor_as_gone(start, image: Path) -> None:
    running = await start("empty")
    for name in ("own/settings", "own/deep/kept", "other/settings"):
        (image / name).parent.mkdir(parents=True, exist_ok=True)
        (image / name).write_text("the image's")
    base, archive = Kept(), Kept()
    await running.client.manifest(base)
    (image / "own/settings").write_text("secret")
    (image / "own/new").write_text("secret")
    shutil.rmtree(image / "own/deep")
    (image / "other/settings").unlink()
    await running.client.delta(chunks(bytes(base.data)), archive, exclude=["/own", "/not/there"], **LIMITS)
    assert set(members(bytes(archive.data))) == {"other", "other/settings"}
    assert b"secret" not in archive.data
    shutil.rmtree(image / "own")
    archive = Kept()
    await running.client.delta(chunks(bytes(base.data)), archive, exclude=["/own"], **LIMITS)
    assert set(members(bytes(archive.data))) == {"other", "other/settings"}


async def test_a_volume_of_the_image_counts_and_the_pods_files_do_not(start, image: Path) -> None:
    """A mount below the root is part of it; `/etc/hosts` as the kubelet puts it is not."""
    (image / "volume").mkdir()
    (image / "hosts").write_text("the image's")
    taken = await start("empty")
    base, archive = Kept(), Kept()
    inside = await asyncio.to_thread(pid_in, image)
    enter = ["nsenter", "--target", str(inside), "--mount", "--"]
    await asyncio.to_thread(subprocess.run, [*enter, "mount", "-t", "tmpfs", "none", str(image / "volume")], check=True)
    await taken.client.put_file("/volume/first", b"1")
    await taken.client.manifest(base)
    await taken.client.put_file("/volume/second", b"2")
    assert b"kubelet" in await taken.client.get_file("/hosts")
    await taken.client.delta(chunks(bytes(base.data)), archive, **LIMITS)
    assert {name for name in members(bytes(archive.data)) if name != "volume"} == {"volume/second"}
    assert b'/hosts"' not in base.data


def pid_in(root: Path) -> int:
    """The runner's process as the host sees it."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.readlink(f"/proc/{name}/root") == str(root):
                    return int(name)
            except OSError:
                continue
    raise AssertionError("no process has this root")


@pytest.mark.parametrize(
    ("limits", "why"), [({"max_bytes": 1000}, "bytes"), ({"max_entries": 3}, "entries")], ids=["bytes", "entries"]
)
async def test_a_delta_over_a_limit_is_refused(start, image: Path, limits: dict[str, int], why: str) -> None:
    def change() -> None:
        for number in range(5):
            (image / f"app/n{number}").write_bytes(b"x" * 300)

    running = await start("empty")
    with pytest.raises(StateTooLarge) as error:
        await delta_of(running.client, change, **limits)
    assert error.value.limit == why
    assert await running.client.procs() == ()  # it goes on


async def test_a_sparse_terabyte_is_too_large_at_once(start, image: Path) -> None:
    running = await start("empty")

    def change() -> None:
        with (image / "app/huge").open("wb") as file:
            file.truncate(1 << 40)

    with pytest.raises(StateTooLarge):
        await delta_of(running.client, change)
    (image / "app/huge").unlink()


async def test_a_base_that_is_none_is_refused(start, image: Path) -> None:
    running = await start("empty")
    with pytest.raises(Exception, match="base"):
        await running.client.delta(chunks(b"nonsense\n"), Kept(), **LIMITS)


@pytest.mark.slow
async def test_a_million_files(start, image: Path) -> None:
    """Unchanged entries cost no limit; a million new ones are within it, and one more is not."""
    running = await start("empty")

    def fill(folder: Path, count: int) -> None:
        folder.mkdir()
        for number in range(count):
            if number % 1000 == 0:
                (folder / str(number // 1000)).mkdir()
            os.close(os.open(folder / str(number // 1000) / str(number), os.O_CREAT | os.O_WRONLY))

    await asyncio.to_thread(fill, image / "old", 100_000)
    archive = await delta_of(running.client, lambda: None, max_entries=1)
    assert members(archive) == {}
    base, kept = Kept(), Kept()
    await running.client.manifest(base)
    await asyncio.to_thread(fill, image / "new", 1_000_000)
    report = await running.client.delta(chunks(bytes(base.data)), kept, max_bytes=1, max_entries=1_001_002)
    assert report.entries == 1_001_001
    with pytest.raises(StateTooLarge):
        await running.client.delta(chunks(bytes(base.data)), Kept(), max_bytes=1, max_entries=1_000_000)


async def test_a_file_that_is_a_mount_is_written_in_place(start, image: Path) -> None:
    (image / "hosts").write_text("the image's")
    running = await start("empty")
    await running.client.put_file("/hosts", b"127.0.0.1 a.example\n")
    assert await running.client.get_file("/hosts") == b"127.0.0.1 a.example\n"
    assert not [name for name in os.listdir(image) if name.startswith(".realcli-")]
