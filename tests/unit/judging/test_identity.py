"""Which judge it is: everything that may change a verdict changes its digest."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.api.judge import Judge
from realcli.benchmark.catalogue import load_catalogue
from realcli.checks import judge_instance
from realcli.checks.digest import judge_digest
from realcli.judging import prompts
from realcli.judging.identity import BOUNDS, identity_of
from realcli.judging.model import AUDIT_VERSION, ToolSpec
from realcli.judging.prompts import prompt, prompts_digest
from realcli.judging.questions import scenario_of
from realcli.judging.run import Run, checks_session
from realcli.judging.session import Ask
from tests.support.judged_runs import MODEL

KEY = {"apiKey": {"secretRef": {"name": "s", "key": "k"}}}


def judge(**changed: Any) -> Judge:
    model = {"model": "m-1", "endpoints": {"chat": {"url": "https://a/v1", **KEY}}}
    spec: dict[str, Any] = {"model": model}
    for name, value in changed.items():
        if name in ("votes", "sessions", "controls", "calibration", "budget"):
            spec[name] = value
        else:
            model[name] = value
    return Judge.model_validate(spec)


READ = "sha256:9ac837e31d35c828dc5c5ddf8758c9515929d1f2df5b26947ed22ea9d14a7900"
BASE = identity_of(judge()).content_digest()


@pytest.mark.parametrize(
    ("changed", "other"),
    [
        ({"model": "m-2"}, True),
        ({"endpoints": {"responses": {"url": "https://a/v1", **KEY}}}, True),
        ({"temperature": "0"}, True),
        ({"maxOutputTokens": 8000}, True),
        ({"contextTokens": 100_000}, True),
        ({"votes": 5}, True),
        ({"sessions": "PerScenario"}, True),
        ({"controls": "None"}, True),
        ({"endpoints": {"chat": {"url": "https://elsewhere/v1", **KEY}}}, False),  # where it is served
        ({"prices": {"inputPerMillion": "1", "outputPerMillion": "2"}}, False),
        ({"budget": {"tokens": 5}}, False),
        ({"calibration": "Off"}, False),
    ],
)
def test_digest(changed: dict[str, Any], other: bool) -> None:
    assert (identity_of(judge(**changed)).content_digest() != BASE) is other


def test_catalogue_operators_and_prompts_are_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert identity_of(judge(), "sha256:" + "1" * 64).content_digest() != BASE
    monkeypatch.setattr("realcli.judging.identity.OPERATORS_VERSION", "next")
    assert identity_of(judge()).content_digest() != BASE
    monkeypatch.undo()
    monkeypatch.setattr("realcli.judging.identity.prompts_digest", lambda: "sha256:" + "2" * 64)
    assert identity_of(judge()).content_digest() != BASE


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in BOUNDS for name in names])
def test_every_bound_is_in_it(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, getattr(module, name) + 1)
    assert identity_of(judge()).content_digest() != BASE


@pytest.mark.parametrize("form", ["claims.ClaimsForm", "failures.FailureForm"])
def test_the_schema_of_every_form_is_in_it(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = ToolSpec(name="answer", description="in another form", parameters={})
    monkeypatch.setattr(f"realcli.judging.{form}.tool", property(lambda _: other))
    assert identity_of(judge()).content_digest() != BASE


@pytest.mark.parametrize("spec", [judge(), Judge()], ids=["model", "program"])
def test_the_version_of_the_audit_is_in_it(spec: Judge) -> None:
    identity = identity_of(spec)
    assert identity.audit_version == AUDIT_VERSION
    assert identity.model_copy(update={"audit_version": "next"}).content_digest() != identity.content_digest()


def test_what_a_judge_reads_has_a_version_of_its_own(run: Run) -> None:
    """The first request about a run. Another one: raise READING_VERSION and put the new digest here (the digest alone where the
    catalogue changed, which the identity names itself)."""
    record = judge_instance(run.instances[0], run.trajectory, run.evidence)
    scenario = scenario_of(run.instances[0], record, run.trajectory, run.reading)
    assert scenario is not None
    first = checks_session(run, [scenario], MODEL, 1)
    assert isinstance(first, Ask)
    shown = sha256_digest(first.request.messages[0].text.encode())
    assert (prompts.READING_VERSION, shown) == ("1", READ)


def test_the_program_alone_has_one_digest() -> None:
    program = identity_of(Judge())
    assert program.content_digest() == judge_digest(load_catalogue().digest)
    assert program.prompts is None


def test_every_word_of_a_prompt_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompts_digest()
    texts = list(prompts._texts())
    assert {
        "judging/prompts/checks.md",
        "judging/prompts/claims.md",
        "judging/prompts/failure.md",
        "audit/prompts/audit.md",
        "audit/prompts/answer.json",
    } <= {name for name, _ in texts}
    for at in range(len(texts)):
        changed = [(name, content + b" ") if n == at else (name, content) for n, (name, content) in enumerate(texts)]
        monkeypatch.setattr(prompts, "_texts", lambda changed=changed: iter(changed))
        prompts_digest.cache_clear()
        assert prompts_digest() != before
    monkeypatch.undo()
    prompts_digest.cache_clear()
    assert prompts_digest() == before
    assert "followed never" in prompt("checks")
