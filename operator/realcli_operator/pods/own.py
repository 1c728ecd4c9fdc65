"""What a configuration brings into the work pod: keys of its endpoints, tool images and secrets of the team's own set-up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from realcli.api.agents import Agent
from realcli.api.models import Endpoint
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.plan import PlanConfiguration
from realcli.api.sweep import SweepSpec, UserMode
from realcli_operator.pods.parts import (
    PREPARE_RESOURCES,
    BuildError,
    Manifest,
    SweepContext,
    empty,
    mount,
    trusted_security,
)
from realcli_operator.pods.prepare import copy_image_command

KEYS: Final = "/keys"
USER_KEY: Final = "user"
SETUP_SECRETS: Final = "/setup-secrets"
SETUP_FILES: Final = "/setup"
KEY_MODE: Final = 0o440


def configuration_of(plan: FrozenPlan, name: str) -> PlanConfiguration:
    """The configuration; BuildError names one that is not in the plan."""
    found = next((c for c in plan.configurations if c.name == name), None)
    if found is None:
        raise BuildError(f"configuration {name} is not in the frozen plan")
    return found


def agent_of(spec: SweepSpec, name: str) -> Agent:
    """The agent; BuildError names one that is not in the sweep."""
    found = next((agent for agent in spec.agents if agent.name == name), None)
    if found is None:
        raise BuildError(f"agent {name} is not in the sweep")
    return found


def user_endpoint(spec: SweepSpec) -> Endpoint | None:
    """Where the simulated user's texts are worded; None: no model words them."""
    model = spec.simulated_user.model
    if spec.simulated_user.mode is not UserMode.MODEL or model is None:
        return None
    return model.endpoints.chat or model.endpoints.anthropic


def key_volume(spec: SweepSpec, configuration: PlanConfiguration, mode: str) -> Manifest:
    """The keys as files for the session alone: `<api>` of the configuration, `user` where a model words the user's texts."""
    model = next((m for m in spec.models if m.name == configuration.model), None)
    endpoint = None if model is None else model.endpoints.of(configuration.api)
    if endpoint is None:
        raise BuildError(
            f"configuration {configuration.name}: model {configuration.model} has no endpoints.{configuration.api} in the sweep"
        )
    sources = [_key(endpoint, configuration.api)]
    user = user_endpoint(spec) if mode == "COLLAB" else None
    if user is not None:
        sources.append(_key(user, USER_KEY))
    return {"name": "keys", "projected": {"sources": sources, "defaultMode": KEY_MODE}}


def _key(endpoint: Endpoint, path: str) -> Manifest:
    reference = endpoint.api_key.secret_ref
    return {"secret": {"name": reference.name, "items": [{"key": reference.key, "path": path}]}}


def setup_secrets(agent: Agent) -> Manifest | None:
    """Secrets that MCP servers of the set-up get, as files `<server>/<variable>` for the session, which hands them over."""
    sources = [
        {"secret": {"name": env.secret_ref.name, "items": [{"key": env.secret_ref.key, "path": f"{server.name}/{env.name}"}]}}
        for server in agent.mcp_servers
        for env in server.env
        if env.secret_ref is not None
    ]
    if not sources:
        return None
    return {"name": "setup-secrets", "projected": {"sources": sources, "defaultMode": KEY_MODE}}


def tool_volumes(context: SweepContext, agent: Agent) -> list[Manifest]:
    """One read-only volume per tool image."""
    if context.platform.image_volumes:
        return [
            {"name": f"tool-{index}", "image": {"reference": tool.image, "pullPolicy": context.pull_policy}}
            for index, tool in enumerate(agent.tool_images)
        ]
    return [empty(f"tool-{index}", "4Gi") for index, _ in enumerate(agent.tool_images)]


def tool_mounts(agent: Agent) -> list[Manifest]:
    """Where the agent's container sees them."""
    return [mount(f"tool-{index}", tool.mount_path, read_only=True) for index, tool in enumerate(agent.tool_images)]


def tool_copies(context: SweepContext, agent: Agent) -> Iterator[Manifest]:
    """Without image volumes: init containers of the tool images, in which the toolkit's Python copies the root away."""
    if context.platform.image_volumes:
        return
    for index, tool in enumerate(agent.tool_images):
        yield {
            "name": f"tool-{index}",
            "image": tool.image,
            "imagePullPolicy": context.pull_policy,
            "command": copy_image_command(),
            "resources": PREPARE_RESOURCES,
            "securityContext": {**trusted_security(), "runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [mount("toolkit", "/opt/realcli", read_only=True), mount(f"tool-{index}", "/opt/target")],
        }


def setup_file_volumes(spec: SweepSpec) -> list[tuple[Manifest, Manifest]]:
    """(volume, mount) of every ConfigMap an agent's files come from, for the plan Job: `/setup/<agent index>/<key>`."""
    found = []
    for index, agent in enumerate(spec.agents):
        if agent.files is None or agent.files.config_map_ref is None:
            continue
        source = agent.files.config_map_ref
        items = [{"key": key, "path": key} for key in sorted({item.key for item in source.items})]
        volume = {"name": f"setup-{index}", "configMap": {"name": source.name, "items": items, "defaultMode": 0o444}}
        found.append((volume, mount(f"setup-{index}", f"{SETUP_FILES}/{index}", read_only=True)))
    return found
