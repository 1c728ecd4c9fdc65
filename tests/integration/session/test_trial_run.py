"""`realcli trial run` from an image archive to a reward, as a person types it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.session.harness import REPOSITORY

PROGRAMS = ["bash", "sh", "cat", "touch", "mkdir", "grep", "sed", "head", "ls", "rm", "sleep", "env", "id"]
SCRIPT = REPOSITORY / "provider/realcli_provider/demo.yaml"
Mini = Callable[..., Path]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An OCI archive of two layers: some programs of this machine with their libraries; then what the task's own image adds."""
    below, above = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=below, mode="w", dereference=True) as tar:
        for name in sorted(needed()):
            tar.add(name, name.lstrip("/"))
        _put(tar, "etc/passwd", b"root:x:0:0::/root:/bin/bash\n")
        _put(tar, "app/old.txt", b"hidden by the layer above")
    with tarfile.open(fileobj=above, mode="w") as tar:
        _put(tar, "app/given.txt", b"given\n")
        _put(tar, "app/.wh.old.txt", b"")
    layers = [below.getvalue(), above.getvalue()]
    config = {"config": {"Env": ["FROM_IMAGE=yes"]}, "rootfs": {"diff_ids": [f"sha256:{sha(one)}" for one in layers]}}
    about = json.dumps(config).encode()
    manifest = json.dumps(
        {"config": {"digest": f"sha256:{sha(about)}"}, "layers": [{"digest": f"sha256:{sha(one)}"} for one in layers]}
    ).encode()
    path = tmp_path / "image.tar"
    with tarfile.open(path, "w") as tar:
        for blob in [*layers, about, manifest]:
            _put(tar, f"blobs/sha256/{sha(blob)}", blob)
        _put(tar, "index.json", json.dumps({"manifests": [{"digest": f"sha256:{sha(manifest)}"}]}).encode())
    return path


def needed() -> set[str]:
    """Paths of the programs and of everything their loader names."""
    found = set()
    for name in PROGRAMS:
        program = shutil.which(name, path="/bin:/usr/bin")
        assert program is not None, name
        found.add(f"/bin/{name}")
        for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
            found |= {word for word in line.split() if word.startswith("/")}
    return found | {"/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"} | CLAUDE_NEEDS


CLAUDE_NEEDS = {f"/lib/x86_64-linux-gnu/{name}" for name in ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6")}


def _put(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o644
    tar.addfile(info, io.BytesIO(data))


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def realcli(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "realcli_cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_from_an_image_archive_to_a_reward(tmp_path: Path, mini: Mini, image: Path) -> None:
    agent = "ls /app > /app/out; echo $FROM_IMAGE >> /app/out; ls / >> /app/out; head -c 0 /dev/urandom"
    tests = 'test "$(head -n 1 /app/out)" = given.txt && grep -q yes /app/out && echo 1 > /logs/verifier/reward.txt'
    suite = mini(tests, agent)
    common = ("trial", "run", "--task", suite / "tasks/mini", "--agent", "claude-code", "--mode", "EXEC", "--image", image)
    out = tmp_path / "out"
    done = realcli(*common, "--provider-script", SCRIPT, "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "isolates less than a pod" in done.stdout
    shown = dict(
        line.split(maxsplit=1) for line in done.stdout.splitlines() if line[:9].strip() in ("outcome", "reward", "evidence")
    )
    assert (shown["outcome"], shown["reward"]) == ("Completed (valid)", "1")
    assert realcli("ledger", "verify", shown["evidence"]).returncode == 0
    again = realcli(*common, "--provider-script", SCRIPT, "--out", out)
    assert (again.returncode, "not an empty folder" in again.stderr) == (2, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda one: one.name)
def test_whoever_ends_it_leaves_no_process(tmp_path: Path, mini: Mini, image: Path, number: signal.Signals) -> None:
    """What can be caught also leaves no folder, and a sealed end of what was begun."""
    suite = mini("true", "touch /app/begun; sleep 1000")
    own = tmp_path / "tmp"
    own.mkdir()
    script = shutil.copy(SCRIPT, own / "script.yaml")
    place = tmp_path / "out"
    arguments = ("--task", suite / "tasks/mini", "--agent", "claude-code", "--mode", "EXEC", "--image", image)
    command = ["trial", "run", *arguments, "--provider-script", script, "--out", place]
    process = subprocess.Popen(
        [sys.executable, "-m", "realcli_cli", *map(str, command)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"TMPDIR": str(own)}, text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job has it ignored
    )  # fmt: skip
    with process:
        begun = until(lambda: next(own.glob("rcli-*/root/app/begun"), None) or process.poll() is not None)
        assert isinstance(begun, Path), process.communicate()[0]
        if number is signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        said = process.communicate(timeout=60)[0]
    until(lambda: not of_run(own))
    if number is not signal.SIGKILL:
        assert process.returncode not in (0, 2), said
        assert "Traceback" not in said
        assert [path.name for path in own.iterdir()] == ["script.yaml"], said
        assert f"evidence {place}" in said
        seal = next(place.glob("sweeps/*/*/trials/00000/attempt-1/work-seal.json"))
        assert json.loads(seal.read_text())["reason"] == "SessionLost"


def until(there: Callable[[], object], seconds: float = 60) -> object:
    end = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)  # files and processes of others have no other way to tell
    return found


def of_run(folder: Path) -> list[str]:
    """Processes that name the folder, or whose root or mounts lie in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            about = (process / "cmdline").read_bytes() + (process / "mountinfo").read_bytes()
            if str(folder).encode() in about:
                found.append(about[:200].decode(errors="replace"))
    return found


def test_who_answers_is_asked_for(mini: Mini, image: Path) -> None:
    suite = mini("true", "true")
    arguments = ("--task", suite / "tasks/mini", "--agent", "claude-code", "--mode", "EXEC", "--image", image)
    done = realcli("trial", "run", *arguments)
    assert (done.returncode, "--provider-script FILE, or --model ID --endpoint URL" in done.stderr) == (2, True)
