"""Which changed files are named beside a verdict."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from realcli.wire.archive import END, Member, header, padding
from realcli_session.verify.replaced import ToolsReplaced, is_tool


@pytest.mark.parametrize(
    "name",
    [
        "bin/sh", "usr/bin/python3", "usr/local/bin/pytest", "usr/sbin/x", "lib64/ld-linux-x86-64.so.2",
        "usr/lib/x86_64-linux-gnu/libc.so.6",
        "etc/ld.so.preload", "etc/ld.so.conf.d/x.conf", "etc/profile.d/a.sh", "root/.bashrc", "home/dev/.profile", "etc/passwd",
        "usr/lib/python3.11/sitecustomize.py", "usr/local/lib/python3.11/site-packages/evil.pth", "app/conftest.py",
        "usr/lib/python3/dist-packages/_pytest/runner.py",
    ],
)  # fmt: skip
def test_what_runs_before_any_test_is_named(name: str) -> None:
    assert is_tool(name.encode())


@pytest.mark.parametrize("name", ["app/site.ini", "usr/share/doc/x", "root/notes", "var/bin/x", "app/libx.so.txt", "etc/hosts"])
def test_what_does_not_is_not(name: str) -> None:
    assert not is_tool(name.encode())


async def test_the_archive_passes_as_it_is() -> None:
    content = b"x" * 700
    members = [
        (Member(b"bin", "dir"), b""),
        (Member(b"bin/sh", "file", size=len(content)), content),
        (Member(b"etc/ld.so.preload", "deleted"), b""),
        (Member(b"app/x", "file", size=3), b"abc"),
    ]
    whole = b"".join(header(member) + data + padding(len(data)) for member, data in members) + END

    async def source() -> AsyncIterator[bytes]:
        for start in range(0, len(whole), 300):
            yield whole[start : start + 300]

    watched = ToolsReplaced(source())
    assert b"".join([chunk async for chunk in watched]) == whole
    assert watched.names == ["/bin/sh", "/etc/ld.so.preload"]


async def test_a_damaged_archive_passes_too() -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"x" * 2000
        yield b"y" * 2000

    watched = ToolsReplaced(source())
    assert len(b"".join([chunk async for chunk in watched])) == 4000
    assert watched.names == []
