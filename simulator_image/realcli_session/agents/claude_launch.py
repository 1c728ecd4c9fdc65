"""How Claude Code 2.1.140 is started: command line, environment, and every deviation from its defaults with the reason."""

from __future__ import annotations

from typing import Literal, NamedTuple

from realcli.api.plan import Deviation
from realcli.api.sweep import Mode
from realcli_session.agents.port import AgentSpec

PROGRAM = "claude-code"
QUESTION_TOOL = "AskUserQuestion"
MCP_FILE = "session-mcp-servers.json"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DROPPED_PREFIXES = ("KUBERNETES_", "ANTHROPIC_", "CLAUDE_")


class Setting(NamedTuple):
    """One deviation: an environment variable or a flag. `value` None: comes from the trial."""

    kind: Literal["env", "flag"]
    name: str
    value: str | None
    reason: str
    mode: Mode | None = None  # None: both
    permissions: str | None = None  # None: all


SETTINGS: tuple[Setting, ...] = (
    Setting("env", "ANTHROPIC_BASE_URL", None, "every request goes through the session's gateway"),
    Setting("env", "ANTHROPIC_API_KEY", None, "a token of this attempt; the gateway alone holds the key"),
    Setting("env", "CLAUDE_CONFIG_DIR", None, "the program's own files stay out of the task's HOME"),
    Setting("env", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1", "no telemetry and no lookups besides the model"),
    Setting("env", "DISABLE_AUTOUPDATER", "1", "the pinned version is measured"),
    Setting("env", "IS_SANDBOX", "1", "the program refuses to skip permissions as root otherwise; it runs in a container"),
    Setting(
        "env",
        "API_TIMEOUT_MS",
        "3600000",
        "the provider's troubles are waited out in the gateway, longer than the default of 10 minutes",
    ),
    Setting("flag", "--print", "", "no terminal: the session drives it over its pipes"),
    Setting("flag", "--input-format", "stream-json", "further user messages reach the running program"),
    Setting("flag", "--output-format", "stream-json", "its events can be read one by one"),
    Setting("flag", "--verbose", "", "stream-json output requires it"),
    Setting("flag", "--replay-user-messages", "", "it tells when it has read a message: the yield is known for certain"),
    Setting("flag", "--permission-prompt-tool", "stdio", "permission prompts and questions reach the session"),
    Setting(
        "flag",
        "--dangerously-skip-permissions",
        "",
        "permissions Bypass: nobody is there to confirm each command",
        permissions="Bypass",
    ),
    Setting("flag", "--model", None, "the model under test"),
    Setting("flag", "--effort", None, "options.effort of the sweep, where it is given"),
    Setting("flag", "--mcp-config", None, "MCP servers of the user's own set-up, where there are any"),
    Setting("flag", "--disallowedTools", QUESTION_TOOL, "EXEC has no communication actions", "EXEC"),
)


def deviations(mode: Mode | None = None) -> tuple[Deviation, ...]:
    """The list for the lock; `mode` None: of both modes. What holds for a part only has that in the setting's name."""
    return tuple(
        Deviation(
            program=PROGRAM,
            setting=_named(setting, mode),
            value="(per trial)" if setting.value is None else setting.value or "on",
            reason=setting.reason,
        )
        for setting in SETTINGS
        if mode is None or setting.mode in (None, mode)
    )


def _named(setting: Setting, mode: Mode | None) -> str:
    only: list[str] = [setting.mode] if setting.mode is not None and mode is None else []
    only += [f"permissions {setting.permissions}"] if setting.permissions is not None else []
    return f"{setting.name} ({', '.join(only)})" if only else setting.name


def config_dir(spec: AgentSpec) -> str:
    """CLAUDE_CONFIG_DIR."""
    return f"{spec.state_dir}/{PROGRAM}"


def argv(spec: AgentSpec) -> list[str]:
    """The command line. Holds no secret: it goes into the ledger."""
    servers = spec.setup is not None and spec.setup.mcp_servers
    given = {
        "--model": spec.model,
        "--effort": spec.effort,
        "--mcp-config": f"{config_dir(spec)}/{MCP_FILE}" if servers else None,
    }
    line = [f"{spec.program_dir}/claude"]
    for setting in SETTINGS:
        if setting.kind == "flag" and setting.mode in (None, spec.mode) and setting.permissions in (None, spec.permissions):
            value = given[setting.name] if setting.value is None else setting.value
            if value is not None:
                line += [setting.name, value] if value else [setting.name]
    return line


def environment(spec: AgentSpec) -> dict[str, str]:
    """The image's environment and HOME, with what the program needs; nothing of the cluster, nothing that would redirect it."""
    kept = {name: value for name, value in spec.environ.items() if not name.startswith(_DROPPED_PREFIXES)}
    given = {
        "ANTHROPIC_BASE_URL": spec.base_url,
        "ANTHROPIC_API_KEY": spec.token,
        "CLAUDE_CONFIG_DIR": config_dir(spec),
    }
    fixed = {
        setting.name: setting.value if setting.value is not None else given[setting.name]
        for setting in SETTINGS
        if setting.kind == "env" and setting.mode in (None, spec.mode)
    }
    return {"PATH": DEFAULT_PATH, **kept, "HOME": spec.home, **fixed}
