"""Single files and scans in a file system that somebody hostile arranged."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import pytest

from realcli.wire.protocol import ErrorCode
from realcli_session.runner import FileMissing, FileTooLarge, NotRegular, PathRefused, RunnerError


@pytest.fixture
def here(pod) -> Path:
    return pod.host_work


async def test_a_file_goes_in_and_comes_back(pod, here: Path) -> None:
    data = os.urandom(700_000)
    await pod.client.put_file(f"{here}/a/b/c.bin", data)
    assert await pod.client.get_file(f"{here}/a/b/c.bin") == data
    facts = (here / "a/b/c.bin").stat()
    assert (facts.st_mode & 0o7777, facts.st_uid) == (0o644, 0)
    assert (here / "a/b").stat().st_mode & 0o7777 == 0o755
    await pod.client.put_file(f"{here}/x", b"", mode=0o600, uid=4321, gid=99)
    facts = (here / "x").stat()
    assert (facts.st_size, facts.st_mode & 0o7777, facts.st_uid, facts.st_gid) == (0, 0o600, 4321, 99)


async def test_replacing_keeps_the_facts_and_leaves_nothing_beside_it(pod, here: Path) -> None:
    target = here / "config"
    target.write_bytes(b"old")
    os.chown(target, 4321, 4321)
    target.chmod(0o751)
    os.link(target, here / "other-name")
    await pod.client.put_file(str(target), b"new")
    facts = target.stat()
    assert (facts.st_mode & 0o7777, facts.st_uid, facts.st_gid) == (0o751, 4321, 4321)
    assert (here / "other-name").read_bytes() == b"old"  # not written through
    assert sorted(os.listdir(here)) == ["config", "other-name"]


async def test_names_that_are_not_utf8(pod, here: Path) -> None:
    path = os.fsencode(here) + b"/\xff\xfe"
    await pod.client.put_file(path, b"1")
    assert await pod.client.get_file(path) == b"1"
    assert await pod.client.get_file(os.fsdecode(path)) == b"1"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("missing", FileMissing),
        ("missing/deeper", FileMissing),
        ("dir", NotRegular),
        ("fifo", NotRegular),
        ("socket", NotRegular),
        ("device", NotRegular),
        ("link", NotRegular),
        ("dirlink/file", PathRefused),
        ("file/below", PathRefused),
        ("dir/../file", PathRefused),
        ("big", FileTooLarge),
        ("sparse", FileTooLarge),
    ],
)
async def test_what_is_not_read(pod, here: Path, name: str, error: type[Exception]) -> None:
    hostile(here)
    with pytest.raises(error) as caught:
        await pod.client.get_file(f"{here}/{name}", limit=100)
    assert name.split("/")[0] in str(caught.value)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("dir", NotRegular),
        ("fifo", NotRegular),
        ("link", PathRefused),
        ("dirlink/file", PathRefused),
        ("dir/../file", PathRefused),
        ("file/below", PathRefused),
        ("dir/", NotRegular),
    ],
)
async def test_what_is_not_written(pod, here: Path, name: str, error: type[Exception]) -> None:
    hostile(here)
    before = (here / "file").read_bytes()
    with pytest.raises(error):
        await pod.client.put_file(f"{here}/{name}", b"x" * 1_000_000)
    assert (here / "file").read_bytes() == before
    with pytest.raises(PathRefused):
        await pod.client.put_file("relative", b"")
    with pytest.raises(FileMissing):
        await pod.client.put_file(f"{here}/no/parent", b"", parents=False)


def hostile(here: Path) -> None:
    (here / "dir").mkdir()
    (here / "file").write_bytes(b"content")
    (here / "big").write_bytes(bytes(101))
    with (here / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    os.mkfifo(here / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"{here}/socket")
    os.mknod(here / "device", 0o20666, os.makedev(1, 5))
    os.symlink("file", here / "link")
    os.symlink(".", here / "dirlink")


async def test_a_scan_sees_everything_and_touches_nothing(pod, here: Path) -> None:
    hostile(here)
    os.unlink(here / "sparse")
    (here / "dir" / "deep").mkdir()
    (here / "dir" / "deep" / "x.py").write_bytes(b"print()")
    (here / "dir" / os.fsdecode(b"\xff")).write_bytes(b"1")
    result = await pod.client.scan([f"{here}/**"], hash_limit=100, budget=60)
    assert (result.complete, result.stopped_by, result.unreadable) == (True, None, ())
    seen = {entry.raw.removeprefix(os.fsencode(here) + b"/"): entry for entry in result.entries}
    assert {name: entry.kind for name, entry in seen.items()} == {
        b"dir": "dir", b"dir/\xff": "file", b"dir/deep": "dir", b"dir/deep/x.py": "file", b"file": "file", b"big": "file",
        b"fifo": "fifo",
        b"socket": "socket", b"device": "char", b"link": "symlink", b"dirlink": "symlink",
    }  # fmt: skip
    assert seen[b"file"].sha256 == hashlib.sha256(b"content").hexdigest()
    assert (seen[b"big"].sha256, seen[b"big"].size) == (None, 101)
    assert seen[b"link"].link == b"file"
    assert seen[b"dir/\xff"].path.endswith("dir/\\xff")
    facts = (here / "file").stat()
    assert (seen[b"file"].mtime_ns, seen[b"file"].mode) == (facts.st_mtime_ns, facts.st_mode & 0o7777)


async def test_globs_choose(pod, here: Path) -> None:
    for name in ("a.py", "b.txt", "sub/c.py", "sub/deep/d.py"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).touch()

    async def names(*globs: str) -> list[str]:
        result = await pod.client.scan([f"{here}/{glob}" for glob in globs], budget=60)
        return [entry.path.removeprefix(f"{here}/") for entry in result.entries]

    assert await names("*.py") == ["a.py"]
    assert await names("**/*.py") == ["a.py", "sub/c.py", "sub/deep/d.py"]
    assert await names("sub") == ["sub"]
    assert await names("sub/*", "a.py", "*.py") == ["a.py", "sub/c.py", "sub/deep"]
    assert await names("missing/*") == []


@pytest.mark.parametrize(
    ("limits", "stopped"),
    [({"max_files": 3}, "files"), ({"max_bytes": 25}, "bytes"), ({"budget": 0.0}, "time"), ({"max_files": 10}, None)],
)
async def test_limits_are_told(pod, here: Path, limits: dict[str, float], stopped: str | None) -> None:
    for number in range(10):
        (here / f"f{number}").write_bytes(bytes(10))
    result = await pod.client.scan([f"{here}/*"], **({"budget": 60.0} | limits))
    assert (result.stopped_by, result.complete) == (stopped, stopped is None)
    assert len(result.entries) == {"files": 3, "bytes": 2, "time": 0, None: 10}[stopped]


async def test_a_link_on_the_way_is_named_not_followed(pod, here: Path) -> None:
    (here / "real").mkdir()
    (here / "real" / "x").touch()
    os.symlink("real", here / "way")
    result = await pod.client.scan([f"{here}/way/x"], budget=60)
    assert result.entries == ()
    assert "symbolic link" in result.unreadable[0]


async def test_the_kernels_file_systems_and_the_runners_directories_are_not_scanned(pod) -> None:
    result = await pod.client.scan(["/proc/*", "/sys/**", "/dev/*"], budget=60)
    assert (result.entries, result.complete) == ((), True)


@pytest.mark.parametrize("glob", ["relative/*", "/a/../b", "/"])
async def test_a_bad_glob_is_refused(pod, glob: str) -> None:
    with pytest.raises(RunnerError) as caught:
        await pod.client.scan([glob])
    assert caught.value.code in (ErrorCode.BAD_REQUEST, ErrorCode.PATH_REFUSED)
