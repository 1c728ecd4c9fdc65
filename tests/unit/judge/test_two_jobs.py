"""Two Jobs of one group at once, asking a model that never says the same twice: one judgement, by the replies stored first."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from realcli.judging.model import Exchange, JudgeReply, JudgeRequest
from realcli_judge.inputs import Inputs
from realcli_judge.judging import judge_group
from tests.support.sealed_sweep import write_sweep
from tests.support.stand_in import JUDGE, StandIn


class Moody(StandIn):
    """Says something else beside its answers each time, and answers late or early."""

    def __init__(self, seed: int, start: threading.Barrier) -> None:
        super().__init__()
        self.order, self.start, self.begun = random.Random(seed), start, False

    def complete(self, request: JudgeRequest) -> JudgeReply:
        reply = super().complete(request)
        if not self.begun:  # both ask before either stores
            self.begun = True
            self.start.wait(60)
        text = f"mood {self.order.random()}"
        return reply.model_copy(update={"message": reply.message.model_copy(update={"text": text})})


def test_two_jobs_at_once_come_to_one_judgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = write_sweep(tmp_path / "store", judge=JUDGE)
    barrier = threading.Barrier(2)
    moods = iter([Moody(1, barrier), Moody(2, barrier)])
    monkeypatch.setattr("realcli_judge.asking.open_backend", lambda model, environ: next(moods))
    monkeypatch.setattr("realcli_judge.asking.in_threads", lambda jobs: [job() for job in jobs])

    def job(_: int) -> tuple[object, str]:
        inputs = Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan)
        return judge_group(inputs, sweep.group_input(0), {"REALCLI_KEY_JUDGE": "k"})

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(job, range(2))
    assert one == other
    keys = [item.key for item in sweep.store.list(sweep.root + "/judgements/") if "/exchanges/" in item.key]
    stored = [Exchange.model_validate_json(sweep.store.get(key)) for key in keys]
    assert len({exchange.reply.message.text for exchange in stored}) == len(stored) > 10
