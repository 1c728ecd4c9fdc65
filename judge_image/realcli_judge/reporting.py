"""The report Job: what all groups of a sweep say, as summary.json, tables and pages. Written once; equal inputs, equal bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jinja2 import Environment

from realcli.api.base import sha256_digest
from realcli.api.plan import Coordinates
from realcli.checks.digest import digest8
from realcli.known.gate import Gate
from realcli.known.kept import GateUnreadable, kept_gate
from realcli.scoring.records import WithdrawnTask
from realcli.storage.paths import calibration, join
from realcli.storage.port import ObjectStore
from realcli_judge.aligned import Column
from realcli_judge.collect import Collected, collect
from realcli_judge.details import inspect
from realcli_judge.inputs import Inputs, Refused
from realcli_judge.pages import Site, column, environment, side_page, trial_page
from realcli_judge.scores import Counted, summarise
from realcli_judge.summary import Summary, TrialSummary
from realcli_judge.tables import tables


def write_report(inputs: Inputs, withdrawn: Sequence[WithdrawnTask] = ()) -> tuple[Summary, str, str]:
    """Write the report below `reports/`; (summary, its digest, key of the report's folder). summary.json is written last.

    Of `withdrawn` tasks nothing is counted, in no configuration."""
    collected = collect(inputs, withdrawn)
    gate = _gate(inputs, collected)
    files = Files(inputs.store, inputs.paths.report(digest8(collected.digest)))
    templates = environment()
    trials = _trials(inputs, collected, files, templates)
    counted = Counted.of(inputs.lock, collected)
    summary = summarise(inputs.lock, inputs.plan, collected, counted, trials, gate)
    for name, data in tables(summary, counted).items():
        files.put(f"tables/{name}", data)
    for path, page in Site(summary, collected, inputs.config.uri(inputs.root), templates).pages():
        files.put(path, page.encode())
    summary = summary.model_copy(update={"files": files.close()})
    data = summary.canonical()
    inputs.store.put_once(join(files.folder, "summary.json"), data)
    return summary, sha256_digest(data), files.folder


class Files:
    """The report's folder, listed as `sha256sum -c` reads it. The summary names the list, the Job's message the summary."""

    def __init__(self, store: ObjectStore, folder: str) -> None:
        self.folder = folder
        self._store = store
        self._digests: dict[str, str] = {}

    def put(self, path: str, data: bytes) -> None:
        """Write a file once."""
        self._store.put_once(join(self.folder, path), data)
        self._digests[path] = sha256_digest(data).removeprefix("sha256:")

    def close(self) -> str:
        """Write the list; its digest."""
        data = "".join(f"{digest}  {path}\n" for path, digest in sorted(self._digests.items())).encode()
        self._store.put_once(join(self.folder, "SHA256SUMS"), data)
        return sha256_digest(data)


def _gate(inputs: Inputs, collected: Collected) -> Gate | None:
    """The last calibration of this judge; the report's name depends on it. A judge that is a program needs none."""
    prefix = inputs.root.rpartition("sweeps/")[0]
    try:
        gate = kept_gate(inputs.store, prefix, collected.judge)
    except GateUnreadable as error:
        raise Refused("EvidenceChanged", str(error)) from error
    if gate is not None:
        collected.objects[calibration(prefix, digest8(collected.judge))] = gate.content_digest()
    return gate


def _trials(inputs: Inputs, collected: Collected, files: Files, templates: Environment) -> list[TrialSummary]:
    """Write the pages of trials, and those side by side: in the plan's order all runs of a (task, repeat) stand together."""
    sweep = inputs.lock.sweep.name
    found: list[TrialSummary] = []
    columns: list[Column] = []
    ordinals = sorted(collected.trials)
    repeats = _repeats(collected)
    for before, ordinal, after in zip([None, *ordinals], ordinals, [*ordinals[1:], None], strict=False):
        trial = collected.trials[ordinal]
        detail = inspect(inputs, trial)
        side = trial.cell.repeat in repeats.get(trial.cell.task, [])
        page = trial_page(detail, inputs.lock, (before, after), side, templates)
        files.put(f"trials/{ordinal:05d}.html", page.encode())
        found.append(detail.summary)
        shown = column(detail)
        columns += [shown] if shown is not None else []
        if side and (after is None or _block(collected.trials[after].cell) != _block(trial.cell)):
            page = side_page(trial.cell.task, trial.cell.repeat, repeats[trial.cell.task], columns, sweep, templates)
            files.put(f"side/{trial.cell.task}-{trial.cell.repeat}.html", page.encode())
            columns = []
    return found


def _block(cell: Coordinates) -> tuple[str, int]:
    return cell.task, cell.repeat


def _repeats(collected: Collected) -> dict[str, list[int]]:
    """Repeats of each task of which at least two configurations have a sealed COLLAB run: one has nothing to stand beside."""
    runs = Counter(
        _block(trial.cell)
        for trial in collected.trials.values()
        if trial.member.mode == "COLLAB" and trial.valid and trial.member.work_seal is not None
    )
    found: dict[str, list[int]] = {}
    for task, repeat in sorted(block for block, count in runs.items() if count > 1):
        found.setdefault(task, []).append(repeat)
    return found
