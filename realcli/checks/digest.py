"""Which judge a judgement is by. A sweep's score never mixes two of them."""

from __future__ import annotations

from realcli.api.base import canonical_json, sha256_digest
from realcli.checks.model import OPERATORS_VERSION


def judge_digest(catalogue_digest: str) -> str:
    """Digest of (catalogue, operators, judge configuration). This version has one configuration: program alone."""
    return sha256_digest(
        canonical_json({"catalogue": catalogue_digest, "operators": OPERATORS_VERSION, "judge": {"kind": "program"}})
    )


def digest8(digest: str) -> str:
    """The first 8 hex digits, as folders and file names carry them."""
    return digest.removeprefix("sha256:")[:8]
