"""Reads images that docker (`docker save`) or buildah and podman (`oci-archive:`, `oci:`) have written. Checks every digest."""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from realcli_cli.main import UserError

MAX_JSON = 8 << 20
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")


@dataclass(frozen=True)
class ImageConfig:
    """What of an image's configuration a container starts with."""

    digest: str  # sha256:…, the image's id
    env: dict[str, str]
    workdir: str
    user: str
    diff_ids: tuple[str, ...]  # digests of the layers, unpacked


@dataclass(frozen=True)
class Layer:
    """One layer: where it is in the archive, and the digest of its uncompressed tar."""

    name: str
    diff_id: str


class Files(Protocol):
    """The files of an archive or a folder."""

    def open(self, name: str) -> contextlib.AbstractContextManager[IO[bytes]]:
        """KeyError if it is not there."""


class TarFiles:
    """Of a tar. docker links layers that are equal; links are followed inside the archive."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._members = {posixpath.normpath(member.name): member for member in tar.getmembers()}

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """See Files."""
        member = self._members[posixpath.normpath(name)]
        for _ in range(8):
            if not (member.issym() or member.islnk()):
                break
            target = member.linkname if member.islnk() else posixpath.join(posixpath.dirname(member.name), member.linkname)
            member = self._members[posixpath.normpath(target)]
        file = self._tar.extractfile(member)
        if file is None:
            raise KeyError(name)
        with file:
            yield file


class FolderFiles:
    """Of an OCI layout on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """See Files. UserError: a name or a link that leads out of the folder."""
        path = self._folder / name
        if not path.resolve().is_relative_to(self._folder.resolve()):
            raise UserError(f"--image {self._folder}: {name} lies outside of it")
        try:
            file = path.open("rb")
        except OSError as error:
            raise KeyError(name) from error
        with file:
            yield file


_DAMAGE = (
    *(tarfile.TarError, zlib.error, lzma.LZMAError, EOFError),
    *(KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError),
)
"""What an archive that is none, or whose JSON says something else, can raise."""


@dataclass(frozen=True)
class ImageArchive:
    """An opened archive."""

    files: Files
    config: ImageConfig
    layers: tuple[Layer, ...]


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[ImageArchive]:
    """UserError names the file and what is wrong with it."""
    if not path.exists():
        raise UserError(
            f"--image {path}: no such file; make one with: docker save -o FILE IMAGE, or buildah push IMAGE oci-archive:FILE"
        )
    with contextlib.ExitStack() as stack:
        try:
            files: Files = FolderFiles(path) if path.is_dir() else TarFiles(stack.enter_context(tarfile.open(path)))
            opened = _read(files)
        except _DAMAGE as error:
            raise UserError(
                f"--image {path}: neither a `docker save` archive nor an OCI layout ({type(error).__name__}: {error}); "
                "make one with: docker save -o FILE IMAGE, or buildah push IMAGE oci-archive:FILE"
            ) from error
        yield opened


def _read(files: Files) -> ImageArchive:
    try:
        listed = _json(files, "manifest.json")
    except KeyError:
        return _oci(files)
    if len(listed) != 1:
        raise ValueError(f"it holds {len(listed)} images; save one")
    raw = _bytes(files, listed[0]["Config"])
    return _archive(files, raw, list(listed[0]["Layers"]))


def _oci(files: Files) -> ImageArchive:
    described = _pick(_json(files, "index.json")["manifests"])
    for _ in range(3):
        manifest = json.loads(_blob(files, described["digest"]))
        if "layers" in manifest:
            break
        described = _pick(manifest["manifests"])
    raw = _blob(files, manifest["config"]["digest"])
    return _archive(files, raw, [_place(layer["digest"]) for layer in manifest["layers"]])


def _pick(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """The one for linux on amd64; one that names no platform will do."""
    for one in manifests:
        platform = one.get("platform") or {}
        if one.get("mediaType") in _INDEXES or not platform:
            return one
        if (platform.get("os"), platform.get("architecture")) == ("linux", "amd64"):
            return one
    raise ValueError("it holds no image for linux on amd64")


def _archive(files: Files, raw: bytes, names: list[str]) -> ImageArchive:
    config = json.loads(raw)
    inner = config.get("config") or {}
    diff_ids = tuple(config["rootfs"]["diff_ids"])
    if len(diff_ids) != len(names):
        raise ValueError(f"its configuration names {len(diff_ids)} layers, the manifest {len(names)}")
    env = dict(entry.split("=", 1) for entry in inner.get("Env") or [] if "=" in entry)
    made = ImageConfig(
        digest=f"sha256:{hashlib.sha256(raw).hexdigest()}",
        env=env,
        workdir=inner.get("WorkingDir") or "/",
        user=inner.get("User") or "",
        diff_ids=diff_ids,
    )
    return ImageArchive(files, made, tuple(Layer(name, diff) for name, diff in zip(names, diff_ids, strict=True)))


def _place(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    if algorithm != "sha256" or len(value) != 64 or not all(c in "0123456789abcdef" for c in value):
        raise ValueError(f"{digest!r} is no sha256 digest")
    return f"blobs/sha256/{value}"


def _blob(files: Files, digest: str) -> bytes:
    data = _bytes(files, _place(digest))
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
        raise ValueError(f"blob {digest} is damaged")
    return data


def _json(files: Files, name: str) -> Any:
    return json.loads(_bytes(files, name))


def _bytes(files: Files, name: str) -> bytes:
    with files.open(name) as file:
        data = file.read(MAX_JSON + 1)
    if len(data) > MAX_JSON:
        raise ValueError(f"{name} is longer than {MAX_JSON} bytes")
    return data
