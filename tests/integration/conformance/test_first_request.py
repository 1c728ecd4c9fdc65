"""The first model request of both modes, to the letter: EXEC lacks the communication tools, and nothing else differs.

The golden files hold digests, as the texts are the programs' own; `REALCLI_UPDATE_GOLDEN=1 pytest tests/integration/conformance`
writes them anew. A difference without a new version of the program means that a setting of ours changed what is measured.
"""

from __future__ import annotations

import calendar
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conformance.bench import Bench
from tests.integration.conformance.cases import DONE, Begin, steps
from tests.integration.conformance.drivers import drivers

GOLDEN = Path(__file__).parent / "golden"
TEXT = "Do as the task says."
HEADERS = ("anthropic-beta", "anthropic-version", "user-agent", "x-stainless-timeout", "originator")


def normal(text: str, places: Mapping[str, str]) -> str:
    """The text without what is random or of this machine: places, kernel, dates, the signature of the body."""
    for found, name in places.items():
        text = text.replace(found, name).replace(re.sub(r"[^A-Za-z0-9]", "-", found), name)
    text = re.sub(r"OS Version: [^\\\n]*", "OS Version: X", text)
    text = re.sub(r" \([A-Za-z]+ [0-9.]+; x86_64\) unknown ", " (X) ", text)
    text = re.sub(r"\bcch=[0-9a-f]+;", "cch=X;", text)
    text = re.sub(r"<timezone>[^<]*</timezone>", "<timezone>X</timezone>", text)
    text = re.sub(rf"\b(?:{'|'.join(calendar.month_name[1:])}) 20\d\d\b", "MONTH", text)
    return re.sub(r"\b20\d\d[-/]\d\d[-/]\d\d\b", "DATE", text)


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def contents(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else [content]


def name_of(tool: Mapping[str, Any]) -> str:
    return str(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))


def described(bench: Bench) -> dict[str, Any]:
    """The request as settings, tools by name, texts in order; every text by digest."""
    entry = bench.turns[0]
    places = {bench.spec.state_dir: "STATE", str(bench.work): "WORK", bench.spec.home: "HOME"}
    body = json.loads(normal(json.dumps(entry["body"], ensure_ascii=False), places))
    for name in bench.driver.volatile:
        body.pop(name, None)
    messages = body.pop("messages", None) or body.pop("input")
    system = body.pop("system", None) or body.pop("instructions", None)
    fixed = bool(bench.driver.question_tool)  # else the first prompt shows the terminal of this machine
    newest = contents(messages[-1])[-1]
    said = newest["text"] if isinstance(newest, dict) else newest
    return {
        "headers": {name: normal(entry["headers"][name], {}) for name in HEADERS if name in entry["headers"]},
        "system": [digest(block) for block in (system if isinstance(system, list) else [system])],
        "tools": {name_of(tool): digest(tool) for tool in body.pop("tools", None) or []},
        "messages": [[message["role"], [digest(part) for part in contents(message)] if fixed else []] for message in messages],
        "user_text_alone": said == TEXT,
        "settings": body,
    }


@pytest.mark.parametrize("program", list(drivers()))
async def test_modes_differ_in_communication_tools_alone(program: str, begin_for: Any) -> None:
    driver = drivers()[program]
    begin: Begin = begin_for(driver)
    found = {}
    for mode in ("EXEC", "COLLAB"):
        bench = await begin(steps(DONE), mode=mode)
        await bench.adapter.send(TEXT)
        await bench.until(lambda bench=bench: bench.turns, "the first request")
        found[mode] = described(bench)
    path = GOLDEN / f"first_request.{program}.json"
    if os.environ.get("REALCLI_UPDATE_GOLDEN") == "1":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    assert found == json.loads(path.read_text())
    if driver.question_tool:  # Terminus-2 is told of its channel in the prompt, which its own tests compare
        del found["COLLAB"]["tools"][driver.question_tool]
    assert found["EXEC"] == found["COLLAB"]
    assert found["EXEC"]["user_text_alone"] is driver.user_text_alone
