"""Which judge a judgement is by. A sweep's score never mixes two of them."""

from __future__ import annotations

from realcli.checks.model import OPERATORS_VERSION
from realcli.judging.model import JudgeIdentity


def judge_digest(catalogue_digest: str) -> str:
    """Digest of the judge that is a program alone; of any judge: `realcli.judging.identity.identity_of`."""
    return JudgeIdentity(kind="program", catalogue=catalogue_digest, operators=OPERATORS_VERSION).content_digest()


def digest8(digest: str) -> str:
    """The first 8 hex digits, as folders and file names carry them."""
    return digest.removeprefix("sha256:")[:8]
