"""Servers that several rooms test against: a real S3 server (SeaweedFS) as a process on loopback."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from hypothesis import settings

settings.register_profile("full", deadline=None)  # how long an example takes says nothing on a busy machine
settings.register_profile("quick", deadline=None, max_examples=25)
settings.load_profile("full")


def pytest_configure(config: pytest.Config) -> None:
    """A run without the slow tests tries fewer examples, where a test does not say how many it needs."""
    settings.load_profile("quick" if "not slow" in (config.getoption("-m") or "") else "full")


def pytest_collection_finish() -> None:
    """Imported modules and collected tests stay to the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


def tool(name: str) -> Path:
    """A binary built by hack/: $REALCLI_BIN, else the cache's bin/."""
    cache = Path(os.environ.get("REALCLI_CACHE", str(Path.home() / ".cache" / "realcli")))
    folder = Path(os.environ.get("REALCLI_BIN", str(cache / "bin")))
    path = folder / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `make setup` (or set REALCLI_BIN to where {name} lies)")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class S3Server(NamedTuple):
    endpoint: str
    access_key: str
    secret_key: str
    process: subprocess.Popen[bytes]

    def client(self):
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        )

    def new_bucket(self) -> str:
        name = f"b-{uuid.uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=name)
        return name


class Weed:
    """A SeaweedFS server of a test's own, to be stopped, killed and started again over the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.access, self.secret = "test-access", "test-secret-key"
        identity = {
            "name": "t",
            "credentials": [{"accessKey": self.access, "secretKey": self.secret}],
            "actions": ["Admin", "Read", "Write", "List"],
        }
        (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        (folder / "data").mkdir()
        # weed derives the gRPC port of each part as port + 10000, so ports must stay below 55536
        self.ports = dict(zip(("master", "volume", "filer", "s3"), _ports_below(45_000, 4), strict=True))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> S3Server:
        with (self.folder / "weed.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    str(tool("weed")),
                    "server",
                    f"-dir={self.folder / 'data'}",
                    "-ip=127.0.0.1",
                    "-ip.bind=127.0.0.1",
                    "-master.volumeSizeLimitMB=64",
                    "-volume.max=100",  # a bucket takes seven
                    "-filer",
                    "-s3",
                    f"-s3.config={self.folder / 's3.json'}",
                    *(f"-{name}.port={port}" for name, port in self.ports.items()),
                    "-s3.iam=false",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        server = S3Server(f"http://127.0.0.1:{self.ports['s3']}", self.access, self.secret, self.process)
        _wait_ready(server, self.folder / "weed.log")
        return server

    def kill(self) -> None:
        """Its graceful end waits longer than its data is worth."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    weed = Weed(tmp_path_factory.mktemp("seaweedfs"))
    try:
        yield weed.start()
    finally:
        weed.kill()


@pytest.fixture
def own_weed(tmp_path: Path) -> Iterator[Weed]:
    """Not started."""
    (tmp_path / "seaweedfs").mkdir()
    weed = Weed(tmp_path / "seaweedfs")
    try:
        yield weed
    finally:
        weed.kill()


def _ports_below(limit: int, count: int) -> list[int]:
    found: list[int] = []
    candidate = 20_000 + os.getpid() % 10_000
    while len(found) < count:
        candidate += 1
        if candidate >= limit:
            raise RuntimeError("no free ports for SeaweedFS")
        with socket.socket() as low, socket.socket() as high:
            try:
                low.bind(("127.0.0.1", candidate))
                high.bind(("127.0.0.1", candidate + 10_000))
            except OSError:
                continue
        found.append(candidate)
    return found


def _wait_ready(server: S3Server, log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            client = server.client()
            with contextlib.suppress(client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou):
                client.create_bucket(Bucket="ready")  # one for all tries and starts: each bucket takes volumes of its own
            client.put_object(Bucket="ready", Key="ready", Body=b"1")
            return
        except (ClientError, BotoCoreError) as error:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"SeaweedFS did not start: {error}\n{log.read_text(errors='replace')[-3000:]}") from error
            time.sleep(0.2)  # polling a process that has no other way to say it is ready
