"""The scenario catalogue shipped with the package.

A file that uses a word the vocabulary does not define, or breaks one of the rules of `catalogue_rules`, is refused whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import yaml
from pydantic import ValidationError

from realcli.api.base import sha256_digest
from realcli.benchmark.catalogue_models import (
    Catalogue,
    CheckTemplate,
    GenericCheck,
    Scenario,
    SubDimension,
    Template,
    Trigger,
    Vocabulary,
)
from realcli.benchmark.catalogue_rules import faults

__all__ = [
    "Catalogue",
    "CatalogueError",
    "CheckTemplate",
    "GenericCheck",
    "Scenario",
    "Template",
    "Trigger",
    "load_catalogue",
    "parse_catalogue",
]


class CatalogueError(ValueError):
    """The file is refused; the message lists every fault with the entry it is in and the rule it breaks."""


@cache
def load_catalogue() -> Catalogue:
    """The catalogue of this package."""
    return parse_catalogue(resources.files("realcli.benchmark").joinpath("data/scenarios.yaml").read_bytes())


def parse_catalogue(data: bytes) -> Catalogue:
    """A catalogue file; `CatalogueError` lists what is wrong with it."""
    return read_catalogue(yaml.load(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader)), sha256_digest(data))


def read_catalogue(raw: dict[str, Any], digest: str) -> Catalogue:
    """A catalogue from what its file holds."""
    try:
        templates = [Template.model_validate(item) for item in raw["templates"]]
        generic = [GenericCheck.model_validate(item) for item in raw.get("generic_checks", [])]
        sub_dimensions = [SubDimension.model_validate(item) for item in raw.get("sub_dimensions", [])]
        catalogue = Catalogue(
            schema_=raw["schema"],
            digest=digest,
            templates={t.id: t for t in templates},
            generic={g.id: g for g in generic},
            vocabulary=Vocabulary.model_validate(raw["vocabulary"]),
            sub_dimensions={s.key: s for s in sub_dimensions},
        )
    except ValidationError as error:
        raise CatalogueError(f"the scenario catalogue has entries of another form: {error}") from error
    found = [*_repeated([*templates, *generic]), *(str(fault) for fault in faults(catalogue))]
    if found:
        raise CatalogueError("the scenario catalogue is refused:\n" + "\n".join(found))
    return catalogue


def _repeated(entries: list[Template | GenericCheck]) -> Iterator[str]:
    ids = [entry.id for entry in entries]
    for id in sorted({id for id in ids if ids.count(id) > 1}):
        yield f"{id}: stands {ids.count(id)} times [id]"
