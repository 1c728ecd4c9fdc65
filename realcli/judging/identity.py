"""Which judge a judgement is by: its digest names the folder, and a sweep's score never mixes two of them."""

from __future__ import annotations

from realcli.api.judge import Judge
from realcli.benchmark.catalogue import load_catalogue
from realcli.checks.model import OPERATORS_VERSION
from realcli.judging.model import JudgeIdentity, Parameters
from realcli.judging.prompts import prompts_digest


def identity_of(judge: Judge, catalogue: str | None = None) -> JudgeIdentity:
    """The identity of what `spec.judge` asks for; `catalogue`: digest of another one than the package's."""
    catalogue = catalogue or load_catalogue().digest
    if judge.model is None:
        return JudgeIdentity(kind="program", catalogue=catalogue, operators=OPERATORS_VERSION)
    endpoint = judge.model.endpoint
    if endpoint is None:
        raise ValueError("spec.judge.model.endpoints: name one of chat, anthropic, responses")
    return JudgeIdentity(
        kind="model",
        catalogue=catalogue,
        operators=OPERATORS_VERSION,
        model=judge.model.model,
        api=endpoint[0],
        parameters=Parameters(max_output_tokens=judge.model.max_output_tokens, temperature=judge.model.temperature),
        prompts=prompts_digest(),
        votes=judge.votes,
        sessions=judge.sessions.value,
        controls=judge.controls.value,
        context_tokens=judge.model.context_tokens,
    )
