"""JSON Schema of summary.json, generated from its model into docs/schemas/.

`python -m realcli_judge.schemas --write` writes it, `--check` says whether it is what the model says.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from realcli_judge.summary import Summary

FILE = Path("docs/schemas/summary.schema.json")


def schema() -> str:
    """The schema as text. Fields that are not defined are left out of the file: only what has no default is required."""
    found = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Summary.model_json_schema(by_alias=True, mode="validation"),
        "title": "summary.json of a report",
    }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Exit status: 1 where `--check` finds a difference."""
    if arguments == ["--write"]:
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(schema(), encoding="utf-8")
        return 0
    if arguments != ["--check"]:
        print("usage: python -m realcli_judge.schemas --write | --check", file=sys.stderr)
        return 2
    if FILE.is_file() and FILE.read_text(encoding="utf-8") == schema():
        return 0
    print(f"{FILE} is not what the model says; run `make generate`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
