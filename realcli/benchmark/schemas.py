"""JSON Schemas of the two files an author writes by hand, generated from the models into docs/schemas/.

`python -m realcli.benchmark.schemas --write` writes them, `--check` says whether they are what the models say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from realcli.benchmark.oracle_models import Oracle
from realcli.benchmark.script_models import Script

FOLDER = Path("docs/schemas")
_MODELS: dict[str, type[BaseModel]] = {"script.json": Script, "oracle_contract.json": Oracle}


def schemas() -> dict[str, str]:
    """File name -> text."""
    found: dict[str, str] = {}
    for name, model in _MODELS.items():
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema(by_alias=True)}
        schema["title"] = f"interaction/{name}"
        found[name.replace(".json", ".schema.json")] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return found


def main(arguments: list[str]) -> int:
    """Exit status: 1 where `--check` finds a difference."""
    if arguments not in (["--write"], ["--check"]):
        print("usage: python -m realcli.benchmark.schemas --write | --check", file=sys.stderr)
        return 2
    stale = [name for name, text in schemas().items() if not _same(FOLDER / name, text)]
    if arguments == ["--write"]:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, text in schemas().items():
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    for name in stale:
        print(f"{FOLDER / name} is not what the models say; run `make generate`", file=sys.stderr)
    return 1 if stale else 0


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
