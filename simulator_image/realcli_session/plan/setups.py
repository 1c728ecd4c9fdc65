"""A team's own set-up of an agent: from what a sweep names (an archive in S3, a ConfigMap) to one pinned archive in storage.

Both become `setups/<sha256>.tar.zst` below the sweep's root, with the folders `Config/` and `Work/`. What every trial installs is
then the same bytes, whatever happens to the source meanwhile.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

from realcli.api.agents import PROGRAMS, Agent, ConfigMapFiles, Root
from realcli.api.base import canonical_json, sha256_digest
from realcli.api.plan import SetupLock
from realcli.storage.port import NotFound

MAX_BYTES = 32 << 20  # of the files, uncompressed
MAX_FILES = 2000
ROOTS = tuple(root.value for root in Root)
Fetch = Callable[[str], bytes]
"""s3:// address → content. NotFound if there is none."""


class SetupProblem(Exception):
    """The set-up cannot be taken; the message names field or file, what was expected and what to do."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """A set-up in the lock, and the archive that has to lie in storage for it."""

    lock: SetupLock
    archive: bytes | None


def pin(agent: Agent, mounted: Path, fetch: Fetch) -> Pinned | None:
    """The set-up of an agent; None if it has none. `mounted`: where the keys of its ConfigMap lie as files.

    Raises SetupProblem.
    """
    if agent.files is None and not agent.mcp_servers and not agent.tool_images:
        return None
    where = f"spec.agents[{agent.name}]"
    for problem in _unknown_to(agent):
        raise SetupProblem(f"{where}.{problem}")
    archive, files = None, 0
    if agent.files is not None and agent.files.config_map_ref is not None:
        archive, files = _pack(agent.files.config_map_ref, mounted, f"{where}.files.configMapRef")
    elif agent.files is not None and agent.files.source is not None:
        archive, files = _fetched(agent.files.source, agent.files.digest, fetch, f"{where}.files")
    digest = None if archive is None else sha256_digest(archive)
    servers = [server.dump() for server in agent.mcp_servers]
    images = [image.dump() for image in agent.tool_images]
    secrets = [env.secret_ref for server in agent.mcp_servers for env in server.env if env.secret_ref is not None]
    lock = SetupLock(
        digest=sha256_digest(canonical_json({"archive": digest, "mcpServers": servers, "toolImages": images})),
        archive=digest,
        files=files,
        mcp_servers=agent.mcp_servers,
        tool_images=agent.tool_images,
        in_reach=sorted({f"{secret.name}/{secret.key}" for secret in secrets}),
    )
    return Pinned(lock, archive)


def warnings(agent: Agent) -> Iterator[str]:
    """What a person should know of a set-up that can be taken."""
    for image in agent.tool_images:
        if "@sha256:" not in image.image:
            yield f"agents[{agent.name}].toolImages: {image.image} is not pinned by digest; another image may have been run later"
    if any(env.secret_ref is not None for server in agent.mcp_servers for env in server.env):
        yield f"agents[{agent.name}].mcpServers: the secrets of their environment are in the agent's reach"


def _unknown_to(agent: Agent) -> Iterator[str]:
    """What a program has no place for."""
    if agent.resolved_program not in PROGRAMS or agent.resolved_program != "terminus-2":
        return
    if agent.mcp_servers:
        yield "mcpServers: terminus-2 knows no MCP servers; leave them out, or put the programs into a tool image"
    items = agent.files.config_map_ref.items if agent.files is not None and agent.files.config_map_ref is not None else []
    if any(item.root is Root.CONFIG for item in items):
        yield "files: terminus-2 has no configuration folder; use root: Work"


def _pack(source: ConfigMapFiles, mounted: Path, field: str) -> tuple[bytes, int]:
    """One deterministic archive. A file that begins with #! may be executed: a ConfigMap holds no modes."""
    members: dict[str, bytes] = {}
    for item in source.items:
        name = _member(f"{item.root.value}/{item.path}", f"{field}.items")
        if name in members:
            raise SetupProblem(f"{field}.items: {item.path} (root {item.root.value}) stands twice; every file has one source")
        try:
            members[name] = (mounted / item.key).read_bytes()
        except OSError as error:
            raise SetupProblem(f"{field}: ConfigMap {source.name} has no key {item.key!r} ({error}); correct it") from error
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in sorted(members.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if content.startswith(b"#!") else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return zstandard.ZstdCompressor(level=10).compress(raw.getvalue()), len(members)


def _fetched(source: str, digest: str | None, fetch: Fetch, field: str) -> tuple[bytes, int]:
    try:
        archive = fetch(source)
    except NotFound:
        raise SetupProblem(f"{field}.source: {source} does not exist; upload the archive or correct the address") from None
    found = sha256_digest(archive)
    if found != digest:
        raise SetupProblem(f"{field}.digest: {source} has the digest {found}, expected {digest}; correct digest or source")
    return archive, sum(1 for member in members_of(archive, f"{field}.source") if member.isfile())


def members_of(archive: bytes, field: str) -> list[tarfile.TarInfo]:
    """The members of a .tar.zst, checked: files and folders below Config/ and Work/, bounded. Raises SetupProblem."""
    found = []
    try:
        with tarfile.open(fileobj=io.BytesIO(unpacked(archive, field))) as tar:
            for member in tar:
                normal = _member(member.name, field)
                if not (member.isdir() or (member.isfile() and normal not in ROOTS)):
                    raise SetupProblem(f"{field}: {member.name} is neither file nor folder; links and devices are not taken")
                found.append(member)
                if len(found) > MAX_FILES:
                    raise SetupProblem(f"{field}: more than {MAX_FILES} members; at most that many are installed")
    except tarfile.TarError as error:
        raise SetupProblem(f"{field}: not a tar archive inside ({error}); make it with tar --zstd -cf") from error
    return found


def unpacked(archive: bytes, field: str) -> bytes:
    """The tar inside, at most MAX_BYTES. Raises SetupProblem."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(archive) as stream:
            raw: bytes = stream.read(MAX_BYTES + 1)
    except zstandard.ZstdError as error:
        raise SetupProblem(f"{field}: not compressed with zstd ({error}); make it with tar --zstd -cf") from error
    if len(raw) > MAX_BYTES:
        raise SetupProblem(f"{field}: more than {MAX_BYTES >> 20} MiB unpacked; at most that is installed")
    return raw


def _member(name: str, field: str) -> str:
    """The normal form of a member's name."""
    normal = posixpath.normpath(name)
    parts = normal.split("/")
    if name.startswith("/") or "\0" in name or ".." in parts or parts[0] not in ROOTS:
        raise SetupProblem(f"{field}: {name!r} lies outside of {' and '.join(ROOTS)}; every file belongs below one of them")
    return normal
