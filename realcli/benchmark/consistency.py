"""Do a task's parts fit together? The script's texts against the specification, its evidence against the oracle contract.

Closure (measuring.md 2.5) is checked as far as a program can: every numbered requirement has exactly one carrier, and the
literals in backticks of a requirement and of its carrier are the same. That the words around them mean the same is for review.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from realcli.benchmark.bundles import File
from realcli.benchmark.instruction import code_spans, duplicates, requirements
from realcli.benchmark.models import Oracle, Script
from realcli.benchmark.problems import Problem
from realcli.benchmark.run_files import RUN, TRAPS
from realcli.benchmark.script import INSTRUCTION, ORACLE, SCRIPT
from realcli.trajectory.patterns import path_matches

SHORTEST_MARKER = 8  # characters; a shorter one stands in too much that a tool prints


def check_closure(script: Script, instruction: str) -> Iterator[Problem]:
    """Opener + slices = instruction."""
    wanted = requirements(instruction)
    for number in duplicates(instruction):
        yield Problem(INSTRUCTION, f"requirement {number}", "is out of sequence", "number the requirements 1, 2, 3, … once each")
    if not wanted:
        yield Problem(INSTRUCTION, "", "has no numbered requirements", 'write them as lines that start with "1. ", "2. ", …')
    carriers: dict[str, list[tuple[str, str]]] = {number: [] for number in wanted}
    sources = [("the opener", script.opener, script.opener_requirements)]
    sources += [(f"slice {part.id!r}", part.text, part.requirements) for part in script.slices]
    for name, text, numbers in sources:
        for number in numbers:
            if number not in wanted:
                yield Problem(SCRIPT, name, f"carries requirement {number}, which instruction.md has not", "correct the number")
            else:
                carriers[number].append((name, text))
    for number, found in carriers.items():
        if len(found) != 1:
            where = " and ".join(name for name, _ in found) or "nothing"
            yield Problem(
                SCRIPT, f"requirement {number}", f"is carried by {where}", "let exactly one slice or the opener carry it"
            )
            continue
        lost = code_spans(wanted[number]) - code_spans(found[0][1]) - code_spans(script.opener)
        for literal in sorted(lost):
            yield Problem(SCRIPT, found[0][0], f"does not say `{literal}` of requirement {number}", "add it to the text")
    numbered = {literal for text in wanted.values() for literal in code_spans(text)}
    for literal in sorted(code_spans(instruction) - numbered - {span for _, text, _ in sources for span in code_spans(text)}):
        remedy = "add it to the opener: a COLLAB run hears of it nowhere else"
        yield Problem(SCRIPT, "opener", f"does not say `{literal}`, which instruction.md says outside its requirements", remedy)
    said = code_spans(instruction)
    for name, text, material in [(name, text, "") for name, text, _ in sources] + list(_spoken(script)):
        for literal in sorted(code_spans(text) - said):
            if literal not in material:
                remedy = "say nothing the specification does not say" + (", or bind it: it is probe material" if material else "")
                yield Problem(SCRIPT, name, f"says `{literal}`, which is not in instruction.md", remedy)
    carried = {id for batch in script.batches.values() for id in batch}
    for part in script.slices:
        if part.mandatory and not part.requirements:
            yield Problem(SCRIPT, f"slice {part.id!r}", "carries no requirement", "name the numbers it carries")
        elif part.requirements and not part.mandatory and part.id not in carried:
            remedy = "put it into a batch, or make it mandatory and bind it to a probe or closure"
            yield Problem(SCRIPT, f"slice {part.id!r}", "carries a requirement that only those hear who ask for it", remedy)


def _spoken(script: Script) -> Iterator[tuple[str, str, str]]:
    """Further texts of the user: where, the text, and the material it may name besides the specification."""
    known = "\n".join(script.user_knows)
    for probe in script.probes:
        closure = probe.closure
        texts = [probe.text, *probe.parts]
        texts += [closure.text, *([closure.told.text] if closure.told and closure.told.text else [])] if closure else []
        material = json.dumps(probe.bindings, ensure_ascii=False).replace("\\\\", "\\").replace('\\"', '"') + known
        yield from ((f"probe {probe.id!r}", text, material) for text in texts)
    actions = "\n".join(filter(None, (part for action in script.actions for part in (action.command, *action.paths))))
    for answer in script.answers:
        yield f"answer {answer.id!r}", answer.text, known + "\n"
    for action in script.actions:
        yield f"action {action.id!r}", action.text, known + "\n" + actions


def check_oracle(script: Script, oracle: Oracle, watch: list[str], artifacts: list[str]) -> Iterator[Problem]:
    """Evidence for the probes is recorded where they need it."""
    for path in oracle.markers:
        if not _within(path, oracle.paths):
            yield Problem(ORACLE, f"markers.{path}", "has markers but is no contract path", "add it to paths")
    for probe in script.probes:
        file, marker = probe.bindings.get("FILE"), probe.bindings.get("EDIT_MARKER")
        if not isinstance(file, str):
            continue
        if not _within(file, oracle.paths):
            yield Problem(
                ORACLE, "paths", f"FILE {file!r} of probe {probe.id!r} is missing", "add it: its checks look at its snapshots"
            )
        if not path_matches(file, watch):
            remedy = "add it: the probe waits for a write to it"
            yield Problem("task.toml", "metadata.realcli.watch", f"FILE {file!r} of probe {probe.id!r} is missing", remedy)
        if not _within(file, artifacts):
            yield Problem(
                "task.toml", "artifacts", f"FILE {file!r} of probe {probe.id!r} is no part of the result", "add it or its folder"
            )
        if marker is None:
            continue
        if marker not in oracle.markers.get(file, []):
            yield Problem(
                ORACLE, f"markers.{file}", f"EDIT_MARKER {marker!r} is missing", "add it: reading the file is seen by it"
            )
        if probe.edit is not None and marker not in probe.edit.insert:
            yield Problem(SCRIPT, f"probe {probe.id!r} bindings.EDIT_MARKER", "is no line of the edit", "use one of edit.insert")


def _within(file: str, paths: list[str]) -> bool:
    return any(file == path or file.startswith(path.rstrip("/") + "/") for path in paths)


def check_markers(script: Script, instruction: str, files: list[File]) -> Iterator[Problem]:
    """The marker of an edit is seen by nobody who does not look at the file after the edit."""
    shown = [(file.path, file.content) for file in files if file.path.startswith(("environment/", RUN + "/", TRAPS + "/"))]
    said = [(INSTRUCTION, instruction), ("the opener", script.opener), ("the closer", script.closer)]
    said += [(f"slice {part.id!r}", part.text) for part in script.slices]
    said += [(name, text) for name, text, _ in _spoken(script)]
    shown += [(name, text.encode()) for name, text in said]
    for probe in script.probes:
        marker = probe.bindings.get("EDIT_MARKER")
        if not isinstance(marker, str):
            continue
        field = f"probe {probe.id!r} bindings.EDIT_MARKER"
        if len(marker.strip()) < SHORTEST_MARKER:
            remedy = f"use a line of at least {SHORTEST_MARKER} characters"
            yield Problem(SCRIPT, field, f"{marker!r} is too short to be told from other output", remedy)
            continue
        for name, content in shown:
            if marker.strip().encode() in content:
                remedy = "insert a line that stands nowhere else: seeing it has to mean seeing the edit"
                yield Problem(SCRIPT, field, f"{marker!r} stands in {name} too", remedy)
