"""Do a task's parts fit together? References of the script, closure against the specification, bindings, oracle.

Closure (measuring.md 2.5) is checked as far as a program can: every numbered requirement has exactly one carrier, and the
literals in backticks of a requirement and of its carrier are the same. That the words around them mean the same is for review.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from realcli.benchmark.bundles import File
from realcli.benchmark.catalogue import Catalogue, Template
from realcli.benchmark.instruction import code_spans, duplicates, requirements
from realcli.benchmark.models import Oracle, Probe, Script
from realcli.benchmark.problems import Problem
from realcli.benchmark.run_files import RUN, TRAPS
from realcli.benchmark.script import BATCH, INSTRUCTION, ORACLE, PROBE, SCRIPT
from realcli.checks.rehearsal import refusal

SHORTEST_MARKER = 8  # characters; a shorter one stands in too much that a tool prints


def check_script(script: Script) -> Iterator[Problem]:
    """References inside the script."""
    for kind, ids in (("slices", [s.id for s in script.slices]), ("probes", [p.id for p in script.probes])):
        for id, count in Counter(ids).items():
            if count > 1:
                yield Problem(SCRIPT, kind, f"{id!r} stands {count} times", "give each its own id")
    slices = {part.id for part in script.slices}
    carriers = Counter(id for batch in script.batches.values() for id in batch)
    carriers.update(probe.slice for probe in script.probes if probe.slice)
    for name, batch in script.batches.items():
        for id in batch:
            if id not in slices:
                yield Problem(SCRIPT, f"batches.{name}", f"slice {id!r} does not exist", "name one of slices[].id")
    for id in sorted(slices):
        if carriers[id] != 1:
            yield Problem(SCRIPT, f"slices.{id}", f"is released {carriers[id]} times", "put it into exactly one batch or probe")
    expected = [BATCH + name for name in script.batches] + [PROBE + probe.id for probe in script.probes]
    for entry, count in sorted((Counter(script.order)).items()):
        if entry not in expected:
            yield Problem(SCRIPT, "order", f"{entry!r} names nothing", 'write "batch:<id>" or "probe:<id>" of this script')
        elif count > 1:
            yield Problem(SCRIPT, "order", f"{entry!r} stands {count} times", "name it once")
    for entry in expected:
        if entry not in script.order:
            yield Problem(SCRIPT, "order", f"{entry!r} is missing", "add it where it is due")


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
    spoken = [(name, text) for name, text, _ in sources] + [(f"probe {probe.id!r}", probe.text) for probe in script.probes]
    for name, text in spoken:
        for literal in sorted(code_spans(text) - code_spans(instruction)):
            yield Problem(
                SCRIPT, name, f"says `{literal}`, which is not in instruction.md", "say nothing the specification does not say"
            )
    for part in script.slices:
        if not part.requirements:
            yield Problem(SCRIPT, f"slice {part.id!r}", "carries no requirement", "name the numbers it carries")


def check_probes(script: Script, catalogue: Catalogue) -> Iterator[Problem]:
    """Each probe against its template."""
    for probe in script.probes:
        field = f"probe {probe.id!r}"
        template = catalogue.templates.get(probe.scenario)
        if template is None:
            yield Problem(SCRIPT, field, f"scenario {probe.scenario!r} is not in the catalogue", "name the id of a template")
            continue
        if template.type != "probe" or template.trigger.delivery != "at_yield":
            yield Problem(
                SCRIPT, field, f"{template.id} is not delivered at a yield", "bind a probe template with delivery at_yield"
            )
            continue
        unbound = list(_bindings(probe, template, field))
        yield from unbound
        yield from _trigger(probe, template, field)
        refused = None if unbound else refusal(probe, template)
        if refused is not None:
            yield Problem(SCRIPT, field, f"no judge of this version takes it: {refused}", "bind another template or correct it")
        text = next((part.text for part in script.slices if part.id == probe.slice), "")
        if text not in probe.text:
            yield Problem(
                SCRIPT, field, f"its text does not hold the text of slice {probe.slice!r}", "put the slice's text in verbatim"
            )


def _bindings(probe: Probe, template: Template, field: str) -> Iterator[Problem]:
    for name in sorted(set(template.bindings) - set(probe.bindings)):
        yield Problem(SCRIPT, f"{field} bindings.{name}", "is not filled", f"bind it: {template.bindings[name]}")
    for name in sorted(set(probe.bindings) - set(template.bindings)):
        yield Problem(SCRIPT, f"{field} bindings.{name}", f"is no binding of {template.id}", "remove it")
    for name, value in sorted(probe.bindings.items()):
        if value in (None, "", [], {}):
            yield Problem(SCRIPT, f"{field} bindings.{name}", "is empty", f"bind it: {template.bindings.get(name, '')}")
    if (template.plant == "dynamic") != (probe.edit is not None):
        what, remedy = ("has no edit", "add it") if probe.edit is None else ("has an edit", "remove it")
        yield Problem(SCRIPT, f"{field} edit", f"{what}, but the plant of {template.id} is {template.plant}", remedy)
    elif probe.edit is not None and "USER_EDIT" in probe.bindings and probe.bindings["USER_EDIT"] != probe.edit.dump():
        yield Problem(SCRIPT, f"{field} bindings.USER_EDIT", "is not the probe's edit", "repeat `edit` there")


def _trigger(probe: Probe, template: Template, field: str) -> Iterator[Problem]:
    """What the trigger asks for has to be said in the fields the session acts on."""
    for atom in template.trigger.when.get("all", [template.trigger.when]):
        if atom.get("event") == "file_write" and atom.get("nth") == 1:
            path = _bound(probe, atom["where"]["path"])
            if probe.wait_for_write != path:
                yield Problem(
                    SCRIPT, f"{field} wait_for_write", f"is {probe.wait_for_write!r}", f"write {path!r}, as the trigger says"
                )
            if probe.edit is not None and probe.edit.path != path:
                yield Problem(SCRIPT, f"{field} edit.path", f"is {probe.edit.path!r}", f"edit {path!r}, the file of the trigger")
        elif "slice_pending" in atom:
            slice_ = _bound(probe, atom["slice_pending"])
            if probe.slice != slice_:
                yield Problem(SCRIPT, f"{field} slice", f"is {probe.slice!r}", f"write {slice_!r}, as the trigger says")
        else:
            yield Problem(
                SCRIPT, field, f"the trigger of {template.id} is not delivered by this version", "bind another template"
            )
            return


def _bound(probe: Probe, placeholder: str) -> Any:
    return probe.bindings.get(placeholder.removeprefix("${").removesuffix("}"))


def check_oracle(script: Script, oracle: Oracle, watch: list[str], artifacts: list[str]) -> Iterator[Problem]:
    """Evidence for the probes is recorded where they need it."""
    for path in oracle.markers:
        if path not in oracle.paths:
            yield Problem(ORACLE, f"markers.{path}", "has markers but is no contract path", "add it to paths")
    for probe in script.probes:
        file, marker = probe.bindings.get("FILE"), probe.bindings.get("EDIT_MARKER")
        if not isinstance(file, str):
            continue
        if file not in oracle.paths:
            yield Problem(
                ORACLE, "paths", f"FILE {file!r} of probe {probe.id!r} is missing", "add it: its checks look at its snapshots"
            )
        if not any(_covers(glob.split("/"), file.split("/")) for glob in watch):
            remedy = "add it: the probe waits for a write to it"
            yield Problem("task.toml", "metadata.realcli.watch", f"FILE {file!r} of probe {probe.id!r} is missing", remedy)
        if not any(file == path or file.startswith(path + "/") for path in artifacts):
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


def check_markers(script: Script, instruction: str, files: list[File]) -> Iterator[Problem]:
    """The marker of an edit is seen by nobody who does not look at the file after the edit."""
    shown = [(file.path, file.content) for file in files if file.path.startswith(("environment/", RUN + "/", TRAPS + "/"))]
    said = [(INSTRUCTION, instruction), ("the opener", script.opener), ("the closer", script.closer)]
    said += [(f"slice {part.id!r}", part.text) for part in script.slices]
    said += [(f"probe {probe.id!r}", probe.text) for probe in script.probes]
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


def _covers(glob: list[str], path: list[str]) -> bool:
    """As the runner matches: within a component, `**` any number of components."""
    if not glob or not path:
        return not glob and not path
    if glob[0] == "**":
        return _covers(glob[1:], path) or _covers(glob, path[1:]) or glob[1:] == [] == path[1:]
    return fnmatchcase(path[0], glob[0]) and _covers(glob[1:], path[1:])
