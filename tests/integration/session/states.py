"""Reads a state archive or snapshot: name → content of its files."""

from __future__ import annotations

import io
import tarfile

import zstandard


def read_archive(data: bytes) -> dict[str, bytes]:
    raw = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as tar:
        return {member.name: file.read() for member in tar if (file := tar.extractfile(member)) is not None}
