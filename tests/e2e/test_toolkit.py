"""The toolkit starts in any image: mounted as an image volume, with nothing of the image's own."""

import json
from typing import Any

import pytest

pytestmark = pytest.mark.kind

LOADER = "/opt/realcli/lib/ld-linux-x86-64.so.2"
PYTHON = [
    LOADER,
    "--argv0",
    "/opt/realcli/bin/python3",
    "--library-path",
    "/opt/realcli/lib",
    "/opt/realcli/bin/python3.real",
    "-I",
]


def pod(name: str, image: str, toolkit: str, command: list[str]) -> dict[str, Any]:
    container = {
        "name": "agent",
        "image": image,
        "imagePullPolicy": "Never",
        "command": command,
        "volumeMounts": [{"name": "toolkit", "mountPath": "/opt/realcli", "readOnly": True}],
    }
    volume = {"name": "toolkit", "image": {"reference": toolkit, "pullPolicy": "Never"}}
    spec = {"restartPolicy": "Never", "hostUsers": False, "containers": [container], "volumes": [volume]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_python_starts_in_an_empty_image_and_cannot_be_changed(kubectl, images):
    program = """
import asyncio, json, os, ssl, sys, tarfile
try:
    open("/opt/realcli/x", "w")
    written = True
except OSError:
    written = False
print(json.dumps({"prefix": sys.prefix, "written": written, "of the image": os.listdir("/data")}))
"""
    kubectl.apply(pod("empty", images["empty"], images["toolkit"], [*PYTHON, "-c", program]))
    phase, said = kubectl.ended("empty"), kubectl.run("logs", "empty")
    assert phase == "Succeeded", said
    assert json.loads(said) == {"prefix": "/opt/realcli", "written": False, "of the image": ["only"]}


def test_the_runner_of_the_toolkit_is_the_projects(kubectl, images):
    program = """
import sys
sys.path.insert(0, "/opt/realcli/runner")
import realcli.wire, realcli_runner
print(realcli_runner.__file__)
"""
    kubectl.apply(pod("runner", images["empty"], images["toolkit"], [*PYTHON, "-c", program]))
    phase, said = kubectl.ended("runner"), kubectl.run("logs", "runner")
    assert phase == "Succeeded", said
    assert said.strip() == "/opt/realcli/runner/realcli_runner/__init__.py"


def test_claude_code_starts_in_a_glibc_image(kubectl, images):
    task = next(iter(images["tasks"]))
    kubectl.apply(pod("agent", task, images["agent-claude-code"], ["/opt/realcli/agent/claude", "--version"]))
    phase, said = kubectl.ended("agent"), kubectl.run("logs", "agent")
    assert phase == "Succeeded", said
    assert said.startswith("2.1.140")
