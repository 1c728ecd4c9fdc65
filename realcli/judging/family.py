"""Model families by model id: a judge is kinder to its own kin, so a sweep says where judge and tested model are related."""

from __future__ import annotations

import re

FAMILIES: dict[str, tuple[str, ...]] = {
    "Anthropic": ("claude", "anthropic"),
    "OpenAI": ("gpt", "chatgpt", "codex", "openai", "o1", "o3", "o4"),
    "Google": ("gemini", "gemma"),
    "Qwen": ("qwen", "qwen2", "qwen3", "qwq"),
    "GLM": ("glm", "chatglm", "zhipu"),
    "DeepSeek": ("deepseek",),
    "Kimi": ("kimi", "moonshot"),
    "MiniMax": ("minimax", "abab"),
    "Llama": ("llama", "meta"),
    "Mistral": ("mistral", "mixtral", "codestral", "magistral", "devstral", "ministral"),
    "Grok": ("grok", "xai"),
    "Hunyuan": ("hunyuan", "hy", "hy2", "hy3"),
    "Cohere": ("command", "cohere"),
    "Nova": ("nova",),
    "Phi": ("phi",),
    "Seed": ("doubao", "seed"),
    "Ernie": ("ernie",),
}
"""Words of model ids; the first that stands in an id decides. Digits that follow a word belong to it."""
_WORD = re.compile(r"[a-z]+[0-9]*")
_GENERIC = frozenset(
    ("us", "eu", "apac", "global", "models", "model", "azure", "bedrock", "vertex", "ai", "openrouter", "hosted", "vllm")
)


def family(model_id: str) -> str | None:
    """The family of a model id such as `claude-opus-4-8` or `bedrock/us.anthropic.claude-x`; None: the id has no word at all.

    An id of no known family is its own: its first word that is no hosting prefix.
    """
    words = _WORD.findall(model_id.lower())
    for word in words:
        plain = word.rstrip("0123456789")
        for name, known in FAMILIES.items():
            if word in known or (plain != word and plain in known and len(plain) > 1):
                return name
    return next((word for word in words if word not in _GENERIC), None)


def related(one: str, other: str) -> str | None:
    """The family both ids belong to; None: none, or not known."""
    found = family(one)
    return found if found is not None and found == family(other) else None
