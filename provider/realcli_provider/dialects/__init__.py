"""The three wires: what a request says, and how an answer looks as JSON and as a stream. Pure."""

from __future__ import annotations

from realcli_provider.dialects import anthropic, chat, responses
from realcli_provider.dialects.port import Dialect

DIALECTS: dict[str, Dialect] = {
    "/v1/messages": Dialect("anthropic", anthropic.invalid, anthropic.parse, anthropic.whole, anthropic.events, anthropic.error),
    "/v1/responses": Dialect("responses", responses.invalid, responses.parse, responses.whole, responses.events, responses.error),
    "/v1/chat/completions": Dialect("chat", chat.invalid, chat.parse, chat.whole, chat.events, chat.error),
}
