import pytest

from realcli.judging.family import family, related


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-opus-4-8", "Anthropic"),
        ("bedrock/us.anthropic.claude-sonnet-4-5-v1:0", "Anthropic"),
        ("gpt-5.6", "OpenAI"),
        ("openrouter/openai/gpt-5.6-sol", "OpenAI"),
        ("o3-mini", "OpenAI"),
        ("glm-5.3", "GLM"),
        ("Qwen3-Coder-480B", "Qwen"),
        ("models/gemini-3-pro", "Google"),
        ("moonshotai/Kimi-K3", "Kimi"),
        ("hy3", "Hunyuan"),
        ("hosted_vllm/acme-large", "acme"),
        ("acme-large", "acme"),
        ("007", None),
    ],
)
def test_a_model_id_names_its_family(model: str, expected: str | None) -> None:
    assert family(model) == expected


def test_only_kin_is_related() -> None:
    assert related("claude-opus-4-8", "anthropic/claude-haiku-4-5") == "Anthropic"
    assert related("gpt-5.6", "claude-opus-4-8") is None
    assert related("007", "007") is None
