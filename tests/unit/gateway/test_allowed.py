"""What the two OpenAI APIs may be asked for: a list of what the programs need, and nothing by which a provider reaches out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli_session.gateway.dialects import dialect_of
from tests.unit.gateway.rig import MODEL, MakeRig
from tests.unit.gateway.wires import CHAT, RESPONSES, WIRES, Wire

PIXEL = "data:image/png;base64,AA=="


def items(*more: dict[str, Any]) -> dict[str, Any]:
    return {"input": list(more)}


def content(*parts: dict[str, Any]) -> dict[str, Any]:
    return items({"type": "message", "role": "user", "content": list(parts)})


def tool(**fields: Any) -> dict[str, Any]:
    return {"tools": [fields]}


CALL = {"type": "function_call", "call_id": "c", "name": "x", "arguments": "{}"}
RESPONSES_FEATURES: list[tuple[str, dict[str, Any], str | None]] = [
    ("what Codex sends", {}, None),
    ("a text alone", {"input": "hi"}, None),
    ("a message without its type", items({"role": "user", "content": "hi"}), None),
    ("history", items(CALL, {"type": "function_call_output", "call_id": "c", "output": "done"}), None),
    ("output in parts", items({"type": "function_call_output", "output": [{"type": "input_image", "image_url": PIXEL}]}), None),
    (
        "reasoning",
        items({"type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}], "encrypted_content": "e"}),
        None,
    ),
    (
        "a patch",
        items({"type": "custom_tool_call", "name": "apply_patch", "input": "*"}, {"type": "custom_tool_call_output"}),
        None,
    ),
    ("an image inside", content({"type": "input_image", "image_url": PIXEL}), None),
    ("tools of MCP servers", tool(type="namespace", name="mcp__x", tools=[{"type": "function", "name": "y"}]), None),
    ("tool search of the program's own", tool(type="tool_search", execution="client"), None),
    ("its result", items({"type": "tool_search_output", "tools": [{"type": "function", "name": "y"}]}), None),
    ("a chosen tool", {"tool_choice": {"type": "function", "name": "x"}}, None),
    ("web search", tool(type="web_search"), "tools[0].type web_search"),
    ("web search of another name", tool(type="web_search_preview"), "tools[0].type web_search_preview"),
    ("file search", tool(type="file_search", vector_store_ids=["v"]), "tools[0].type file_search"),
    ("code interpreter", tool(type="code_interpreter", container={"type": "auto"}), "tools[0].type code_interpreter"),
    ("image generation", tool(type="image_generation"), "tools[0].type image_generation"),
    ("computer", tool(type="computer_use_preview"), "tools[0].type computer_use_preview"),
    ("MCP connector", tool(type="mcp", server_url="https://x"), "tools[0].type mcp"),
    ("a shell of the provider's", tool(type="shell", environment={"type": "container_auto"}), "tools[0].environment"),
    ("tool search of the provider's", tool(type="tool_search"), "tools[0].type tool_search"),
    ("a provider's tool in a namespace", tool(type="namespace", tools=[{"type": "mcp"}]), "tools[0].tools[0].type mcp"),
    ("a provider's tool in a result", items({"type": "tool_search_output", "tools": [{"type": "mcp"}]}), "tools[0].type mcp"),
    ("a provider's tool as the choice", {"tool_choice": {"type": "mcp", "server_label": "x"}}, "tool_choice.type mcp"),
    ("one among the choices", {"tool_choice": {"type": "allowed_tools", "tools": [{"type": "file_search"}]}}, "file_search"),
    ("stored", {"store": True}, "feature: store"),
    ("an earlier response", {"previous_response_id": "resp_1"}, "feature: previous_response_id"),
    ("in the background", {"background": True}, "feature: background"),
    ("a conversation", {"conversation": "conv_1"}, "feature: conversation"),
    ("a stored prompt", {"prompt": {"id": "pmpt_1"}}, "feature: prompt"),
    ("a stored item", items({"type": "item_reference", "id": "msg_1"}), "input[0] item_reference"),
    ("search results", {"include": ["web_search_call.action.sources"]}, "include web_search_call.action.sources"),
    ("an include that is no text", {"include": [["x"]]}, "include ['x']"),
    ("an image by URL", content({"type": "input_image", "image_url": "https://x"}), "source url"),
    ("an image by file", content({"type": "input_image", "image_url": PIXEL, "file_id": "f"}), "source file_id"),
    ("an image that is no text", content({"type": "input_image", "image_url": {"url": PIXEL}}), "source that is no text"),
    ("a file by URL", content({"type": "input_file", "file_url": "https://x"}), "part input_file"),
    (
        "an image by URL in a result",
        items({"type": "function_call_output", "output": [{"type": "input_image", "image_url": "https://x"}]}),
        "input[0] output source url",
    ),
    ("a call of the provider's tool", items({"type": "web_search_call"}), "input[0] web_search_call"),
    ("an unknown field", {"moderation": {}}, "feature: moderation"),
    ("an unknown item", items({"type": ["message"]}), "input[0] ['message']"),
    ("a part of no type with a source", items({"type": "shell_call_output", "output": [{"file_id": "f"}]}), "part None"),
    ("no input", {"input": None}, "input is neither"),
    ("instructions that are no text", {"instructions": ["x"]}, "instructions is no text"),
    ("too many items", {"input": [{}] * 10_001}, "more than 10000"),
]


def messages(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


CHAT_FEATURES: list[tuple[str, dict[str, Any], str | None]] = [
    ("text and a function", {}, None),
    ("what LiteLLM sends for Terminus-2", {"temperature": 0.7, "max_tokens": 100, "response_format": {"type": "text"}}, None),
    ("parts", messages({"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": PIXEL}}), None),
    ("one choice", {"n": 1}, None),
    ("several choices", {"n": 2}, "feature: n"),
    ("web search", {"web_search_options": {}}, "feature: web_search_options"),
    ("a provider's tool", tool(type="mcp"), "tools[0].type mcp"),
    ("a tool without type", {"tools": [{"function": {}}]}, "tools[0].type None"),
    ("a tool that is no object", {"tools": ["web_search"]}, "tools[0].type None"),
    ("stored", {"store": True}, "feature: store"),
    ("audio", {"modalities": ["audio"]}, "feature: modalities"),
    ("earlier audio", {"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, "messages[0].audio"),
    ("audio inside", messages({"type": "input_audio", "input_audio": {}}), "part input_audio"),
    ("a file", messages({"type": "file", "file": {"file_id": "f"}}), "part file"),
    ("an image by URL", messages({"type": "image_url", "image_url": {"url": "https://x"}}), "source url"),
    ("an image by URL, short", messages({"type": "image_url", "image_url": "http://x"}), "source url"),
    ("search inside the model's name", {"plugins": [{"id": "web"}]}, "feature: plugins"),
    ("fallbacks of a router", {"models": ["a", "b"]}, "feature: models"),
    ("an unknown role", {"messages": [{"role": "root", "content": ""}]}, "messages[0].role root"),
    ("a role that is no text", {"messages": [{"role": ["user"]}]}, "messages[0].role"),
    ("content of another kind", {"messages": [{"role": "user", "content": 7}]}, "content is neither"),
    ("no messages", {"messages": None}, "messages is not a list"),
]
FEATURES = [(RESPONSES, *row) for row in RESPONSES_FEATURES] + [(CHAT, *row) for row in CHAT_FEATURES]


@pytest.mark.parametrize(("wire", "name", "change", "want"), FEATURES, ids=[f"{w.api}: {n}" for w, n, _, _ in FEATURES])
def test_features(wire: Wire, name: str, change: dict[str, Any], want: str | None) -> None:
    got = dialect_of(wire.api).refused(wire.plain("hi") | change)
    assert (got is None) if want is None else (got is not None and want in got), got


OPEN = [
    (RESPONSES, tool(type="web_search")),
    (RESPONSES, content({"type": "input_image", "image_url": "https://x"})),
    (CHAT, {"web_search_options": {}}),
    (CHAT, messages({"type": "image_url", "image_url": {"url": "https://x"}})),
    (WIRES["anthropic"], tool(type="web_search_20250305")),
    (WIRES["anthropic"], {"mcp_servers": []}),
]


@pytest.mark.parametrize(("wire", "change"), OPEN)
def test_a_task_with_network_opens_what_reaches_out_and_nothing_stored(wire: Wire, change: dict[str, Any]) -> None:
    allowed = dialect_of(wire.api)
    assert allowed.refused(wire.plain("hi") | change) is not None
    assert allowed.refused(wire.plain("hi") | change, network=True) is None
    assert allowed.refused(wire.plain("hi") | {"previous_response_id": "r"}, network=True) is not None


PATHS = [
    ("responses", "POST", "/v1/responses", "", "generate"),
    ("responses", "POST", "/v1/responses/input_tokens", "", "count"),
    ("responses", "GET", "/v1/models", "client_version=0.142.0", "models"),
    ("responses", "GET", "/v1/models/gpt-x", "", "models"),
    ("responses", "GET", "/v1/responses/resp_1", "", None),
    ("responses", "DELETE", "/v1/responses/resp_1", "", None),
    ("responses", "POST", "/v1/responses/compact", "", None),
    ("responses", "POST", "/v1/responses", "api-version=1", None),
    ("responses", "POST", "/v1/chat/completions", "", None),
    ("responses", "POST", "/v1/files", "", None),
    ("responses", "POST", "/v1/conversations", "", None),
    ("responses", "POST", "/v1/vector_stores", "", None),
    ("responses", "POST", "/responses", "", None),
    ("chat", "POST", "/v1/chat/completions", "", "generate"),
    ("chat", "GET", "/v1/models", "", "models"),
    ("chat", "GET", "/v1/chat/completions", "", None),
    ("chat", "GET", "/v1/chat/completions/chatcmpl-1", "", None),
    ("chat", "POST", "/v1/completions", "", None),
    ("chat", "POST", "/v1/embeddings", "", None),
    ("chat", "POST", "/v1/batches", "", None),
    ("chat", "POST", "/v1/images/generations", "", None),
    ("chat", "POST", "/v1/responses", "", None),
    ("chat", "POST", "/v1/messages", "", None),
    ("chat", "HEAD", "/", "", None),
]


@pytest.mark.parametrize(("api", "method", "path", "query", "want"), PATHS)
def test_paths(api: Any, method: str, path: str, query: str, want: str | None) -> None:
    assert dialect_of(api).route(method, path, query) == want


@pytest.mark.parametrize("wire", [RESPONSES, CHAT], ids=["responses", "chat"])
async def test_refusals_end_at_the_gateway_in_the_shape_of_the_api(rig: MakeRig, wire: Wire) -> None:
    made = await rig(dialect=wire.api, max_body=10_000)
    good = json.dumps(wire.plain("hi") | {"model": MODEL}).encode()
    cases = [
        (made.post(json.dumps(wire.plain("hi") | tool(type="mcp")).encode()), 400, "feature: tools[0].type mcp"),
        (made.post(b"{}", "/v1/files"), 400, "path: POST /v1/files"),
        (made.post(b"x" * 10_001), 413, "size"),
        (made.post(good, **{"x-api-key": "", "authorization": "Bearer wrong"}), 401, "token"),
        (made.post(good, **{"content-encoding": "zstd"}), 400, "feature: content-encoding"),
    ]
    for asking, status, reason in cases:
        async with asking as response:
            assert (response.status, response.headers["x-should-retry"]) == (status, "false")
            error = (await response.json())["error"]
            assert (error["message"], error["param"]) == (f"refused by the benchmark's gateway: {reason}", None)
    assert [entry["refused"] for entry in made.of("model_request")] == [reason for _, _, reason in cases]
    assert (made.gateway.turns, made.provider.seen) == (0, [])


FIELDS = st.sampled_from(["input", "messages", "tools", "system", "include", "tool_choice", "instructions", "n"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["message", "input_image", "image_url"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "role", "content", "output", "tools", "image_url", "url", "summary", "text", "name", "call_id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.sampled_from(list(WIRES.values())),
    st.dictionaries(
        st.sampled_from(["input", "messages", "tools", "system", "include", "tool_choice", "instructions", "n"]), VALUES
    ),
)
def test_nonsense_is_refused_or_readable(wire: Wire, change: dict[str, Any]) -> None:
    """What the list lets pass, the recorder has to be able to read: a body that broke it would end the trial."""
    allowed, body = dialect_of(wire.api), wire.plain("hi") | change
    if allowed.refused(body) is not None:
        return
    list(allowed.outputs(body))
    list(allowed.texts(body))
    shown = allowed.shown(body)
    json.dumps([list(shown.system), shown.tools, list(shown.messages)])
    allowed.turn_key(body)
    allowed.visible(body, {})
