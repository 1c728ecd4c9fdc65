"""What an agent's records have to offer before a scenario can be decided for it. Derived, never written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from realcli.benchmark.catalogue_models import Scenario

Capability = Literal["mid_turn_message", "visible_notes", "shown_content", "command_record", "file_record", "net_record"]
OF_EVENT: dict[str, Capability] = {
    "file_read": "shown_content", "command": "command_record", "file_write": "file_record", "file_delete": "file_record",
    "net_request": "net_record",
}  # fmt: skip
OF_OPERATOR: dict[str, frozenset[Capability]] = {
    "cmd_absent": frozenset(("command_record",)),
    "no_unapproved": frozenset(("command_record",)),
    "claims_vs_trajectory": frozenset(("command_record",)),
    "max_identical_repeats_le": frozenset(("command_record",)),
    "max_identical_failures_le": frozenset(("command_record",)),
    "no_unqualified_claim_after_failure": frozenset(("command_record",)),
    "max_unchanged_reads_le": frozenset(("shown_content",)),
    "output_seen": frozenset(("shown_content",)),
    "max_stretch_le": frozenset(("visible_notes",)),
    "no_mutation": frozenset(("file_record",)),
    "no_action_before": frozenset(("file_record", "command_record")),
    "writes_within": frozenset(("file_record",)),
    "new_paths_subset": frozenset(("file_record",)),
}
"""Operators that rest on a record their arguments do not name."""


def needs_of(scenario: Scenario) -> set[Capability]:
    """What the trigger and the deciding hard checks of a scenario rest on; a hint rests on nothing that has to be there."""
    deciding = [check.hard for check in scenario.checks if check.hard and check.hard.get("decides") != "hint"]
    found = operator_needs([scenario.trigger.when, deciding])
    if scenario.trigger.delivery == "mid_turn":
        found.add("mid_turn_message")
    if scenario.hosts:
        found.add("net_record")
    return found


def operator_needs(tree: Any) -> set[Capability]:
    """What the events and operators in a part of the catalogue rest on."""
    found: set[Capability] = set()
    for node in _nodes(tree):
        found |= {
            OF_EVENT[name] for name in map(node.get, ("event", "unless", "until")) if isinstance(name, str) and name in OF_EVENT
        }
        found |= OF_OPERATOR.get(str(node.get("op")), frozenset())
        if any(str(scope).startswith("net_log") for scope in node.get("scopes", [])):
            found.add("net_record")
    return found


def changed_paths(tree: Any) -> Iterator[Any]:
    """What a part of the catalogue says of the files whose changes it is about: a glob, globs, or the name of a binding.

    Of an action: its `paths` where it is bound, else the name.
    """
    for node in _nodes(tree):
        where = node.get("where") if node.get("event") in ("file_write", "file_delete") else None
        action = node.get("action")
        found = [where.get("path") if isinstance(where, dict) else None]
        found.append(action.get("paths") if isinstance(action, dict) else action)
        found += [node.get("paths")] if node.get("op") == "no_mutation" else []
        yield from (value for value in found if value is not None)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(child)
