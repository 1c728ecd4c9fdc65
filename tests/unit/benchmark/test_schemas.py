"""The published JSON Schemas are what the models say, and say how a condition is spelled."""

from __future__ import annotations

import json
from pathlib import Path

from realcli.benchmark.schemas import FOLDER, main, schemas


def test_they_are_up_to_date() -> None:
    root = Path(__file__).resolve().parents[3]
    assert {name: (root / name).read_text() for name in schemas()} == schemas()
    assert main(["--check", "--under", str(root)]) == 0


def test_keys_are_spelled_as_files_spell_them() -> None:
    script = json.loads(schemas()[f"{FOLDER}/script.schema.json"])
    assert {"openerRequirements", "userKnows", "passive", "schema"} <= set(script["properties"])
    assert set(script["$defs"]["ExchangeAtLeast"]["properties"]) == {"exchange_at_least"}
    assert set(script["$defs"]["Count"]["required"]) == {"count", "at_least"}
    assert script["additionalProperties"] is False
