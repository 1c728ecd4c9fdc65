"""What is packed in a file, kind by kind, at the edges of what is read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable

import pytest
import zstandard

from realcli.checks import archives
from realcli.checks.archives import unpacked
from realcli.checks.found import Missing


def tar(*members: tuple[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.mkdir("folder")
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def ar(*members: tuple[str, bytes]) -> bytes:
    out = b"!<arch>\n"
    for name, data in members:
        out += f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return out


def inside(data: bytes) -> list[tuple[str, bytes]]:
    """All but the file itself; at the end `Missing`, where it is raised, as its first words."""
    found: list[tuple[str, bytes]] = []
    try:
        found += unpacked(data)
    except Missing as missing:
        found.append(("missing", str(missing).encode()))
    return found[1:]


SMALL, LARGE = b"some text", bytes(range(256)) * 9
READ: dict[str, tuple[bytes, list[tuple[str, bytes]]]] = {
    "a text": (SMALL, []),
    "nothing": (b"", []),
    "shorter than a header of tar": (tar(("a", SMALL))[:511], []),
    "just a header of tar": (tar()[:512], []),
    "tar": (tar(("a", SMALL), ("b", LARGE)), [("a", SMALL), ("b", LARGE)]),
    "tar, old": (tar(("a", SMALL), form=tarfile.USTAR_FORMAT), [("a", SMALL)]),
    "tar, GNU": (tar(("a" * 150, SMALL), form=tarfile.GNU_FORMAT), [("a" * 150, SMALL)]),
    "tar with another checksum": (tar(("a", SMALL))[:148] + b"000001\0 " + tar(("a", SMALL))[156:], []),
    "tar with a name that was changed": (b"X" + tar(("a", SMALL))[1:], []),
    "tar with its end of the header changed": (tar(("a", SMALL))[:511] + b"X" + tar(("a", SMALL))[512:], []),
    "zip": (zipped(("a", SMALL), ("b", LARGE)), [("a", SMALL), ("b", LARGE)]),
    "zip behind a program": (b"#!/bin/sh\n" + bytes(300) + zipped(("a", SMALL)), [("a", SMALL)]),
    "an empty zip": (zipped()[:0] + b"PK\x05\x06" + bytes(18), []),
    "ar": (ar(("a", SMALL), ("b", LARGE), ("c", b"")), [("a", SMALL), ("b", LARGE), ("c", b"")]),
    "ar without members": (b"!<arch>\n", []),
    "gzip": (gzip.compress(SMALL), [("content", SMALL)]),
    "gzip twice": (
        gzip.compress(SMALL) + gzip.compress(LARGE), [("part 1", SMALL), ("part 2", LARGE), ("content", SMALL + LARGE)],
    ),
    "gzip with zeros between": (
        gzip.compress(SMALL) + bytes(7) + gzip.compress(b"x"), [("part 1", SMALL), ("part 2", b"x"), ("content", SMALL + b"x")],
    ),
    "gzip with a text after it": (gzip.compress(SMALL) + b"trailing", [("content", SMALL)]),
    "bzip2": (bz2.compress(LARGE), [("content", LARGE)]),
    "xz": (lzma.compress(LARGE), [("content", LARGE)]),
    "zstandard": (zstandard.compress(LARGE), [("content", LARGE)]),
    "zstandard twice": (
        zstandard.compress(SMALL) + zstandard.compress(LARGE),
        [("part 1", SMALL), ("part 2", LARGE), ("content", SMALL + LARGE)],
    ),
    "in one another": (zipped(("a", gzip.compress(SMALL))), [("a", gzip.compress(SMALL)), ("a/content", SMALL)]),
}  # fmt: skip


@pytest.mark.parametrize("told", READ)
def test_what_is_read(told: str) -> None:
    data, members = READ[told]
    assert next(iter(unpacked(data))) == ("", data)
    assert inside(data) == members


CLOSED: dict[str, tuple[bytes, str]] = {
    "gzip, cut": (gzip.compress(LARGE)[:-9], "it is cut"),
    "bzip2, cut": (bz2.compress(LARGE)[:-2], "it is cut"),
    "zstandard, cut": (zstandard.compress(LARGE)[:-1], "it "),
    "the second gzip, cut": (gzip.compress(SMALL) + gzip.compress(LARGE)[:-9], "it is cut"),
    "tar, cut": (tar(("a", LARGE))[:1200], "cannot be unpacked"),
    "ar, cut": (ar(("a", LARGE))[:-1], "it is cut"),
    "ar of a size that is none": (ar(("a", SMALL)).replace(b"9         ", b"nine      "), "cannot be unpacked"),
    **{f"{beginning!r}": (beginning + b"...", "cannot be looked at") for beginning in archives._CLOSED},
}


@pytest.mark.parametrize("told", CLOSED)
def test_what_cannot_be_read_is_told(told: str) -> None:
    data, why = CLOSED[told]
    name, text = inside(data)[-1]
    assert name == "missing"
    assert why in text.decode()


def test_the_last_member_of_ar_ends_with_the_file() -> None:
    assert inside(ar(("a", b"even"))) == [("a", b"even")]
    assert inside(ar(("a", b"odd"))[:-1]) == [("a", b"odd")]  # without the filling
    assert inside(ar(("a", b"even")) + b"x" * 59) == [("a", b"even")]  # too short for another header


def test_siblings_of_what_is_closed_are_seen() -> None:
    found = inside(zipped(("a", b"Rar!"), ("b", SMALL), ("c", b"7z\xbc\xaf\x27\x1c")))
    assert found[:3] == [("a", b"Rar!"), ("b", SMALL), ("c", b"7z\xbc\xaf\x27\x1c")]
    assert found[3][0] == "missing"


@pytest.mark.parametrize("levels", [archives.MAX_DEPTH, archives.MAX_DEPTH + 1])
def test_depth(levels: int) -> None:
    data = SMALL
    for _ in range(levels):
        data = gzip.compress(data, mtime=0)
    found = inside(data)
    assert ("/".join(["content"] * levels), SMALL) in found
    assert (found[-1][0] == "missing") is (levels > archives.MAX_DEPTH)


MAKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstandard": zstandard.compress,
    "tar": lambda data: tar(("a", data)), "zip": lambda data: zipped(("a", data)),
}  # fmt: skip


@pytest.mark.parametrize("told", MAKERS)
def test_budget(monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    """The file and what is in it count together; one byte more than is read is told."""
    data = MAKERS[told](LARGE)
    for more, closed in ((0, False), (-1, True)):
        monkeypatch.setattr(archives, "MAX_UNPACKED", len(data) + len(LARGE) + more)
        found = inside(data)
        assert (found[-1][0] == "missing") is closed
        assert closed or found[-1][1] == LARGE
        assert not closed or b"unpacks to more than" in found[-1][1]


def test_the_budget_is_of_all_members_together(monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped(("a", LARGE), ("b", LARGE))
    monkeypatch.setattr(archives, "MAX_UNPACKED", len(data) + 2 * len(LARGE))
    assert [name for name, _ in inside(data)] == ["a", "b"]
    monkeypatch.setattr(archives, "MAX_UNPACKED", len(data) + 2 * len(LARGE) - 1)
    assert [name for name, _ in inside(data)] == ["a", "missing"]
