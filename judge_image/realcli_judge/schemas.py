"""JSON Schema of summary.json, generated from its model into docs/schemas/.

`python -m realcli_judge.schemas --write` writes it, `--check` says whether it is what the model says.
"""

from __future__ import annotations

import json
import sys

from realcli.generated import generate
from realcli_judge.summary import Summary

FILE = "docs/schemas/summary.schema.json"


def schema() -> str:
    """The schema as text. Fields that are not defined are left out of the file: only what has no default is required."""
    found = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Summary.model_json_schema(by_alias=True, mode="validation"),
        "title": "summary.json of a report",
    }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 1 where `--check` finds a difference."""
    return generate("realcli_judge.schemas", "the model", lambda: {FILE: schema()}, arguments)


if __name__ == "__main__":
    sys.exit(main())
