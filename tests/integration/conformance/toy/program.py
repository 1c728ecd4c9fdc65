#!/usr/bin/env python3
"""A toy agent program. Lines in: {"say": text} or {"stop": true}. Lines out: {"text"}, {"run", "exit"}, {"over": how}."""

import json
import os
import subprocess
import sys
import urllib.request

URL = os.environ["TOY_URL"] + "/chat/completions"
SHELL = {"name": "shell_command", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
messages = [{"role": "system", "content": "You are a toy."}]


def tell(**line):
    print(json.dumps(line), flush=True)


def model():
    body = {"model": os.environ["TOY_MODEL"], "messages": messages, "tools": [{"type": "function", "function": SHELL}]}
    headers = {"authorization": f"Bearer {os.environ['TOY_TOKEN']}", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(URL, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)["choices"][0]["message"]


def respond():
    while True:
        said = model()
        messages.append(said)
        if said.get("content"):
            tell(text=said["content"])
        for call in said.get("tool_calls") or []:
            command = json.loads(call["function"]["arguments"])["command"]
            done = subprocess.run(command, shell=True, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
            tell(run=call["id"], command=command, exit=done.returncode)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout + done.stderr})
        if not said.get("tool_calls"):
            return


tell(ready=True)
for line in sys.stdin:
    messages.append({"role": "user", "content": json.loads(line)["say"]})
    try:
        respond()
        tell(over="yielded")
    except OSError as error:  # an error answer too
        tell(over="failed", why=str(error))
