"""How Codex 0.142.0 is started: command line, environment, and every deviation from its defaults with the reason.

Every setting of ours stands on the command line (`-c key=value`), which wins over any `config.toml`: the team's own file in
CODEX_HOME stays as it is.
"""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from realcli.api.plan import Deviation
from realcli.api.sweep import Mode
from realcli_session.agents.port import AgentSpec

PROGRAM = "codex"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOKEN_VARIABLE = "OPENAI_API_KEY"
PROVIDER = "gateway"
_DROPPED_PREFIXES = ("KUBERNETES_", "OPENAI_", "CODEX_")


class Setting(NamedTuple):
    """One deviation: an environment variable, or a configuration key with its TOML value. `value` None: comes from the trial."""

    kind: Literal["env", "config"]
    name: str
    value: str | None
    reason: str
    mode: Mode | None = None  # None: both
    permissions: str | None = None  # None: all


SETTINGS: tuple[Setting, ...] = (
    Setting("env", "CODEX_HOME", None, "the program's own files stay out of the task's HOME"),
    Setting("env", TOKEN_VARIABLE, None, "a token of this attempt; the gateway alone holds the key"),
    Setting("config", "model", None, "the model under test"),
    Setting("config", "model_reasoning_effort", None, "options.effort of the sweep, where it is given"),
    Setting("config", "model_provider", f'"{PROVIDER}"', "every request goes through the session's gateway"),
    Setting("config", f"model_providers.{PROVIDER}", None, "address and token of the gateway; retries as by default"),
    Setting("config", "approval_policy", '"never"', "nobody is there to confirm each command", None, "Bypass"),
    Setting("config", "approval_policy", '"untrusted"', "it asks for what it does not know as harmless", None, "Ask"),
    Setting("config", "sandbox_mode", '"danger-full-access"', "the container is the sandbox; its own needs user namespaces"),
    Setting("config", "check_for_update_on_startup", "false", "the pinned version is measured; no lookups besides the model"),
    Setting("config", "web_search", '"disabled"', "a tool that runs at the provider; the gateway would refuse each request"),
    Setting("config", "feedback.enabled", "false", "no lookups besides the model"),
    Setting("config", "analytics.enabled", "false", "no lookups besides the model"),
    Setting("config", "features.apps", "false", "it looks for apps at the vendor's site at start"),
    Setting("config", "features.plugins", "false", "it looks for plugins at the vendor's site at start"),
    Setting(
        "config", "features.default_mode_request_user_input", "true", "its question tool reaches the simulated user", "COLLAB"
    ),
    Setting("config", "suppress_unstable_features_warning", "true", "the question tool outside of plan mode is one", "COLLAB"),
    Setting(
        "config", "tools.experimental_request_user_input", "{enabled=false}", "EXEC has no communication actions", "EXEC"
    ),
)  # fmt: skip


def deviations(mode: Mode | None = None) -> tuple[Deviation, ...]:
    """The list for the lock; `mode` None: of both modes. What holds for a part only has that in the setting's name."""
    return tuple(
        Deviation(
            program=PROGRAM,
            setting=_named(setting, mode),
            value="(per trial)" if setting.value is None else setting.value,
            reason=setting.reason,
        )
        for setting in SETTINGS
        if mode is None or setting.mode in (None, mode)
    )


def _named(setting: Setting, mode: Mode | None) -> str:
    only: list[str] = [setting.mode] if setting.mode is not None and mode is None else []
    only += [f"permissions {setting.permissions}"] if setting.permissions is not None else []
    return f"{setting.name} ({', '.join(only)})" if only else setting.name


def home(spec: AgentSpec) -> str:
    """CODEX_HOME. Not below /tmp, where the program refuses to make its helper commands."""
    return f"{spec.state_dir}/{PROGRAM}"


def argv(spec: AgentSpec) -> list[str]:
    """The command line. Holds no secret: it goes into the ledger."""
    provider = f'{{name="{PROVIDER}",base_url={_toml(spec.base_url)},wire_api="responses",env_key="{TOKEN_VARIABLE}"}}'
    given = {
        "model": _toml(spec.model),
        "model_reasoning_effort": None if spec.effort is None else _toml(spec.effort),
        f"model_providers.{PROVIDER}": provider,
    }
    line = [f"{spec.program_dir}/codex/bin/codex", "app-server"]
    for setting in SETTINGS:
        if setting.kind == "config" and setting.mode in (None, spec.mode) and setting.permissions in (None, spec.permissions):
            value = given[setting.name] if setting.value is None else setting.value
            if value is not None:
                line += ["-c", f"{setting.name}={value}"]
    return line


def environment(spec: AgentSpec) -> dict[str, str]:
    """The image's environment and HOME, with what the program needs; nothing of the cluster, nothing that would redirect it."""
    kept = {name: value for name, value in spec.environ.items() if not name.startswith(_DROPPED_PREFIXES)}
    return {"PATH": DEFAULT_PATH, **kept, "HOME": spec.home, "CODEX_HOME": home(spec), TOKEN_VARIABLE: spec.token}


def _toml(text: str) -> str:
    """A TOML basic string: JSON's escapes are a part of TOML's."""
    return json.dumps(text)
