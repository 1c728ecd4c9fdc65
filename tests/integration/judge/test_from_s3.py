"""`spec.from` on a real S3: what a program judged is judged again by a model, from the plan Job to a report counted offline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer

from realcli.api.source import SourceRef
from realcli.api.termination import Result, Termination, parse_termination
from realcli.checks.digest import digest8
from realcli.judging.identity import identity_of
from realcli.storage import StorageConfig
from realcli.storage.opening import open_store
from realcli_cli.local.provider import ScriptedProvider, scripted_provider
from realcli_cli.verify_report import verify_report
from realcli_judge.__main__ import main
from tests.support.from_sweep import planned
from tests.support.sealed_sweep import SealedSweep, write_sweep

KEY = "sk-judge-0123456789abcdef"
BUCKET = "evals"  # as the sweep's lock has it


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with scripted_provider(control=True, key=KEY) as made:
        yield made


@pytest.fixture
def environ(s3_server: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a Job's pod has of storage."""
    client = s3_server.client()
    with suppress(client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
        client.create_bucket(Bucket=BUCKET)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    return {"REALCLI_STORAGE": json.dumps({"bucket": BUCKET, "endpoint": s3_server.endpoint})}


def job(environ: dict[str, str], log: Path, sweep: SealedSweep, group: int) -> Termination:
    given = {**environ, "REALCLI_GROUP": sweep.group_input(group).canonical().decode(), "REALCLI_TERMINATION_LOG": str(log)}
    main(["judge", "--root", sweep.root, "--lock-digest", sweep.lock_digest], given)
    message = parse_termination(log.read_text())
    assert message is not None
    return message


def test_judged_again_by_a_model(
    environ: dict[str, str], provider: ScriptedProvider, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local = write_sweep(tmp_path / "made")
    store = open_store(StorageConfig.from_environment(environ))
    for item in local.store.list(""):
        store.put_once(item.key, local.store.get(item.key))
    log = tmp_path / "log"
    for group in range(local.plan.groups):
        assert job(environ, log, local, group).result is Result.JUDGED
    before = {item.key for item in store.list("")}

    ref = SourceRef(uri=f"s3://{BUCKET}/{local.root}", lock_digest=local.lock_digest)
    endpoint = {"url": f"{provider.url}/v1", "apiKey": {"secretRef": {"name": "judge", "key": "key"}}}
    judge = {"model": {"model": "judge-1", "endpoints": {"chat": endpoint}}, "votes": 1}
    keys = {"REALCLI_KEY_JUDGE": KEY, "REALCLI_ALLOW_LOOPBACK": "1"}
    made = planned(store, {**environ, **keys}, ref, ["Judge"], judge=judge)
    assert made.said.result is Result.PLANNED, made.said.message
    assert made.planned.judged_only
    judge8 = digest8(identity_of(made.lock.spec.judge).content_digest())
    for group in range(made.planned.groups):
        said = made.job(log, "judge", group)
        assert said.result is Result.JUDGED, said.message
    told = made.job(log, "report")
    assert told.result is Result.REPORTED, told.message

    new = {item.key for item in store.list("")} - before
    assert new, "there is something new"
    assert all(key.startswith(f"{made.root}/") for key in new), "and it lies in a place of its own"
    assert [key for key in new if f"/judgements/{judge8}/" in key and "/exchanges/" in key], "a model was asked"

    copy = tmp_path / "copy"
    for item in store.list(""):
        path = copy / item.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(item.key))
    folder = copy / str(told.uri).removeprefix(f"s3://{BUCKET}/")
    summary = json.loads((folder / "summary.json").read_bytes())
    assert (summary["source"]["sweep"]["name"], summary["judge"]["identity"]["model"]) == ("first", "judge-1")
    with pytest.raises(typer.Exit) as done:
        verify_report(str(folder))
    assert done.value.exit_code == 0, capsys.readouterr().out
