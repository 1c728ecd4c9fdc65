"""The judge's part of the audit over three real wires, answered by the provider's stand-in."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from realcli.api.judge import Judge, JudgeModel
from realcli.audit.asking import audit_with
from realcli.audit.program import audited
from realcli.judging.run import Settings
from realcli_cli.local.provider import scripted_provider
from realcli_judge.backends.opening import open_backend
from tests.support.worded_runs import worded_run

KEY = "sk-judge-0123456789abcdef"
REWORDED = {
    "m2": "The shop should listen on port `8080`, please put that in.",
    "m4": "The sign on our door: which colour does it have?",
}


@pytest.mark.parametrize("api", ["anthropic", "chat", "responses"])
def test_a_reworded_run_is_asked_about_on_every_wire(api: str) -> None:
    view = worded_run(REWORDED)
    assert {one.verdict for one in audited(view)} == {"unscored"}
    with scripted_provider(key=KEY) as provider:
        url = provider.url if api == "anthropic" else f"{provider.url}/v1"
        endpoint: dict[str, Any] = {"url": url, "insecureHttp": "InCluster", "apiKey": {"secretRef": {"name": "j", "key": "k"}}}
        model = JudgeModel.model_validate({"model": "judge-1", "endpoints": {api: endpoint}})
        settings = Settings.of(Judge(model=model))
        assert settings is not None
        with closing(open_backend(model, {"REALCLI_KEY_JUDGE": KEY})) as backend:
            checks = audit_with(view, "sha256:" + "5" * 64, settings.model, backend)
    assert [(one.verdict, one.by) for one in checks] == [("1", "judge")] * 7, [one.reason for one in checks]
