"""JSON Schemas of the two files an author writes by hand, generated from the models into docs/schemas/.

`python -m realcli.benchmark.schemas --write` writes them, `--check` says whether they are what the models say.
"""

from __future__ import annotations

import json
import sys

from pydantic import BaseModel

from realcli.benchmark.oracle_models import Oracle
from realcli.benchmark.script_models import Script
from realcli.generated import generate

FOLDER = "docs/schemas"
_MODELS: dict[str, type[BaseModel]] = {"script.json": Script, "oracle_contract.json": Oracle}


def schemas() -> dict[str, str]:
    """Path from the root of the repository -> text."""
    found: dict[str, str] = {}
    for name, model in _MODELS.items():
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema(by_alias=True)}
        schema["title"] = f"interaction/{name}"
        found[f"{FOLDER}/{name.replace('.json', '.schema.json')}"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return found


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 1 where `--check` finds a difference."""
    return generate("realcli.benchmark.schemas", "the models", schemas, arguments)


if __name__ == "__main__":
    sys.exit(main())
