"""What the agent's container has to know of mock hosts: their names, and whom to trust for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from realcli_session.runner.errors import FileMissing, RunnerError
from realcli_session.runner.port import RunnerPort

HOSTS = "/etc/hosts"
BUNDLE = "/etc/ssl/realcli-mock-hosts.pem"
STORES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # where that leads
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # where it is no link
)
VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS")
"""Programs that bring authorities of their own look where these point."""
LIMIT = 4 << 20


def loopback_address(nonce: str) -> str:
    """One in 127.64.0.0/10 that follows from the run: runs that share a network do not share it."""
    number = int.from_bytes(hashlib.sha256(nonce.encode()).digest()[:3], "big")
    return f"127.{64 + (number >> 16) % 64}.{number >> 8 & 0xFF}.{1 + (number & 0xFF) % 254}"


async def introduce(runner: RunnerPort, hosts: Iterable[str], address: str, authority: bytes) -> dict[str, str]:
    """Names into /etc/hosts, the authority into the image's trust stores; the variables an agent gets.

    Raises RunnerError where /etc/hosts or our own bundle cannot be written; a store that cannot be is left as it is, and the
    variables lead past it.
    """
    lines = "".join(f"{address}\t{host}\n" for host in sorted(hosts)).encode()
    await runner.put_file(HOSTS, _ended(await _content(runner, HOSTS)) + lines, parents=True)
    together = b""
    for store in STORES:
        try:
            known = await runner.get_file(store, limit=LIMIT)
            await runner.put_file(store, _ended(known) + authority, parents=False)
        except RunnerError:
            continue
        together = together or known
    await runner.put_file(BUNDLE, _ended(together) + authority, mode=0o644, uid=0, gid=0, parents=True)
    return dict.fromkeys(VARIABLES, BUNDLE)


def _ended(content: bytes) -> bytes:
    return content if not content or content.endswith(b"\n") else content + b"\n"


async def _content(runner: RunnerPort, path: str) -> bytes:
    try:
        return await runner.get_file(path, limit=LIMIT)
    except FileMissing:
        return b""
