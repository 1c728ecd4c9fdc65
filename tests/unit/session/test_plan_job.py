"""The plan Job on a local store: what it leaves, what it prints last, and how it refuses."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.api.plan import PLAN_END, Lock, plan_in_log
from realcli.api.termination import Result, Termination, parse_termination
from realcli.storage.local import LocalStore
from realcli.storage.port import AlreadyStored, ObjectStore
from realcli_session.plan import job
from realcli_session.plan.job import run
from realcli_session.plan.lock import PlanRequest
from realcli_session.plan.probing import Finding
from realcli_session.plan.storage_check import check_storage

ROOT = "pre/sweeps/audits/first-0123abcd"


@pytest.fixture(autouse=True)
def _adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_deviations", lambda program: ())
    monkeypatch.setattr(job, "_visible", lambda program: "")
    monkeypatch.setattr(job, "_ask", lambda targets, *_: [Finding(target.model, None, passing=False) for target in targets])


def plan(directory: Path, request: PlanRequest, **environ: str) -> tuple[Termination, str]:
    out = io.StringIO()
    variables = {
        "REALCLI_STORAGE": json.dumps({"directory": str(directory)}),
        "REALCLI_SWEEP": request.canonical().decode(),
        "REALCLI_KEY_0_ANTHROPIC": "sk-some-key",
    }
    return run(variables | environ, out, io.StringIO()), out.getvalue()


def published(directory: Path, build: Any) -> str:
    data = build.index().canonical()
    LocalStore(directory).put_once("benchmarks/mini/1.0.0/index.json", data)
    return sha256_digest(data)


def test_the_lock_is_stored_and_the_plan_printed_last(tmp_path: Path, build: Any) -> None:
    digest = published(tmp_path, build)
    message, out = plan(tmp_path, build.request())
    assert (message.phase, message.result) == ("Plan", Result.PLANNED)
    assert out.endswith(f"{PLAN_END}\n")
    printed = plan_in_log(out, str(message.seal))
    stored = LocalStore(tmp_path).get(f"{ROOT}/sweep.json")
    assert (printed.root, printed.lock_digest, printed.size) == (ROOT, sha256_digest(stored), 6)
    lock = Lock.model_validate_json(stored)
    assert (lock.benchmark.digest, lock.egress) == (digest, "Unenforced")
    assert parse_termination(message.encode().decode()) is not None


def test_run_again_it_says_the_same_whatever_has_changed(tmp_path: Path, build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    published(tmp_path, build)
    first, out = plan(tmp_path, build.request())
    monkeypatch.setattr(job, "_now", lambda: "2031-01-01T00:00:00Z")
    assert plan(tmp_path, build.request()) == (first, out)
    assert plan(tmp_path, build.request(parallelism=7, suspend=True, repeats=5)) == (first, out)


@pytest.mark.parametrize("stored", [b"{}", None], ids=["no lock", "another sweep's"])
def test_what_lies_there_is_not_replaced(tmp_path: Path, build: Any, stored: bytes | None) -> None:
    published(tmp_path, build)
    plan(tmp_path / "other", build.request())
    request = build.request()
    if stored is None:
        published(tmp_path / "other", build)
        plan(tmp_path / "other", request)
        lock = Lock.model_validate_json(LocalStore(tmp_path / "other").get(f"{ROOT}/sweep.json"))
        stored = lock.model_copy(update={"sweep": lock.sweep.model_copy(update={"uid": "0123abcd-1"})}).canonical()
    LocalStore(tmp_path).put_once(f"{ROOT}/sweep.json", stored)
    message, out = plan(tmp_path, request)
    assert (message.result, message.reason, out) == (Result.REFUSED, "ConfigurationError", "")
    assert "make a new sweep" in str(message.message)


@pytest.mark.parametrize(
    ("key", "result"),
    [("", Result.REFUSED), ("sk-12345\n", Result.REFUSED), ("sk-1234", Result.REFUSED), ("sk-12345", Result.PLANNED)],
)
def test_a_key_that_could_not_be_sent_or_redacted(tmp_path: Path, build: Any, key: str, result: Result) -> None:
    published(tmp_path, build)
    message, _ = plan(tmp_path, build.request(), REALCLI_KEY_0_ANTHROPIC=key)
    assert message.result is result
    assert result is Result.PLANNED or "key k of Secret a" in str(message.message)


def test_a_request_may_be_longer_than_a_variable(tmp_path: Path, build: Any) -> None:
    published(tmp_path, build)
    text = build.request().canonical().decode()
    message, out = plan(tmp_path, build.request(), REALCLI_SWEEP=text[:99], REALCLI_SWEEP_2=text[99:])
    assert message.result is Result.PLANNED, message
    assert plan(tmp_path, build.request()) == (message, out)


def test_benchmark_not_found(tmp_path: Path, build: Any) -> None:
    message, out = plan(tmp_path, build.request())
    assert (message.result, message.reason, out) == (Result.REFUSED, "BenchmarkNotFound", "")
    assert "benchmarks/mini/1.0.0/index.json" in str(message.message)


def test_digest_mismatch(tmp_path: Path, build: Any) -> None:
    digest = published(tmp_path, build)
    pinned = {"source": "s3://evals/benchmarks/mini/1.0.0", "digest": sha256_digest(b"other")}
    message, _ = plan(tmp_path, build.request(benchmark=pinned))
    assert (message.result, message.reason) == (Result.REFUSED, "DigestMismatch")
    assert digest in str(message.message)
    assert plan(tmp_path, build.request(benchmark=pinned | {"digest": digest}))[0].result is Result.PLANNED


def test_something_that_is_no_index(tmp_path: Path, build: Any) -> None:
    LocalStore(tmp_path).put_once("benchmarks/mini/1.0.0/index.json", b"{}")
    message, _ = plan(tmp_path, build.request())
    assert (message.result, message.reason) == (Result.REFUSED, "BenchmarkNotFound")


@pytest.mark.parametrize("variable", ["REALCLI_STORAGE", "REALCLI_SWEEP"])
def test_input_that_cannot_be_read_names_the_variable(tmp_path: Path, build: Any, variable: str) -> None:
    message, _ = plan(tmp_path, build.request(), **{variable: "{}"})
    assert (message.result, message.reason) == (Result.REFUSED, "ConfigurationError")


def test_a_configuration_that_cannot_run(tmp_path: Path, build: Any) -> None:
    published(tmp_path, build)
    message, _ = plan(tmp_path, build.request(agents=[{"name": "claude-code", "version": "9.9.9"}]))
    assert (message.result, message.reason) == (Result.REFUSED, "ConfigurationError")
    assert not LocalStore(tmp_path).exists(f"{ROOT}/sweep.json")


def test_a_place_that_holds_something_else(tmp_path: Path, build: Any) -> None:
    published(tmp_path, build)
    LocalStore(tmp_path).put_once(f"{ROOT}/storage-check.json", b"other")
    message, _ = plan(tmp_path, build.request())
    assert (message.result, message.reason) == (Result.REFUSED, "StorageRefused")


class Overwriting:
    """A store without conditional writes."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_once(self, key: str, data: bytes) -> None:
        try:
            self._store.put_once(key, data)
        except AlreadyStored:
            return


def test_a_store_without_conditional_writes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(job.StorageRefused, match="ignores conditional writes"):
        check_storage(Overwriting(LocalStore(tmp_path)), "r")  # type: ignore[arg-type]
