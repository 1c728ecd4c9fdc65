"""Setup of the simulated user: the script made ready, who words it, and the record of both."""

from __future__ import annotations

import hashlib

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.play import ready
from realcli.benchmark.script import SCRIPT
from realcli.ledger.events import Wording
from realcli_session.agents.registry import adapter_class
from realcli_session.inputs import Task
from realcli_session.phases.attempt import Attempt
from realcli_session.user.machine import initial
from realcli_session.user.wording import Canonical


def simulated_user(attempt: Attempt, task: Task) -> None:
    """Fill in `attempt.user` and `attempt.wording`. BenchmarkError for a script that cannot be played."""
    adapter = adapter_class(attempt.trial.configuration.program)
    attempt.user = initial(ready(task.script, load_catalogue()), mid_turn=getattr(adapter, "mid_turn", True))
    digest = hashlib.sha256((task.private / SCRIPT).read_bytes()).hexdigest()
    attempt.wording = Canonical()
    attempt.writer.emit("session", Wording(mode="Canonical", script_sha256=digest))
