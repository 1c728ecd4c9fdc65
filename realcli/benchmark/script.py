"""Reading a task's texts from its unpacked bundles; what an item of a script's order says and which slices it releases."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from realcli.benchmark.models import Oracle, Probe, Script, Slice

BATCH = "batch:"
PROBE = "probe:"
INSTRUCTION = "instruction.md"
SCRIPT = "interaction/script.json"
ORACLE = "interaction/oracle_contract.json"


class Item(NamedTuple):
    """One due item of `script.order`: its text, verbatim, and the slices it releases."""

    id: str  # "batch:<id>" or "probe:<id>"
    text: str
    slices: tuple[str, ...]
    probe: Probe | None = None


def spec_of(public: Path) -> str:
    """The whole specification as EXEC sends it (`public` = an unpacked public bundle or the task's folder)."""
    return (public / INSTRUCTION).read_text(encoding="utf-8")


def read_script(private: Path) -> Script:
    """The script of an unpacked private bundle."""
    return Script.model_validate_json((private / SCRIPT).read_bytes())


def read_oracle(private: Path) -> Oracle:
    """The oracle contract of an unpacked private bundle."""
    return Oracle.model_validate_json((private / ORACLE).read_bytes())


def slice_of(script: Script, id: str) -> Slice:
    """The slice; KeyError names it."""
    return {part.id: part for part in script.slices}[id]


def message_of_batch(script: Script, batch: str) -> str:
    """The user's message of a batch: the canonical texts of its slices in their order, a blank line between them."""
    return "\n\n".join(slice_of(script, id).text for id in script.batches[batch])


def items(script: Script) -> list[Item]:
    """The script's order, resolved."""
    return [_item(script, entry) for entry in script.order]


def _item(script: Script, entry: str) -> Item:
    if entry.startswith(BATCH):
        batch = entry.removeprefix(BATCH)
        return Item(entry, message_of_batch(script, batch), tuple(script.batches[batch]))
    probe = {probe.id: probe for probe in script.probes}[entry.removeprefix(PROBE)]
    return Item(entry, probe.text, (probe.slice,) if probe.slice else (), probe)
