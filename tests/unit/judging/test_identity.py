"""Which judge it is: everything that may change a verdict changes its digest."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.judge import Judge
from realcli.benchmark.catalogue import load_catalogue
from realcli.checks.digest import judge_digest
from realcli.judging import prompts
from realcli.judging.identity import identity_of
from realcli.judging.prompts import prompt, prompts_digest

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


def test_the_program_alone_has_one_digest() -> None:
    program = identity_of(Judge())
    assert program.content_digest() == judge_digest(load_catalogue().digest)
    assert program.prompts is None


def test_every_word_of_a_prompt_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompts_digest()
    texts = list(prompts._texts())
    assert {"judging/prompts/checks.md", "judging/prompts/claims.md", "judging/prompts/failure.md"} <= {name for name, _ in texts}
    for at in range(len(texts)):
        changed = [(name, content + b" ") if n == at else (name, content) for n, (name, content) in enumerate(texts)]
        monkeypatch.setattr(prompts, "_texts", lambda changed=changed: iter(changed))
        prompts_digest.cache_clear()
        assert prompts_digest() != before
    monkeypatch.undo()
    prompts_digest.cache_clear()
    assert prompts_digest() == before
    assert "followed never" in prompt("checks")
