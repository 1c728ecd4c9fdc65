"""What the Job asks a model with: settings, the backend over storage, the group's purse, a few threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from realcli.judging.conversing import Pool
from realcli.judging.port import Backend
from realcli.judging.purse import Purse
from realcli.judging.run import Settings
from realcli_judge.backends.opening import open_backend
from realcli_judge.backends.stored import StoredBackend
from realcli_judge.inputs import Inputs

R = TypeVar("R")
THREADS = 4
"""Sessions held at once; a provider's own limits come back as 429 and are waited for."""


@dataclass(frozen=True)
class Asking:
    """A model that judges."""

    settings: Settings
    backend: Backend
    purse: Purse
    pool: Pool


def in_threads(jobs: Sequence[Callable[[], R]]) -> list[R]:
    """A `Pool`: a few at a time; after an error nothing new is begun."""
    with ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="judge") as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def asking(inputs: Inputs, configuration: str, task: str, judge8: str, environ: Mapping[str, str]) -> Asking | None:
    """As the sweep's spec says; None: by program alone. `BackendRefused` for an endpoint that cannot be asked."""
    judge = inputs.lock.spec.judge
    settings = Settings.of(judge)
    if settings is None or judge.model is None:
        return None
    prices = judge.model.prices
    stored = StoredBackend(
        inputs.store,
        lambda key: inputs.paths.judge_exchange(judge8, configuration, task, key),
        open_backend(judge.model, environ),
        prices,
        inputs.lock.judge_model,
    )
    return Asking(settings, stored, Purse.of(judge.budget, inputs.plan.groups, prices), in_threads)
