"""The tree scores are averaged in, from the catalogue: dimension, sub-dimension, scenarios."""

from __future__ import annotations

from realcli.benchmark.catalogue import Catalogue
from realcli.scoring.runs import Tree


def tree_of(catalogue: Catalogue) -> Tree:
    """All templates of the catalogue in its order."""
    tree: dict[str, dict[str, tuple[str, ...]]] = {}
    for template in catalogue.templates.values():
        subs = tree.setdefault(template.dimension, {})
        subs[template.sub_dimension] = (*subs.get(template.sub_dimension, ()), template.id)
    return tree
