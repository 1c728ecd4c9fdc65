"""Archives: what we write the standard tarfile reads, what it writes we read, any cut, any damage."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.wire import archive
from realcli.wire.archive import MAX_EXTENSION, MAX_ID, MAX_SECONDS, ArchiveError, ArchiveReader, Member, MemberKind

name_bytes = st.binary(min_size=1, max_size=20).filter(lambda b: not {0, 0x2F} & set(b))
names = st.lists(name_bytes, min_size=1, max_size=20).map(b"/".join)
times = st.integers(-MAX_SECONDS * 10**9, MAX_SECONDS * 10**9)
ids = st.integers(0, MAX_ID)
modes = st.integers(0, 0o7777)


@st.composite
def members(draw: st.DrawFn) -> tuple[Member, bytes]:
    kind = draw(st.sampled_from(["file", "dir", "symlink", "hardlink"]))
    content = draw(st.binary(max_size=1500)) if kind == "file" else b""
    link = draw(names) if kind in ("symlink", "hardlink") else b""
    facts = Member(draw(names), kind, len(content), draw(modes), draw(ids), draw(ids), draw(times), link)
    return facts, content


def written(items: list[tuple[Member, bytes]]) -> bytes:
    parts = []
    for member, content in items:
        parts += [archive.header(member), content, archive.padding(len(content))]
    return b"".join([*parts, archive.END])


def read(data: bytes, sizes: list[int] | None = None) -> list[tuple[Member, bytes]]:
    reader = ArchiveReader()
    found: list[tuple[Member, bytes]] = []
    start = 0
    for size in [*(sizes or []), len(data)]:
        for item in reader.feed(data[start : start + size]):
            if isinstance(item, Member):
                found.append((item, b""))
            else:
                found[-1] = (found[-1][0], found[-1][1] + item)
        start += size
    reader.finish()
    return found


@given(st.lists(members(), max_size=5), st.lists(st.integers(0, 700), max_size=30))
def test_round_trip_with_any_split(items: list[tuple[Member, bytes]], sizes: list[int]) -> None:
    assert read(written(items), sizes) == items


@given(st.lists(members(), max_size=5))
def test_tarfile_reads_what_we_write(items: list[tuple[Member, bytes]]) -> None:
    types = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "symlink": tarfile.SYMTYPE, "hardlink": tarfile.LNKTYPE}
    with tarfile.open(fileobj=io.BytesIO(written(items)), encoding="utf-8", errors="surrogateescape") as tar:
        infos = tar.getmembers()
        assert len(infos) == len(items)
        for info, (member, content) in zip(infos, items, strict=True):
            assert info.name.encode("utf-8", "surrogateescape") == member.name
            assert (info.type, info.mode, info.uid, info.gid) == (types[member.kind], member.mode, member.uid, member.gid)
            assert info.mtime == pytest.approx(member.mtime_ns / 1e9, abs=1e-3)
            if member.link:
                assert info.linkname.encode("utf-8", "surrogateescape") == member.link
            if member.kind == "file":
                assert tar.extractfile(info).read() == content  # type: ignore[union-attr]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_we_read_what_tarfile_writes(form: int) -> None:
    long = "d" * 60 + "/" + "e" * 90 if form == tarfile.USTAR_FORMAT else "d" * 90 + "/" + "ü" * 100
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        info = tarfile.TarInfo(long)
        info.size, info.mode, info.mtime = 3, 0o4755, 1_700_000_000
        info.uid = 5_000_000 if form == tarfile.GNU_FORMAT else 7
        tar.addfile(info, io.BytesIO(b"abc"))
        link = tarfile.TarInfo("l")
        link.type, link.linkname = tarfile.SYMTYPE, "t" * (90 if form == tarfile.USTAR_FORMAT else 150)
        tar.addfile(link)
        fifo = tarfile.TarInfo("f")
        fifo.type = tarfile.FIFOTYPE
        tar.addfile(fifo)
    (file, content), (symlink, _), (other, _) = read(out.getvalue())
    assert (file.name, file.kind, content) == (long.encode(), "file", b"abc")
    assert (file.mode, file.mtime_ns, file.uid) == (0o4755, 1_700_000_000 * 10**9, info.uid)
    assert (symlink.kind, symlink.link) == ("symlink", link.linkname.encode())
    assert other.kind == "fifo"


def test_sizes_of_a_terabyte_and_times_beyond_the_calendar() -> None:
    far = Member(b"x", "dir", mtime_ns=(1 << 62) * 4)
    assert read(archive.header(far) + archive.END)[0][0].mtime_ns == MAX_SECONDS * 10**9
    reader = ArchiveReader()
    assert list(reader.feed(archive.header(Member(b"big", "file", size=1 << 40)))) == [Member(b"big", "file", size=1 << 40)]


@given(st.lists(members(), min_size=1, max_size=3), st.data())
def test_damage_is_an_archive_error_or_other_members_never_a_crash(
    items: list[tuple[Member, bytes]], data: st.DataObject
) -> None:
    raw = bytearray(written(items))
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(raw)))
    try:
        read(bytes(raw[:end]))
    except ArchiveError:
        return


@given(st.binary(min_size=1, max_size=2000).filter(lambda b: b.strip(b"\0")))
def test_garbage_is_an_archive_error(raw: bytes) -> None:
    with pytest.raises(ArchiveError):
        read(raw)


def extension(kind: bytes, content: bytes, size: int | None = None) -> bytes:
    block = archive._block(b"x", kind, size=len(content) if size is None else size, mode=0, uid=0, gid=0, mtime=0, link=b"")
    return block + content + archive.padding(len(content))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (extension(b"x", b"", MAX_EXTENSION + 1), "at most"),
        (extension(b"L", b"", 8**11 - 1), "at most"),
        (extension(b"x", b"12 path=a"), "damaged"),
        (extension(b"x", b"nonsense"), "length"),
        (extension(b"x", b"22 GNU.sparse.major=1\n"), "sparse"),
        (extension(b"x", b"12 size=abc\n") + archive.header(Member(b"a", "file")), "size"),
        (extension(b"x", b"14 mtime=1e9x\n") + archive.header(Member(b"a", "file")), "mtime"),
        (extension(b"x", b"11 path=a\0\n") + archive.header(Member(b"a", "file")), "NUL"),
        (extension(b"S", b""), "not supported"),
        (extension(b"x", b"") + archive.header(Member(b"a", "file", size=5)) + b"abc", "cut short"),
    ],
)
def test_what_is_refused(blocks: bytes, message: str) -> None:
    with pytest.raises(ArchiveError, match=message):
        read(blocks)


def test_global_records_do_not_pile_up() -> None:
    reader = ArchiveReader()
    for number in range(2000):
        record = b"comment%d=%s" % (number, b"x" * 1000)
        list(reader.feed(extension(b"g", b"%d %s\n" % (len(record) + 6, record))))
    assert len(reader._global) == 0
    assert len(reader._buffer) == 0


@pytest.mark.parametrize("kind", ["fifo", "socket", "deleted"])
def test_kinds_that_tar_has_no_word_for_come_back(kind: MemberKind) -> None:
    member = Member(b"d/\xff", kind, mode=0o640, uid=7, gid=8, mtime_ns=5)
    assert read(written([(member, b"")])) == [(member, b"")]


def test_attributes_come_back_whatever_bytes_they_have() -> None:
    attributes = ((b"security.capability", b"\x01\x00\n=\xff"), (b"user.=%3Dx", b""))
    member = Member(b"f", "file", size=1, xattrs=attributes)
    assert read(written([(member, b"x")])) == [(member, b"x")]


def test_a_kind_that_is_not_known_is_refused() -> None:
    with pytest.raises(ArchiveError, match="not known"):
        read(written([(Member(b"x", "deleted"), b"")]).replace(b"REALCLI.kind=deleted", b"REALCLI.kind=xeleted"))
