"""Repositories byte by byte: loose objects, packs, indexes, deltas, references, and what is refused of each."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from realcli.checks.git import GitUnreadable, Repository, objects, repositories
from realcli.checks.git import repository as module
from realcli.checks.git.objects import Blob, Store

GIT = "/r/.git"
Files = dict[str, bytes]


def loose(kind: str, data: bytes) -> tuple[bytes, Files]:
    raw = b"%s %d\0" % (kind.encode(), len(data)) + data
    id = hashlib.sha1(raw, usedforsecurity=False).digest()
    return id, {f"{GIT}/objects/{id.hex()[:2]}/{id.hex()[2:]}": zlib.compress(raw)}


def header(kind: int, size: int) -> bytes:
    first, size = kind << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    return bytes([*out, first])


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def back(distance: int) -> bytes:
    out = [distance & 0x7F]
    while distance := distance >> 7:
        distance -= 1
        out.append(distance & 0x7F | 0x80)
    return bytes(reversed(out))


def literal(base: bytes, text: bytes) -> bytes:
    """A delta that says its result literally."""
    parts = [text[at : at + 127] for at in range(0, len(text), 127)]
    return varint(len(base)) + varint(len(text)) + b"".join(bytes([len(part)]) + part for part in parts)


def name(number: int) -> bytes:
    return number.to_bytes(20, "big")


class Pack:
    """Entries one after the other; `index` of either version, offsets of version 2 in the large table where `far`."""

    def __init__(self) -> None:
        self.data = b"PACK" + struct.pack(">II", 2, 0)
        self.at: dict[bytes, int] = {}

    def add(self, id: bytes, kind: int, content: bytes, before: bytes = b"") -> Pack:
        self.at[id] = len(self.data)
        self.data += header(kind, len(content)) + before + zlib.compress(content)
        return self

    def offset(self, id: bytes, base: bytes, delta: bytes) -> Pack:
        return self.add(id, 6, delta, back(len(self.data) - self.at[base]))

    def index(self, version: int = 2, far: bool = False) -> bytes:
        ids = sorted(self.at)
        fan = b"".join(struct.pack(">I", sum(id[0] <= byte for id in ids)) for byte in range(256))
        if version == 1:
            return fan + b"".join(struct.pack(">I", self.at[id]) + id for id in ids) + bytes(40)
        small = b"".join(struct.pack(">I", 0x80000000 | n if far else self.at[id]) for n, id in enumerate(ids))
        large = b"".join(struct.pack(">Q", self.at[id]) for id in ids) if far else b""
        return b"\xfftOc\0\0\0\2" + fan + b"".join(ids) + bytes(4 * len(ids)) + small + large + bytes(40)

    def files(self, **how: Any) -> Files:
        return {f"{GIT}/objects/pack/pack-1.pack": self.data, f"{GIT}/objects/pack/pack-1.idx": self.index(**how)}


def store(files: Files) -> Store:
    return Store(GIT, frozenset(files), files.get)


def repository(files: Files) -> Repository:
    (found,) = repositories(files, files.get)
    return found


BASE = b"the text that others are deltas of"


@pytest.mark.parametrize("how", [{"version": 1}, {"version": 2}, {"version": 2, "far": True}], ids=str)
def test_a_pack_of_every_kind(how: dict[str, Any]) -> None:
    pack = Pack().add(name(3), 3, BASE).add(name(1), 1, b"tree \n").add(name(2), 2, b"").add(name(4), 4, b"object \n")
    pack.add(name(5), 3, bytes(range(256)) * 300)  # a size of several bytes, and what follows lies far from the first
    pack.offset(name(6), name(3), literal(BASE, b"a delta over a distance of several bytes"))
    pack.add(name(7), 7, literal(b"a delta over a distance of several bytes", b"a delta on a delta"), name(6))
    got = store(pack.files(**how))
    assert [got.get(name(number)) for number in range(1, 8)] == [
        Blob("commit", b"tree \n"), Blob("tree", b""), Blob("blob", BASE), Blob("tag", b"object \n"),
        Blob("blob", bytes(range(256)) * 300), Blob("blob", b"a delta over a distance of several bytes"),
        Blob("blob", b"a delta on a delta"),
    ]  # fmt: skip
    assert set(got.ids()) == {name(number) for number in range(1, 8)}
    assert got.get(name(8)) is None


@pytest.mark.parametrize("distance", [1, 127, 128, 16_511, 16_512, 3_000_000])
def test_distances(distance: int) -> None:
    assert objects._entry_back(back(distance), 0) == (distance, len(back(distance)))


@pytest.mark.parametrize("size", [0, 15, 16, 2047, 2048, 300_000])
@pytest.mark.parametrize("kind", [1, 4, 7])
def test_kinds(kind: int, size: int) -> None:
    assert objects._entry_kind(b"x" + header(kind, size), 1) == (kind, 1 + len(header(kind, size)))


@pytest.mark.parametrize("size", [0, 127, 128, 20_000, 3_000_000])
def test_sizes(size: int) -> None:
    assert objects._size(b"x" + varint(size), 1) == (size, 1 + len(varint(size)))


LONG = bytes(number % 251 for number in range(70_000))
DELTAS: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "literal": (b"\3abc", b"abc"),
    "one byte of place and length": (b"\x91\5\2", LONG[5:7]),
    "two bytes of each": (b"\xb3\1\1\2\1", LONG[257 : 257 + 258]),
    "three bytes of place, none of length": (b"\x84\1", LONG[65_536:]),
    "no length is 64 KiB": (b"\x80", LONG[:65_536]),
    "three bytes of length": (b"\xc0\1", LONG[:65_536]),
    "a copy, then a literal": (b"\x90\2\1z", LONG[:2] + b"z"),
}


@pytest.mark.parametrize("told", DELTAS)
def test_deltas(told: str) -> None:
    commands, made = DELTAS[told]
    assert objects._applied(LONG, varint(len(LONG)) + varint(len(made)) + commands) == made


FAULTY: dict[str, bytes] = {
    "a command of nothing": varint(9) + varint(2) + b"\2ab\0",
    "too long": varint(9) + varint(1) + b"\2ab",
    "too short": varint(9) + varint(3) + b"\2ab",
    "one over, and more": varint(9) + varint(1) + b"\2ab\0",
}


@pytest.mark.parametrize("told", FAULTY)
def test_faulty_deltas(told: str) -> None:
    with pytest.raises(GitUnreadable, match="a delta "):
        objects._applied(b"123456789", FAULTY[told])


def test_what_a_pack_may_not_hold() -> None:
    one = Pack().add(name(1), 3, BASE)
    for told, pack, match in (
        ("a distance of nothing", Pack().add(name(1), 3, BASE).add(name(2), 6, b"", b"\0"), "not in the pack"),
        ("before the pack", Pack().add(name(1), 6, b"", back(13)), "not in the pack"),
        ("of what is not there", Pack().add(name(1), 7, literal(b"", b"x"), name(9)), "not there"),
        ("a kind that is none", Pack().add(name(1), 5, b""), "damaged at 12"),
        ("of itself", Pack().add(name(1), 7, literal(b"", b"x"), name(1)), "deltas on each other"),
    ):
        with pytest.raises(GitUnreadable, match=match):
            store(pack.files()).get(max(pack.at)), told
    for cut in (1, len(one.data) - 12):
        with pytest.raises(GitUnreadable):
            store(one.files() | {f"{GIT}/objects/pack/pack-1.pack": one.data[:-cut]}).get(name(1))
    without = {path: data for path, data in one.files().items() if path.endswith(".pack")}
    with pytest.raises(GitUnreadable, match=r"pack-1\.idx is not there"):
        store(without).get(name(1))


def test_the_start_of_a_pack_may_be_a_base() -> None:
    """Of a distance as long as the offset: the first byte of the file, whatever stands there."""
    pack = Pack()
    pack.data = header(3, len(BASE)) + zlib.compress(BASE)
    pack.at[name(1)] = 0
    pack.offset(name(2), name(1), literal(BASE, b"next"))
    assert store(pack.files()).get(name(2)) == Blob("blob", b"next")


def chain(length: int, by_name: bool) -> Pack:
    pack = Pack().add(name(1), 3, b"0")
    for number in range(2, length + 2):
        delta = literal(b"0", str(number).encode())
        if by_name:
            pack.add(name(number), 7, delta, name(number - 1))
        else:
            pack.offset(name(number), name(number - 1), delta)
    return pack


@pytest.mark.parametrize("by_name", [True, False])
def test_chains_are_bounded(by_name: bool) -> None:
    assert store(chain(objects.MAX_CHAIN, by_name).files()).get(name(objects.MAX_CHAIN + 1)) == Blob("blob", b"65")
    with pytest.raises(GitUnreadable, match="deltas on each other"):
        store(chain(objects.MAX_CHAIN + 1, by_name).files()).get(name(objects.MAX_CHAIN + 2))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\0", lambda data: data[:600], lambda data: b""])
def test_indexes_of_another_length(version: int, change: Callable[[bytes], bytes]) -> None:
    pack = Pack().add(name(1), 3, BASE).add(name(2), 3, b"x")
    index = change(pack.index(version))
    with pytest.raises(GitUnreadable, match="no index of a pack"):
        store({**pack.files(), f"{GIT}/objects/pack/pack-1.idx": index}).get(name(1))


def test_an_index_with_a_larger_table_than_it_has_names() -> None:
    for count in (1, 8):
        pack = Pack()
        for number in range(1, count + 1):
            pack.add(name(number), 3, BASE)
        assert store({**pack.files(), f"{GIT}/objects/pack/pack-1.idx": pack.index() + bytes(8 * count)}).get(name(1)) is not None
        with pytest.raises(GitUnreadable, match="no index of a pack"):
            store({**pack.files(), f"{GIT}/objects/pack/pack-1.idx": pack.index() + bytes(8 * count + 8)}).get(name(1))


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    id, files = loose("blob", b"x" * 93)  # 101 bytes with its header
    monkeypatch.setattr(objects, "MAX_OBJECT", 101)
    assert store(files).get(id) == Blob("blob", b"x" * 93)
    monkeypatch.setattr(objects, "MAX_OBJECT", 100)
    with pytest.raises(GitUnreadable, match="unpacks to more"):
        store(files).get(id)
    monkeypatch.setattr(objects, "MAX_OBJECT", 500)
    assert objects._applied(b"", literal(b"", b"x" * 500)) == b"x" * 500
    with pytest.raises(GitUnreadable, match="larger than is read"):
        objects._applied(b"", literal(b"", b"x" * 501))


def test_all_that_is_read_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    (first, one), (second, two) = loose("blob", b"x" * 93), loose("blob", b"y" * 93)
    for limit, refused in ((202, False), (201, True)):
        monkeypatch.setattr(objects, "MAX_TOTAL", limit)
        both = store(one | two)
        assert both.get(first) is not None
        assert both.get(first) is not None  # it is read once
        if refused:
            with pytest.raises(GitUnreadable, match="unpacks to more"):
                both.get(second)
        else:
            assert both.get(second) is not None
    pack = Pack().add(name(1), 3, b"x" * 30).add(name(2), 3, b"z" * 30)
    for limit, refused in ((len(pack.data) + 60, False), (len(pack.data) + 59, True)):
        monkeypatch.setattr(objects, "MAX_TOTAL", limit)
        packed = store(pack.files())
        assert packed.get(name(1)) is not None
        if refused:
            with pytest.raises(GitUnreadable):
                packed.get(name(2))
        else:
            assert packed.get(name(2)) is not None  # the pack counts once


def test_loose_objects() -> None:
    id, files = loose("tag", b"x\0y")
    (path,) = files
    assert store(files).get(id) == Blob("tag", b"x\0y")
    for damaged in (zlib.compress(b"tag 3"), zlib.compress(b"tale 1\0x"), files[path][:-1], b"", files[path][:-6] + b"\0" * 6):
        with pytest.raises(GitUnreadable):
            store({path: damaged}).get(id)


def test_names_of_loose_objects() -> None:
    good = {f"{GIT}/objects/ab/{'0' * 38}", f"{GIT}/objects/ab/{'0' * 62}"}
    other = {
        f"{GIT}/objects/ab/{'0' * 37}", f"{GIT}/objects/ab/{'0' * 63}", f"{GIT}/objects/abc/{'0' * 38}",
        f"{GIT}/objects/ab/0/{'0' * 38}", f"{GIT}/objects/ag/{'0' * 38}", f"{GIT}/other/ab/{'0' * 38}",
    }  # fmt: skip
    found = list(store(dict.fromkeys(good | other, b"")).ids())
    assert sorted(found) == [bytes.fromhex("ab" + "00" * 19), bytes.fromhex("ab" + "00" * 31)]


# ------------------------------------------------------------------------------------------------------------- references
A, B, C = (bytes([number]) * 20 for number in (0xA, 0xB, 0xC))
OBJECT = loose("blob", b"text")[1]


def at(files: dict[str, str]) -> Repository:
    return repository(OBJECT | {f"{GIT}/{path}": text.encode() for path, text in files.items()})


def test_references() -> None:
    found = at({
        "HEAD": "ref: refs/heads/main\n",
        "packed-refs": f"# with: peeled\n{A.hex()} refs/heads/old\n{A.hex()} refs/heads/main\n^{C.hex()}\nxyz refs/tags/no\n",
        "refs/heads/main": f"{B.hex()}\n", "refs/heads/main.lock": "junk", "refs/remotes/o/HEAD": "ref: refs/remotes/o/main",
        "worktrees/w/HEAD": C.hex(), "worktrees/w/logs/HEAD": f"{A.hex()} {A.hex()} x", "worktrees/v/HEAD": "ref: refs/heads/x",
        "worktrees/w/ORIG_HEAD": A.hex(), "ORIG_HEAD": A.hex(),
    }).refs()  # fmt: skip
    assert found == {"refs/heads/old": A, "refs/heads/main": B, "worktrees/w/HEAD": C}
    assert at({"HEAD": A.hex()}).refs() == {"HEAD": A}
    assert at({"HEAD": "ref: refs/heads/main"}).refs() == {}
    assert at({"refs/heads/long": "ab" * 32}).refs() == {"refs/heads/long": bytes.fromhex("ab" * 32)}


@pytest.mark.parametrize("text", ["", "junk", "ab" * 21, "AB" * 20])
def test_a_reference_that_is_none(text: str) -> None:
    with pytest.raises(GitUnreadable, match="refs/heads/x is no reference"):
        at({"refs/heads/x": text}).refs()


def test_reflogs() -> None:
    zero = "0" * 40
    found = at({
        "logs/refs/stash": f"{zero} {A.hex()} W <w@x> 1 +0000\tWIP\n{A.hex()} {B.hex()} W\n",
        "logs/HEAD": f"{zero} {C.hex()} {A.hex()} W\nnot a line\n", "logs/refs/stash.lock": f"{C.hex()} {C.hex()}",
    })  # fmt: skip
    assert found.logged(stash=True) == [A, A, B]
    assert found.logged(stash=False) == [C]


def tree(*entries: tuple[str, bytes]) -> bytes:
    return b"".join(f"{mode} f{n}".encode() + b"\0" + id for n, (mode, id) in enumerate(entries))


def history(length: int) -> tuple[list[bytes], Files]:
    """Commits, the first without a tree, each the parent of the next."""
    ids: list[bytes] = []
    files: Files = {}
    for number in range(length):
        parent = f"parent {ids[-1].hex()}\n" if ids else ""
        id, one = loose("commit", f"{parent}author w\n\nparent {C.hex()}\nnumber {number}\n".encode())
        ids.append(id)
        files |= one
    return ids, files


def test_what_is_reached() -> None:
    text, one = loose("blob", b"text")
    inner, two = loose("tree", tree(("100644", text)))
    outer, three = loose("tree", tree(("40000", inner), ("160000", B), ("100755", text), ("100644", A)))
    commit, four = loose(
        "commit", f"tree {outer.hex()}\nparent {A.hex()}\nparent no\nauthor {text.hex()}\n\ntree {C.hex()}\n".encode()
    )
    tag, five = loose("tag", f"object {commit.hex()}\ntype commit\n\nobject {C.hex()}\n".encode())
    files = one | two | three | four | five
    found = [(id, kind) for id, kind, _ in repository(files).reached([tag])]
    assert sorted(found) == sorted([(tag, "tag"), (commit, "commit"), (outer, "tree"), (inner, "tree"), (text, "blob")])
    asked: list[str] = []

    def read(path: str) -> bytes | None:
        asked.append(path.removeprefix(f"{GIT}/objects/").replace("/", ""))
        return files.get(path)

    _, kept = loose("blob", b"of a submodule")
    (module_path,) = kept
    named = bytes.fromhex(module_path.removeprefix(f"{GIT}/objects/").replace("/", ""))
    with_module, six = loose("tree", tree(("100644", A), ("160000", named)))
    files |= kept | six
    repo = Repository(GIT, frozenset(files), read, Store(GIT, frozenset(files), read))
    assert [kind for _, kind, _ in repo.reached([with_module])] == ["tree"]
    assert asked == [with_module.hex()]


def test_damaged_trees() -> None:
    for data, reached in (
        (b"100644 f", None),
        (b"\0" + A, None),
        (tree(("100644", A)) + b"\0" + A, None),
        (b"", 1),
        (tree(("100644", A))[:-1], 1),
    ):
        id, files = loose("tree", data)
        if reached is None:
            with pytest.raises(GitUnreadable, match="a tree is damaged"):
                list(repository(files).reached([id]))
        else:
            assert len(list(repository(files).reached([id]))) == reached


def test_histories_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, files = history(5)
    monkeypatch.setattr(module, "MAX_REACHED", 5)
    assert len(list(repository(files).reached([ids[-1]]))) == 5
    assert repository(files).is_ancestor(ids[0], ids[-1])
    monkeypatch.setattr(module, "MAX_REACHED", 4)
    with pytest.raises(GitUnreadable, match="more than 4 objects"):
        list(repository(files).reached([ids[-1]]))
    with pytest.raises(GitUnreadable, match="more than 4 commits"):
        repository(files).is_ancestor(ids[0], ids[-1])


def test_ancestors() -> None:
    ids, files = history(4)
    tag, one = loose("tag", f"object {ids[2].hex()}\ntype commit\n".encode())
    merge, two = loose("commit", f"tree {A.hex()}\nparent {ids[1].hex()}\nparent {ids[2].hex()}\n\n".encode())
    text, three = loose("blob", f"parent {ids[0].hex()}\n".encode())
    repo = repository(files | one | two | three)
    assert repo.is_ancestor(ids[1], ids[1])
    assert repo.is_ancestor(ids[0], tag)
    assert repo.is_ancestor(ids[2], merge)
    assert not repo.is_ancestor(ids[3], ids[0])
    assert not repo.is_ancestor(ids[3], merge)
    assert not repo.is_ancestor(C, ids[3]), "a line of a message names no parent"
    assert not repo.is_ancestor(A, merge), "a tree is no parent"
    assert not repo.is_ancestor(ids[0], text), "a text has no parents"
    assert not repo.is_ancestor(ids[0], B), "of what is not there nothing is known"


def test_where_repositories_are() -> None:
    names = [
        "/a/.git/objects/ab/" + "0" * 38, "/b.git/objects/pack/x.pack", "/c/.git/objects/ab/" + "0" * 62,
        "/d/.git/HEAD", "/e/objects/ab/short", "/f/objects/pack/x.idx", "/g/objects/xy/" + "0" * 38,
    ]  # fmt: skip
    files = dict.fromkeys(names, b"")
    assert [one.root for one in repositories(files, files.get)] == ["/a/.git", "/b.git", "/c/.git"]
