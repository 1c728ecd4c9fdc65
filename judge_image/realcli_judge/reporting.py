"""The report Job: what all groups of a sweep say, as summary.json, tables and pages. Written once; equal inputs, equal bytes."""

from __future__ import annotations

from realcli.api.base import sha256_digest
from realcli.checks.digest import digest8
from realcli.storage.paths import join
from realcli_judge.collect import collect, inspect
from realcli_judge.inputs import Inputs
from realcli_judge.pages import environment, index_page, trial_page
from realcli_judge.scores import summarise
from realcli_judge.summary import Summary
from realcli_judge.tables import tables


def write_report(inputs: Inputs) -> tuple[Summary, str, str]:
    """Write the report below `reports/`; (summary, its digest, key of the report's folder). summary.json is written last."""
    collected = collect(inputs)
    folder = inputs.paths.report(digest8(collected.digest))
    templates = environment()
    trials = []
    ordinals = sorted(collected.trials)
    for before, ordinal, after in zip([None, *ordinals], ordinals, [*ordinals[1:], None], strict=False):
        trial, sections = inspect(inputs, collected.trials[ordinal])
        page = trial_page(trial, sections, inputs.lock.sweep.name, (before, after), templates)
        inputs.store.put_once(join(folder, "trials", f"{ordinal:05d}.html"), page.encode())
        trials.append(trial)
    summary = summarise(inputs, collected, trials)
    for name, data in tables(summary).items():
        inputs.store.put_once(join(folder, "tables", name), data)
    page = index_page(summary, inputs.config.uri(inputs.root), templates)
    inputs.store.put_once(join(folder, "index.html"), page.encode())
    data = summary.canonical()
    inputs.store.put_once(join(folder, "summary.json"), data)
    return summary, sha256_digest(data), folder
