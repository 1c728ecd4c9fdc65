"""Settings, termination texts, patience, and the archive of the tests."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.api.termination import Result, Termination, parse_termination
from realcli.storage.port import StorageUnavailable
from realcli_session import patience
from realcli_session.patience import patiently
from realcli_session.settings import Settings, storage_secrets
from realcli_session.termination import MAX_MESSAGE, findings, report, shorten
from realcli_session.verify.tests import tests_archive as archive_of_tests


def test_defaults_are_the_pods_paths() -> None:
    settings = Settings.from_environment({})
    assert settings.termination_log == Path("/dev/termination-log")
    assert settings.keys == Path("/var/run/realcli/keys")
    assert (settings.gateway_port, settings.fault, settings.allow_loopback) == (8317, None, False)


def test_a_fault_needs_leave() -> None:
    fault = {"REALCLI_FAULT": "kill-after-verdict"}
    assert Settings.from_environment(fault).fault is None
    assert Settings.from_environment(fault | {"REALCLI_ALLOW_FAULTS": "1"}).fault == "kill-after-verdict"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"REALCLI_GATEWAY_PORT": "x"}, r"REALCLI_GATEWAY_PORT='x': expected a whole number"),
        ({"REALCLI_FAULT": "boom", "REALCLI_ALLOW_FAULTS": "1"}, r"REALCLI_FAULT='boom': expected one of kill-after-verdict"),
    ],
)
def test_a_wrong_variable_is_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings.from_environment(environment)


def test_a_key_without_its_line_end_or_an_error_that_names_the_file(tmp_path: Path) -> None:
    settings = Settings.from_environment({"REALCLI_KEYS": str(tmp_path)})
    with pytest.raises(ValueError, match=str(tmp_path / "anthropic")):
        settings.key("anthropic")
    (tmp_path / "anthropic").write_text("sk-1\n")
    assert settings.key("anthropic") == "sk-1"


MORE = "(and {} more, see the log of the plan Job)"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["one"], "one"),
        (["one", "two"], "one; two"),
        (["a" * 300, "b" * 300, "c"], "a" * 300 + " " + MORE.format(2)),
        (["a" * 500, "b"], MORE.format(1)),
        ([], ""),
    ],
)
def test_findings_are_whole_or_counted(lines: list[str], said: str) -> None:
    found = findings("\n".join(lines))
    assert found.endswith(said)
    assert len(found) <= MAX_MESSAGE


@given(st.text(max_size=3000))
def test_shortened_texts_fit_and_keep_both_ends(text: str) -> None:
    short = shorten(text)
    assert len(short) <= MAX_MESSAGE
    line = " ".join(text.split())
    assert short[:100] == line[:100] or len(line) < 100
    assert line.endswith(short[-100:])


@given(st.text(max_size=2000))
def test_any_message_gives_a_termination_that_parses(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    log = tmp_path_factory.mktemp("log") / "termination"
    report(Termination(phase="Work", result=Result.WORK_INVALID, reason="SessionLost", message=shorten(text)), log)
    parsed = parse_termination(log.read_text())
    assert parsed is not None
    assert parsed.reason == "SessionLost"


class Flaky:
    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise StorageUnavailable("away")
        return "here"


def test_storage_credentials_are_secrets() -> None:
    environ = {"AWS_ACCESS_KEY_ID": "public", "AWS_SECRET_ACCESS_KEY": "secret-of-storage", "AWS_SESSION_TOKEN": ""}
    assert storage_secrets(environ) == ["secret-of-storage"]


async def test_storage_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    flaky = Flaky(3)
    assert await patiently(flaky, 60) == "here"
    assert flaky.calls == 4


async def test_but_not_for_ever() -> None:
    flaky = Flaky(10**9)
    with pytest.raises(StorageUnavailable):
        await patiently(flaky, 0)
    assert flaky.calls == 1


def test_the_tests_are_roots_and_read_only(tmp_path: Path) -> None:
    (tmp_path / "tests" / "data").mkdir(parents=True)
    (tmp_path / "tests" / "test.sh").write_text("true")
    (tmp_path / "tests" / "test.sh").chmod(0o755)
    (tmp_path / "tests" / "data" / "a.txt").write_text("a")
    with tarfile.open(fileobj=io.BytesIO(archive_of_tests(tmp_path, b"{}")), mode="r:") as tar:
        found = {m.name: (oct(m.mode), m.uid, m.gid, m.isdir()) for m in tar}
    assert found == {
        "tests": ("0o500", 0, 0, True),
        "tests/data": ("0o500", 0, 0, True),
        "logs": ("0o755", 0, 0, True),
        "logs/verifier": ("0o755", 0, 0, True),
        "tests/data/a.txt": ("0o400", 0, 0, False),
        "tests/run.json": ("0o400", 0, 0, False),
        "tests/test.sh": ("0o500", 0, 0, False),
    }
