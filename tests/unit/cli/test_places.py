"""What a person names, where its run was made by another sweep (`spec.from`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from realcli.ledger.seals import TrialIdentity
from realcli.scoring.records import GroupMember
from realcli.scoring.sources import Source
from realcli_cli.places import nothing_at, place_of_status, place_of_uri

DIGEST = "sha256:" + "1" * 64
MADE = "p/sweeps/audits/first-0f6a2b1c"


@pytest.mark.parametrize(
    ("trial", "anchored"),
    [("first-00003", True), ("again-00003", False), ("first-00004", False)],
    ids=["its own", "another sweep's", "another cell's"],
)
def test_a_verdict_is_looked_for_where_its_run_lies_only_if_it_lies_there(tmp_path: Path, trial: str, anchored: bool) -> None:
    (tmp_path / MADE / "trials/00003/attempt-2").mkdir(parents=True)
    status = {
        "ledgerURI": f"file://{tmp_path}/{MADE}/trials/00003/attempt-2/ledger",
        "workSealDigest": DIGEST,
        "sealDigest": DIGEST,
    }
    place = place_of_status(trial, status, None)
    assert (place.anchor, place.verdict_anchor) == (DIGEST, DIGEST if anchored else None)


def test_where_no_ledger_lies_it_says_whose_runs_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "sweeps/audits/again-99999999/trials/00000"
    folder.mkdir(parents=True)
    place = place_of_uri(str(tmp_path / "sweeps"), None)
    assert nothing_at(place).endswith("no ledger lies here")
    cell = {"ordinal": 3, "mode": "EXEC", "repeat": 1}
    source = Source(
        uri=f"s3://evals/{MADE}/trials/00003/attempt-2",
        attempt=f"{MADE}/trials/00003/attempt-2",
        verified=f"{MADE}/trials/00003/attempt-2",
        trial=TrialIdentity.model_validate(
            {"sweep_uid": "u", "sweep": "first", "namespace": "audits", "attempt": 2, "configuration": "c", "task": "t"}
            | {"lock_digest": DIGEST}
            | cell
        ),
        member=GroupMember.model_validate(cell | {"phase": "Sealed", "reason": "Completed", "attempt": 2}),
        group=DIGEST,
    )
    (folder / "source.json").write_bytes(source.canonical())
    assert f"its runs were made by another sweep, s3://evals/{MADE}; name that" in nothing_at(place)
