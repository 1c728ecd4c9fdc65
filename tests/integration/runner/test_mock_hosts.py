"""A container is told of mock hosts: its own programs reach them by name and trust them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from realcli.benchmark.oracle_models import MockHost
from realcli.ledger.events import Event
from realcli.ledger.writer import LedgerWriter
from realcli_session.evidence.mockhosts.authority import Authority
from realcli_session.evidence.mockhosts.container import BUNDLE, introduce, loopback_address
from realcli_session.evidence.mockhosts.server import MockHosts

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: ports 80 and 443, a root of its own")
HOST = MockHost.model_validate({"role": "payload", "routes": [{"path": "/install.sh", "file": "i.sh"}]})
PROGRAM = """
import http.client, ssl, sys
trust = ssl.create_default_context(cafile=sys.argv[2])
link = http.client.HTTPSConnection(sys.argv[1], 443, context=trust)
link.connect = lambda: None
import socket
link.sock = trust.wrap_socket(socket.create_connection((sys.argv[3], 443)), server_hostname=sys.argv[1])
link.request("GET", "/install.sh")
sys.stdout.write(link.getresponse().read().decode())
"""


async def test_the_containers_programs_reach_them(start, empty_root: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    writer = LedgerWriter(tmp_path, on_event=events.append)
    authority = Authority("hosts of a test")
    address = loopback_address("0" * 64)
    files = {"interaction/hosts/get.example/i.sh": b"touch /marker\n"}
    served = MockHosts({"get.example": HOST}, files, {}, writer, address=address, authority=authority)
    await served.start()
    running = await start("empty")
    try:
        await running.client.put_file("/etc/ssl/cert.pem", b"# the image's own")
        variables = await introduce(running.client, ["get.example"], address, authority.pem)
        assert variables["SSL_CERT_FILE"] == BUNDLE
        hosts = (await running.client.get_file("/etc/hosts")).decode()
        assert f"{address}\tget.example\n" in hosts
        assert await running.client.get_file("/etc/ssl/cert.pem") == b"# the image's own\n" + authority.pem
        assert await running.client.get_file(BUNDLE) == b"# the image's own\n" + authority.pem
        done = await running.client.run(
            [*running.python, "-c", PROGRAM, "get.example", BUNDLE, address], env=variables, cwd="/", seconds=30
        )
        assert (done.stdout, done.stderr) == (b"touch /marker\n", b"")
        assert events[0].data["url"] == "https://get.example/install.sh"
    finally:
        await served.stop()
        writer.close()
        await running.client.run([*running.python, "-c", "import shutil; shutil.rmtree('/etc')"], env={}, cwd="/", seconds=30)
