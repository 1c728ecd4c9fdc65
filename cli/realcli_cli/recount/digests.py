"""Digests as every record writes them."""

from __future__ import annotations

import hashlib


def digest(data: bytes) -> str:
    """`sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
