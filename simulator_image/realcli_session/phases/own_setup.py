"""The team's own set-up of an agent, as the lock names it: fetched, checked, and handed to the adapter."""

from __future__ import annotations

from pathlib import Path

from realcli.api.agents import McpEnv, McpServer
from realcli.api.base import sha256_digest
from realcli.api.plan import ConfigurationLock
from realcli.ledger.redaction import MIN_SECRET
from realcli.storage.paths import SweepPaths
from realcli.storage.port import NotFound, ObjectStore
from realcli_session.agents import port
from realcli_session.inputs import InputRefused
from realcli_session.plan.setups import SetupProblem, members_of, unpacked


def own_setup(configuration: ConfigurationLock, store: ObjectStore, paths: SweepPaths, secrets: Path) -> port.OwnSetup | None:
    """What the adapter installs; None where the program is used as it comes. Blocks.

    `secrets`: folder with `<server>/<variable>` files. Raises InputRefused naming what is not there or was changed; StorageError.
    """
    lock = configuration.setup
    if lock is None:
        return None
    files = None
    if lock.archive is not None:
        key = paths.setup(lock.archive)
        try:
            archive = store.get(key)
        except NotFound:
            raise InputRefused(
                f"{key} does not exist in {store.describe()}: the set-up's files are gone, make a new sweep"
            ) from None
        if sha256_digest(archive) != lock.archive:
            raise InputRefused(f"{key} has the digest {sha256_digest(archive)}, expected {lock.archive}: it was changed")
        try:
            members_of(archive, key)
            files = unpacked(archive, key)
        except SetupProblem as problem:
            raise InputRefused(str(problem)) from problem
    return port.OwnSetup(
        digest=lock.digest,
        files=files,
        mcp_servers=tuple(_server(server, secrets) for server in lock.mcp_servers),
        tool_images=tuple(image.mount_path for image in lock.tool_images),
        in_reach=tuple(lock.in_reach),
    )


def secret_values(configuration: ConfigurationLock, secrets: Path) -> list[str]:
    """Values of the set-up's secrets: redacted from the ledger like keys, though the agent can read them. Raises InputRefused for
    one that cannot be."""
    if configuration.setup is None:
        return []
    found = []
    for server in configuration.setup.mcp_servers:
        for env in server.env:
            value = _value(server, env, secrets) if env.secret_ref is not None else ""
            if value and len(value) < MIN_SECRET:
                raise InputRefused(
                    f"the secret of variable {env.name} of MCP server {server.name} has {len(value)} characters; at least "
                    f"{MIN_SECRET} are needed to redact it from the evidence without harm to innocent text: use a longer one"
                )
            found += [value] if value else []
    return found


def _server(server: McpServer, secrets: Path) -> port.McpServer:
    return port.McpServer(server.name, tuple(server.command), {env.name: _value(server, env, secrets) for env in server.env})


def _value(server: McpServer, env: McpEnv, secrets: Path) -> str:
    if env.value is not None:
        return env.value
    path = secrets / server.name / env.name
    try:
        return path.read_text(encoding="utf-8").strip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputRefused(
            f"the secret of variable {env.name} of MCP server {server.name} is not at {path} ({error}); does the Secret exist?"
        ) from error
