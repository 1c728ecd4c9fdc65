"""A very small MCP server over stdio: one tool, `lookup`, that answers with what its environment says."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tickets", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": "lookup", "description": "Look a ticket up.", "inputSchema": SCHEMA}]}
    if method == "tools/call":
        text = f"ticket {params['arguments']['id']}: {os.environ['TICKETS_ANSWER']}"
        return {"content": [{"type": "text", "text": text}], "isError": False}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = result_of(message["method"], message.get("params") or {})
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        answer["error"] = {"code": -32601, "message": "not supported"}
    else:
        answer["result"] = result
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
