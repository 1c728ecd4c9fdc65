"""The first model request of both modes, to the letter: EXEC lacks the communication tools, and nothing else differs.

The golden file holds digests, as the texts are the program's own; `REALCLI_UPDATE_GOLDEN=1 pytest tests/integration/agents`
writes it anew. A difference without a new version of the program means that a setting of ours changed what is measured.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from realcli.api.sweep import Mode
from realcli_session.agents.port import Yield
from tests.integration.agents.conftest import StartStand

GOLDEN = Path(__file__).parent / "golden" / "first_request.json"
TEXT = "Do as the task says."


def normal(text: str, places: dict[str, str]) -> str:
    """The text without what is random or of this machine: places, kernel, dates, the signature of the body."""
    for found, name in places.items():
        text = text.replace(found, name).replace(re.sub(r"[^A-Za-z0-9]", "-", found), name)
    text = re.sub(r"OS Version: [^\\\n]*", "OS Version: X", text)
    text = re.sub(r"\bcch=[0-9a-f]+;", "cch=X;", text)
    return re.sub(r"\b20\d\d[-/]\d\d[-/]\d\d\b", "DATE", text)


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


async def first_request(stand: StartStand, mode: Mode) -> dict[str, Any]:
    """The request as settings, tools by name, texts in order; every text by digest."""
    run = await stand({"text": "Done."}, mode=mode)
    await run.adapter.send(TEXT)
    await run.next(Yield)
    places = {run.spec.state_dir: "STATE", str(run.work): "WORK", run.spec.home: "HOME"}
    body = json.loads(normal(json.dumps(run.provider.bodies[0], ensure_ascii=False), places))
    headers = {name.lower(): value for name, value in run.provider.headers[0].items()}
    del body["metadata"]  # random ids of this installation and session
    return {
        "headers": {name: headers[name] for name in ("anthropic-beta", "anthropic-version", "user-agent", "x-stainless-timeout")},
        "system": [digest(block) for block in body.pop("system")],
        "tools": {tool["name"]: digest(tool) for tool in body.pop("tools")},
        "messages": [[message["role"], [digest(block) for block in message["content"]]] for message in body.pop("messages")],
        "user_text": digest(run.provider.bodies[0]["messages"][-1]["content"][-1]["text"]) == digest(TEXT),
        "settings": body,
    }


async def test_modes_differ_in_communication_tools_alone(stand: StartStand) -> None:
    execute, talk = await first_request(stand, "EXEC"), await first_request(stand, "COLLAB")
    if os.environ.get("REALCLI_UPDATE_GOLDEN") == "1":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps({"EXEC": execute, "COLLAB": talk}, indent=2, sort_keys=True) + "\n")
    question = talk["tools"].pop("AskUserQuestion")
    assert execute == talk
    assert execute["user_text"]
    talk["tools"]["AskUserQuestion"] = question
    assert {"EXEC": execute, "COLLAB": talk} == json.loads(GOLDEN.read_text())
