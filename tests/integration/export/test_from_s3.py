"""A sweep in a bucket is exported as the same sweep in a directory is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.sealed_sweep import write_sweep

pytestmark = pytest.mark.slow


def test_a_bucket_gives_what_a_directory_gives(s3_server: Any, tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path / "store")
    bucket, client = s3_server.new_bucket(), s3_server.client()
    for item in sweep.store.list(""):
        client.put_object(Bucket=bucket, Key=item.key, Body=sweep.store.get(item.key))
    keys = {"AWS_ACCESS_KEY_ID": s3_server.access_key, "AWS_SECRET_ACCESS_KEY": s3_server.secret_key}

    def export(format: str, source: str, out: Path) -> str:
        command = [
            sys.executable,
            "-m",
            "realcli_cli",
            "export",
            format,
            source,
            "--out",
            str(out),
            "--endpoint",
            s3_server.endpoint,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | keys)
        assert done.returncode == 0, done.stderr
        return done.stdout

    root = f"s3://{bucket}/{sweep.root}"
    assert export("harbor", root, tmp_path / "a" / "job") == f"11 of 12 trials in {tmp_path / 'a' / 'job'}\n"
    export("harbor", str(sweep.directory / sweep.root), tmp_path / "b" / "job")
    found = [
        {path.relative_to(tmp_path / side): path.read_bytes() for path in (tmp_path / side).rglob("*") if path.is_file()}
        for side in ("a", "b")
    ]
    assert found[0].keys() == found[1].keys()
    for name, content in found[0].items():
        assert content.replace(f"s3://{bucket}/".encode(), f"file://{sweep.directory}/".encode()) == found[1][name], name
    attempt = "trials/00004/attempt-2"
    export("atif", f"{root}/{attempt}", tmp_path / "one.json")
    assert json.loads((tmp_path / "one.json").read_bytes())["session_id"] == "first-00004-a2"
    command = [
        sys.executable,
        "-m",
        "realcli_cli",
        "export",
        "atif",
        f"s3://{bucket}/nothing",
        "--out",
        str(tmp_path / "none.json"),
    ]
    done = subprocess.run([*command, "--endpoint", s3_server.endpoint], capture_output=True, text=True, env=os.environ | keys)
    assert (done.returncode, "no ledger lies here" in done.stderr) == (2, True)
