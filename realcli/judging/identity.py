"""Which judge a judgement is by: its digest names the folder, and a sweep's score never mixes two of them."""

from __future__ import annotations

from realcli.api.base import canonical_json, sha256_digest
from realcli.api.judge import Judge
from realcli.benchmark.catalogue import load_catalogue
from realcli.checks.model import OPERATORS_VERSION
from realcli.judging import claims, conditions, failures, opening, reading, session, state_files
from realcli.judging.model import JudgeIdentity, Parameters
from realcli.judging.prompts import prompts_digest

BOUNDS = (
    (session, ("REPAIRS", "ROUNDS", "MIN_PAGE", "READING_SHARE")),
    (reading, ("INLINE_RESULT", "INLINE_TEXT", "PAGE", "HITS", "AROUND")),
    (opening, ("RUN_SHARE", "ROOM_SHARE")),
    (conditions, ("MIN_QUOTE", "MAX_FILE")),
    (claims, ("MAX_CLAIMS",)),
    (failures, ("LOG_HEAD", "LOG_TAIL")),
    (state_files, ("LISTED",)),
)
"""Numbers that decide what a judge is shown, how often it may answer, and when an answer counts."""


def asking_digest() -> str:
    """Of everything a judge is asked with: texts, tools of every form, bounds."""
    nobody = reading.Reading((), "")
    forms = (claims.ClaimsForm(nobody, ()), failures.FailureForm(nobody, ""))
    bounds = {f"{module.__name__}.{name}": getattr(module, name) for module, names in BOUNDS for name in names}
    told = {"prompts": prompts_digest(), "tools": [form.tool.dump() for form in forms], "bounds": bounds}
    return sha256_digest(canonical_json(told))


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
        prompts=asking_digest(),
        votes=judge.votes,
        sessions=judge.sessions.value,
        controls=judge.controls.value,
        context_tokens=judge.model.context_tokens,
    )
