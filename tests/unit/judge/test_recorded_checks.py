"""checks.jsonl of a verify: covered by its seal, or not believed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from realcli.api.base import canonical_json
from realcli.ledger.events import HardCheck
from realcli.ledger.seals import SealedObject, TrialIdentity, VerifySeal
from realcli.storage import StorageConfig
from realcli.storage.opening import open_store
from realcli.storage.paths import AttemptPaths
from realcli_judge.evidence import recorded_checks
from realcli_judge.inputs import Refused

DIGEST = "sha256:" + "a" * 64
LINES = [
    HardCheck(instance="p", check="c", op="script", outcome="pass", by_seq=9, detail="done.sh"),
    HardCheck(instance="p", check="d", op="script", outcome="broken"),
]
TEXT = b"".join(canonical_json(line.dump()) + b"\n" for line in LINES)


def seal_of(text: bytes | None) -> VerifySeal:
    objects = [] if text is None else [SealedObject(path="checks.jsonl", sha256=hashlib.sha256(text).hexdigest(), size=len(text))]
    trial = TrialIdentity(
        sweep_uid="u", sweep="s", namespace="n", ordinal=0, attempt=1, configuration="c", task="t", mode="COLLAB", repeat=1,
        lock_digest=DIGEST,
    )  # fmt: skip
    return VerifySeal(
        trial=trial, verify=1, work_seal=DIGEST, work_reason="Completed", reason="Completed", reward="1", verifier_version="v",
        image="i", objects=objects,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stored", "sealed", "said"),
    [
        (TEXT, TEXT, None),
        (None, None, None),
        (TEXT, None, None),  # not covered: nobody vouches for it
        (None, TEXT, "EvidenceMissing"),
        (TEXT + b"\n", TEXT, "EvidenceChanged"),
        (b'{"instance":1}\n', b'{"instance":1}\n', "EvidenceChanged"),
    ],
)
def test_recorded_checks(tmp_path: Path, stored: bytes | None, sealed: bytes | None, said: str | None) -> None:
    store, paths = open_store(StorageConfig(directory=str(tmp_path))), AttemptPaths("attempt-1").verify(1)
    if stored is not None:
        store.put_once(paths.checks, stored)
    if said is None:
        assert list(recorded_checks(store, paths, seal_of(sealed))) == (LINES if sealed is TEXT else [])
    else:
        with pytest.raises(Refused) as caught:
            recorded_checks(store, paths, seal_of(sealed))
        assert caught.value.reason == said
