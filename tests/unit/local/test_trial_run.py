"""`realcli trial run` says what is missing, thing by thing; how an engine is asked; what is cached."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from realcli.ledger.events import KINDS, SessionError
from realcli_cli.local import images, pods, userns
from realcli_cli.local.cache import discard, kept
from realcli_cli.local.container import ChrootContainer
from realcli_cli.local.engine import EngineContainer
from realcli_cli.local.follow import TELLING
from realcli_cli.local.sweep import Model
from realcli_cli.main import UserError
from realcli_cli.trial import app

ROOT = Path(__file__).resolve().parents[3]
TASK = ROOT / "benchmark/starter/tasks/site-settings"
SCRIPT = ROOT / "provider/realcli_provider/demo.yaml"


def refusal(*arguments: str) -> str:
    """The error of a command line that is refused before anything runs."""
    done = CliRunner().invoke(app, ["run", "--agent", "claude-code", "--mode", "EXEC", *arguments])
    assert isinstance(done.exception, UserError), done.output
    return str(done.exception)


def test_a_task_that_is_none(tmp_path: Path) -> None:
    assert "no task.toml" in refusal("--task", str(tmp_path), "--provider-script", str(SCRIPT))


def test_two_roots(tmp_path: Path) -> None:
    assert "take one" in refusal("--task", str(TASK), "--image", "a", "--root", "b")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_can_be_refused_at_once_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before an image is looked for, unpacked or built."""
    monkeypatch.setattr("realcli_cli.trial._containers", lambda *_: pytest.fail("it asked for containers"))
    (tmp_path / "file").touch()
    arguments = ("--task", str(TASK))
    assert "who answers?" in refusal(*arguments)
    assert "two ways to get answers" in refusal(*arguments, "--provider-script", str(SCRIPT), "--endpoint", "http://x")
    assert "no such file" in refusal(*arguments, "--provider-script", str(tmp_path / "none"))
    real = ("--model", "m", "--endpoint", "http://x", "--key-env", "NO_SUCH_KEY")
    assert "not set or empty" in refusal(*arguments, *real)
    assert "not an empty folder" in refusal(*arguments, "--provider-script", str(SCRIPT), "--out", str(tmp_path))
    assert "not an empty folder" in refusal(*arguments, "--provider-script", str(SCRIPT), "--out", str(tmp_path / "file"))


def test_an_image_that_is_none(tmp_path: Path) -> None:
    text = refusal("--task", str(TASK), "--image", str(tmp_path / "no.tar"), "--provider-script", str(SCRIPT))
    assert "docker save" in text


def test_without_any_engine_the_remedies_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"--image FILE.*--root DIR"):
        images.archive_of_task(TASK, "registry.example/x:1")


def test_an_engine_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "docker info" in refusal("--task", str(TASK), "--isolation", "docker", "--provider-script", str(SCRIPT))


def test_neither_root_nor_user_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(userns, "why_no_chroot", lambda: "namespaces cannot be made here")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UserError, match=r"/etc/subuid; namespaces cannot be made here.*--isolation docker"):
        userns.become_root()


def test_the_engine_s_command_line_is_as_tight_as_a_pod(tmp_path: Path) -> None:
    made = EngineContainer("podman", "img", tmp_path / "t", tmp_path / "a", folder=tmp_path)
    line = made.command(60)
    text = " ".join(line)
    assert "--cap-drop ALL" in text
    assert "--security-opt no-new-privileges" in text
    assert f"{tmp_path / 't'}:/opt/realcli:ro" in text
    assert line[line.index("--entrypoint") + 2] == "img"
    assert "--no-exec-record" not in text
    setuid = " ".join(EngineContainer("podman", "img", tmp_path, tmp_path, True, folder=tmp_path).command(60))
    assert ("no-new-privileges" in setuid, "--no-exec-record" in setuid) == (False, True)


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1"])
def test_each_api_gets_its_own_base_url(url: str) -> None:
    model = Model("m", url, "key")
    assert model.endpoint("anthropic")["url"] == "http://h:1"
    assert model.endpoint("chat")["url"] == "http://h:1/v1"


def test_an_engine_s_container_is_removed_also_where_its_client_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tmp_path / "docker"
    engine.write_text(f'#!/bin/sh\necho "$1 $2 $3" >> {tmp_path}/asked\n')
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    container = EngineContainer("docker", "image:1", tmp_path, tmp_path)
    container.close()
    assert not (tmp_path / "asked").exists(), "nothing was started"
    container = EngineContainer("docker", "image:1", tmp_path, tmp_path)
    container.start(5)
    assert container.process is not None
    container.process.wait()
    container.close()
    assert (tmp_path / "asked").read_text().splitlines() == ["run --rm --name", f"rm --force {container.name}"]
    assert not container.folder.exists()


def test_a_runner_that_does_not_follow_its_session_costs_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "END_SECONDS", 0.1)
    (tmp_path / "stderr").write_text("sealed\n")
    container = ChrootContainer(tmp_path / "root", tmp_path, tmp_path, {})
    container.process = subprocess.Popen(["sleep", "60"])
    session = subprocess.Popen(["true"], text=True)
    ended = pods.Pod(container, session, tmp_path).ended()
    assert (ended.code, ended.stderr) == (0, "sealed\nthe runner did not follow its session within 0.1 s and was killed\n")
    assert container.process.poll() is not None


def test_progress_shows_kinds_that_there_are() -> None:
    assert set(KINDS) >= TELLING
    assert SessionError.kind in TELLING


def test_what_is_kept_is_made_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REALCLI_CACHE", str(tmp_path))

    def broken(place: Path) -> None:
        place.mkdir()
        raise UserError("half way")

    with pytest.raises(UserError, match="half way"):
        kept("room", "thing", broken)
    assert not (tmp_path / "room/thing").exists()
    first = kept("room", "thing", lambda place: place.mkdir())
    assert kept("room", "thing", broken) == first


def test_discard_outlasts_who_is_still_writing(tmp_path: Path) -> None:
    """What runs in a namespace that was killed dies a moment later than who is waited for."""
    folder = tmp_path / "folder"
    (folder / "busy").mkdir(parents=True)
    write = "import sys\nfor n in range(20000): open(f'{sys.argv[1]}/busy/{n}', 'x').close()"
    with subprocess.Popen([sys.executable, "-c", write, str(folder)], stderr=subprocess.DEVNULL):
        while not any((folder / "busy").iterdir()):
            pass
        discard(folder)
    assert not folder.exists()


def test_discard_takes_a_folder_of_any_depth(tmp_path: Path) -> None:
    """Its path is longer than the kernel takes, its levels are more than a process may open or a stack may hold."""
    folder = tmp_path / "folder"
    folder.mkdir()
    place = os.open(folder, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("x" * 40, dir_fd=place)
        below = os.open("x" * 40, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=place))
    os.close(place)
    discard(folder)
    assert not folder.exists()


def test_discard_opens_what_was_closed_and_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "kept").touch()
    folder = tmp_path / "folder"
    (folder / "closed/in").mkdir(parents=True)
    (folder / "closed/way").symlink_to(outside)
    (folder / "closed").chmod(0o000)
    before = outside.stat().st_mode, tmp_path.stat().st_mode
    discard(folder)
    discard(folder)
    assert not folder.exists()
    assert (outside / "kept").exists()
    assert (outside.stat().st_mode, tmp_path.stat().st_mode) == before
