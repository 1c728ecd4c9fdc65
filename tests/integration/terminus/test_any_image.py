"""The terminal in a root that holds the toolkit, a static shell and nothing else: no libc, no /tmp, no terminfo. Needs root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from realcli_session.agents import terminus_launch
from realcli_session.agents.port import AgentSpec
from realcli_session.agents.terminus_tmux import Tmux
from realcli_session.runner import RunnerClient, listen
from realcli_session.runner.errors import SpawnFailed
from tests.support.terminus import ROOT, toolkit_folder

SHELL = r"""
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    char line[4096];
    if (argc > 2 && !strcmp(argv[1], "-c")) return 0;
    for (;;) {
        printf("$ "); fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) return 0;
        printf("read %s", line);
        if (!strncmp(line, "env", 3)) { extern char **environ; for (char **e = environ; *e; e++) puts(*e); }
    }
}
"""
ENTER = """
cd "$1"
mount -t proc proc proc && mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts && ln -sf pts/ptmx dev/ptmx
mount --bind "$2" opt/realcli && mount -o remount,ro,bind opt/realcli
mount --bind "$3" runner && mount -o remount,ro,bind runner
shift 3
caps=-all,+chown,+dac_override,+fowner,+kill,+setuid,+setgid,+sys_chroot
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=$caps chroot . "$@"
"""
LOADER = ["/opt/realcli/lib/ld-linux-x86-64.so.2", "--argv0", "/opt/realcli/bin/python3", "--library-path", "/opt/realcli/lib"]
PYTHON = [*LOADER, "/opt/realcli/bin/python3.real", "-I"]
START = "import sys; sys.path.insert(0, '/runner'); from realcli_runner.main import main; main()"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shell that needs nothing of the image."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "sh.c").write_text(SHELL)
    subprocess.run(["gcc", "-static", "-O1", "-o", folder / "sh", folder / "sh.c"], check=True)
    return folder / "sh"


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """empty(shell or None) -> the client of a runner that is PID 1 of an empty root"""
    cleanup = contextlib.AsyncExitStack()

    async def begin(program: Path | None) -> RunnerClient:
        root = Path(tempfile.mkdtemp(prefix="rcli-"))
        cleanup.callback(shutil.rmtree, root)
        os.chmod(root, 0o755)
        for name in ("proc", "dev/pts", "opt/realcli", "runner", "run/realcli", "bin", "work"):
            (root / name).mkdir(parents=True)
        if program is not None:
            shutil.copy(program, root / "bin" / "sh")
        bundle = tmp_path / "runner"
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "runner_image" / "realcli_runner", bundle / "realcli_runner", ignore=ignore)
        shutil.copytree(ROOT / "realcli" / "wire", bundle / "realcli" / "wire", ignore=ignore)
        shutil.copy(ROOT / "realcli" / "__init__.py", bundle / "realcli")
        namespaces = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--propagation", "private", "--"]
        enter = ["sh", "-ec", ENTER, "sh", str(root), str(toolkit_folder()), str(bundle)]
        line = [*PYTHON, "-c", START, "--socket", "/run/realcli/s", "--setup-seconds", "60"]
        process = subprocess.Popen(  # noqa: ASYNC220 (starting is quick)
            [*namespaces, *enter, *line], env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL
        )
        cleanup.callback(process.wait)
        listener = listen(str(root / "run" / "realcli" / "s"))
        client = await listener.accept(60)
        cleanup.push_async_callback(client.close)
        return client

    try:
        yield begin
    finally:
        await cleanup.aclose()


LOADERS = {"LD_PRELOAD": "/its/own.so;", "LD_DEBUG": "all", "GLIBC_TUNABLES": "glibc.malloc.check=3"}


def a_spec(client: RunnerClient, **more: Any) -> AgentSpec:
    return AgentSpec(
        mode="EXEC", version="0.26.0", model="m", base_url="http://127.0.0.1:1/v1", token="t", workdir="/work",
        environ={"PATH": "/bin", "LOCPATH": "/its/own", **LOADERS}, home="/", libc=client.hello.libc, **more,
    )  # fmt: skip


@pytest.mark.parametrize("uid", [None, 1234])
async def test_a_terminal_where_there_is_nothing(empty: Callable[..., Any], shell: Path, wait_for: Any, uid: int | None) -> None:
    client = await empty(shell)
    assert client.hello.libc == "none"
    tmux = Tmux(client, await terminus_launch.place_of(client, a_spec(client, uid=uid)))
    await tmux.start()
    assert await tmux.alive()
    await tmux.type("grüß dich €\n")
    await tmux.type("env\n")

    async def there() -> bool:
        return "TMUX_PANE" in await tmux.capture(True)

    await wait_for(there, "the shell answers")
    seen = await tmux.capture(True)
    assert "read grüß dich €\n" in seen
    assert "LOCPATH=/its/own" in seen
    assert "TERMINFO" not in seen
    assert "SHELL=/bin/sh" in seen
    server, *_ = [proc.pid for proc in await client.procs() if proc.argv[-1:] == ("-D",)]
    toolkits = await client.get_file(f"/proc/{server}/environ") if uid is None else b""  # another's is not to be seen
    for name, value in LOADERS.items():  # the image's programs have them, the toolkit's terminal does not
        assert f"{name}={value}\n" in seen
        assert name.encode() not in toolkits
    assert {proc.uid for proc in await client.procs()} == {uid or 0}
    await tmux.end(5)

    async def gone() -> bool:
        return await client.procs() == ()

    await wait_for(gone, "the shell has followed its terminal")


async def test_an_image_without_a_shell(empty: Callable[..., Any]) -> None:
    client = await empty(None)
    with pytest.raises(SpawnFailed, match="neither bash nor sh"):
        await terminus_launch.place_of(client, a_spec(client))
