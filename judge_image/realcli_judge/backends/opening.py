"""Which backend a Job or a command asks: the sweep's endpoint, or recordings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from realcli.api.judge import JudgeModel
from realcli.judging.port import Backend, BackendRefused
from realcli_judge.backends.recordings import RecordBackend, ReplayBackend

KEY_ENV = "REALCLI_KEY_JUDGE"
BACKEND_ENV = "REALCLI_JUDGE_BACKEND"
"""`replay:DIR` or `record:DIR`; without it the endpoint is asked."""


def open_backend(model: JudgeModel, environ: Mapping[str, str]) -> Backend:
    """The backend of a judge's model. `BackendRefused` says what is missing."""
    kind, colon, directory = environ.get(BACKEND_ENV, "").partition(":")
    if kind == "replay" and directory:
        return ReplayBackend(Path(directory))
    if kind and (kind != "record" or not directory):
        raise BackendRefused(f"{BACKEND_ENV} is {kind + colon + directory!r}; expected replay:DIR or record:DIR, or leave it out")
    live = _live(model, environ)
    return RecordBackend(Path(directory), live) if kind == "record" else live


def _live(model: JudgeModel, environ: Mapping[str, str]) -> Backend:
    found = model.endpoint
    if found is None:
        raise BackendRefused("spec.judge.model.endpoints: name one of chat, anthropic, responses")
    api, endpoint = found
    key = environ.get(KEY_ENV, "")
    if not key:
        secret = endpoint.api_key.secret_ref
        raise BackendRefused(
            f"{KEY_ENV} is not set: does key {secret.key} of Secret {secret.name} exist in the sweep's namespace?"
        )
    # Each SDK is thousands of modules (seconds on a busy node): only the one that is asked is loaded.
    if api == "anthropic":
        from realcli_judge.backends.anthropic_sdk import AnthropicBackend

        return AnthropicBackend(endpoint.url, key)
    from realcli_judge.backends.openai_sdk import OpenAIBackend

    return OpenAIBackend(endpoint.url, key)
