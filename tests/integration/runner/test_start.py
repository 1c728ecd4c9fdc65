"""How a runner begins: hello, waiting, what it refuses, what it hides."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from realcli_session.runner import listen

ENV = {"PATH": "/usr/bin:/bin"}


async def test_hello_tells_the_image(start) -> None:
    environ = {"PATH": "/x:/usr/bin", "LANG": "de_DE.ISO-8859-1", "KUBERNETES_PORT": "tcp://10.0.0.1", "ODD": "\udcfe"}
    running = await start("pod", env=environ | {"HOME": "/home/u"})
    hello = running.client.hello
    assert (hello.pid, hello.uid, hello.home, hello.libc, hello.peer_uid) == (1, 0, "/home/u", "glibc", 0)
    assert hello.owns_pid_namespace
    assert hello.kernel == os.uname().release
    seen = {
        name: value for name, value in hello.environ.items() if name not in ("PWD", "OLDPWD", "SHLVL", "_")
    }  # the wrapping sh
    assert seen == {"PATH": "/x:/usr/bin", "LANG": "de_DE.ISO-8859-1", "ODD": "\udcfe", "HOME": "/home/u"}
    assert hello.cgroup["version"] in ("1", "2", "unknown")


async def test_home_without_a_variable_comes_from_passwd(start) -> None:
    running = await start("plain", env={})
    assert running.client.hello.home == "/root"
    assert not running.client.hello.owns_pid_namespace


async def test_a_huge_environment_is_cut_and_says_so(start) -> None:
    huge = {f"V{number}": "x" * 100_000 for number in range(14)}
    running = await start("plain", env=huge | {"SMALL": "1"})
    hello = running.client.hello
    assert hello.environ["SMALL"] == "1"
    assert hello.environ_omitted
    assert set(hello.environ) | set(hello.environ_omitted) >= set(huge)


def run_runner(bundle: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(bundle / "start.py"), *args], capture_output=True, text=True, timeout=60, check=False
    )


def test_no_session_within_the_limit(bundle: Path, tmp_path: Path) -> None:
    done = run_runner(bundle, "--socket", str(tmp_path / "s"), "--setup-seconds", "0.1")
    assert done.returncode == 4
    assert done.stderr == f"realcli-runner: no session at {tmp_path / 's'} within 0.1 s\n"


def test_wrong_arguments(bundle: Path) -> None:
    assert run_runner(bundle, "--setup-seconds", "soon").returncode == 2


def test_a_session_that_speaks_something_else(bundle: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="rcli-") as folder, socket.socket(socket.AF_UNIX) as listening:
        path = f"{folder}/s"
        listening.bind(path)
        listening.listen(1)
        process = subprocess.Popen(
            [sys.executable, "-I", str(bundle / "start.py"), "--socket", path], stderr=subprocess.PIPE, text=True
        )
        peer, _ = listening.accept()
        with peer:
            peer.sendall(b"HELO example.org\r\n")
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert errors.startswith("realcli-runner: expected b'RCW1', found b'HELO'")
    assert "Traceback" not in errors


def test_without_proc_of_its_own_namespace_it_does_not_start(bundle: Path) -> None:
    command = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        sys.executable,
        "-I",
        str(bundle / "start.py"),
        "--socket",
        "/nowhere/s",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (5, "realcli-runner: /proc does not show this pid namespace: mount it\n")


def test_the_runner_needs_nothing_but_its_bundle(bundle: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules);"
        "import realcli_runner.main; new = {m.split('.')[0] for m in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-I", "-B", "-c", script, str(bundle)], capture_output=True, text=True, check=True)
    assert done.stdout == "['realcli', 'realcli_runner']\n"


async def test_a_root_agent_of_a_pod_cannot_read_or_stop_the_runner(pod) -> None:
    """Same uid, a pod's capabilities: memory, environment and descriptors of PID 1 are closed, signals do nothing."""
    script = """
import os, signal
def attempt(what):
    try:
        return repr(what())
    except OSError as error:
        return type(error).__name__
for path in ("mem", "environ", "maps", "fd/0"):
    print(path, attempt(lambda: open(f"/proc/1/{path}", "rb").read(1)))
print("link", attempt(lambda: os.readlink("/proc/1/fd/3")))
for signum in range(1, signal.NSIG):
    try:
        os.kill(1, signum)
    except OSError:
        pass
print(os.getuid())
"""
    done = await pod.client.run([sys.executable, "-I", "-c", script], env=ENV, cwd="/", seconds=60)
    refused = ["mem", "environ", "maps", "fd/0", "link"]
    assert done.stdout.decode().splitlines() == [*(f"{name} PermissionError" for name in refused), "0"]
    assert (await pod.client.run(["echo", "alive"], env=ENV, cwd="/", seconds=60)).stdout == b"alive\n"


async def test_the_socket_is_gone_before_anything_of_the_agent_runs(pod) -> None:
    sockets = await pod.client.run(["sh", "-c", "cat /proc/1/cmdline | tr '\\0' '\\n'"], env=ENV, cwd="/", seconds=60)
    path = sockets.stdout.decode().split("\n")[4]
    assert path.endswith("/session.sock")
    again = listen(path)  # raises if it were still there
    again.close()
