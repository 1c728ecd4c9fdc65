"""The known-answer set: one module per sub-dimension, one for the generic checks, traps beside the templates they belong to."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from realcli.benchmark.catalogue import load_catalogue
from realcli.known import builder
from realcli.known.model import Case


@cache
def known_cases() -> tuple[Case, ...]:
    """All cases, templates and generic checks in catalogue order; of each ideal, violations, traps."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    catalogue = load_catalogue()
    place = {id: number for number, id in enumerate([*catalogue.templates, *catalogue.generic])}
    told = sorted(
        builder.TOLD, key=lambda one: place[one.template]
    )  # stable: stories of one template as they stand in their module
    return tuple(case for one in told for case in one.cases())
