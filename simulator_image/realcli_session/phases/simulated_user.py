"""Setup of the simulated user: the script made ready, who words it, and the record of both."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Literal

from realcli.api.models import InsecureHttp
from realcli.api.sweep import UserMode
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.play import ready
from realcli.benchmark.script import SCRIPT
from realcli.ledger.events import Wording
from realcli_session.agents.registry import adapter_class
from realcli_session.gateway.config import check_endpoint
from realcli_session.inputs import InputRefused, Task
from realcli_session.phases.attempt import Attempt
from realcli_session.user.machine import initial
from realcli_session.user.wording import Canonical, Model
from realcli_session.user.wording.brief import PROMPT_SHA256
from realcli_session.user.wording.endpoint import HttpEndpoint

USER_KEY = "user"
"""File of the key of the simulated user's model, among the keys."""


def simulated_user(attempt: Attempt, task: Task) -> None:
    """Fill in `attempt.user` and `attempt.wording`, and write down which instrument this is.

    BenchmarkError for a script that cannot be played; InputRefused for a model that cannot be asked.
    """
    adapter = adapter_class(attempt.trial.configuration.program)
    attempt.user = initial(ready(task.script, load_catalogue()), mid_turn=getattr(adapter, "mid_turn", True))
    script = hashlib.sha256((task.private / SCRIPT).read_bytes()).hexdigest()
    spec = attempt.trial.lock.spec.simulated_user
    if spec.mode is UserMode.CANONICAL:
        attempt.wording = Canonical()
        attempt.writer.emit("session", Wording(mode="Canonical", script_sha256=script))
        return
    if spec.model is None:
        raise InputRefused("spec.simulatedUser: mode Model needs `model`; name one, or use mode Canonical")
    endpoints = spec.model.endpoints
    api: Literal["anthropic", "chat"] = "chat" if endpoints.chat is not None else "anthropic"
    endpoint = endpoints.of(api)
    if endpoint is None:
        raise InputRefused("spec.simulatedUser.model.endpoints: found neither chat nor anthropic; name one of them")
    try:
        check_endpoint(
            endpoint.url,
            insecure_http=endpoint.insecure_http is InsecureHttp.IN_CLUSTER,
            cluster_domain=attempt.trial.lock.platform.cluster_domain,
            allow_loopback=attempt.settings.allow_loopback,
        )
        key = attempt.settings.key(USER_KEY)
    except ValueError as error:
        raise InputRefused(f"spec.simulatedUser.model: {error}") from error
    temperature = spec.model.temperature
    client = HttpEndpoint(api, endpoint.url, key, spec.model.model, float(Decimal(temperature)))
    wording = Model(client, attempt.writer, seed=attempt.run.seed)
    attempt.writer.subscribe(wording.seen)
    attempt.wording = wording
    attempt.writer.emit(
        "session",
        Wording(
            mode="Model",
            script_sha256=script,
            model=spec.model.model,
            prompt_sha256=PROMPT_SHA256,
            parameters={"api": api, "temperature": temperature, "seed": attempt.run.seed},
        ),
    )
