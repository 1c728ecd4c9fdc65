"""How Terminus-2 is set up, and every deviation from the pinned release (harbor 0.26.0) with its reason."""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from realcli.api.plan import Deviation
from realcli.api.sweep import Mode
from realcli.wire.protocol import ErrorCode
from realcli_session.agents.port import AgentSpec, McpServer
from realcli_session.agents.terminus_tmux import Place
from realcli_session.agents.terminus_wording import Wording
from realcli_session.runner.errors import SpawnFailed
from realcli_session.runner.port import RunnerPort

PROGRAM = "terminus-2"
SHELLS = (("bash", "--login"), ("sh", "-l"))
PROBE_SECONDS = 30.0


class Setting(NamedTuple):
    """One deviation."""

    name: str
    value: str
    reason: str
    mode: Mode | None = None  # None: both


SETTINGS: tuple[Setting, ...] = (
    Setting("loop and parser", "realcli", "it runs in the session, not in the task's container; a test compares the parsers"),
    Setting("api_base", "(per trial)", "every request goes through the session's gateway"),
    Setting("api_key", "(per trial)", "a token of this attempt; the gateway alone holds the key"),
    Setting("retries", "0", "the gateway repeats what fails; the release sends any failed request up to nine times"),
    Setting("cache_control", "off", "the release marks messages for models named Claude; Chat Completions has no such marks"),
    Setting("token_counter", "provider", "lengths are the provider's counts, not those of the release's tokenizer tables"),
    Setting(
        "max_input_tokens",
        "models[].contextTokens, else 1000000",
        "the release looks into a table of models; its value for one it does not know. A refused length is handled as well",
    ),
    Setting("max_output_tokens", "unknown", "the complaint about a cut answer names no number, as for a model it does not know"),
    Setting("record_terminal_session", "false", "asciinema would have to be installed in the image; the ledger is the record"),
    Setting("tmux", "toolkit", "the release installs tmux into the image over the network"),
    Setting("shell", "bash, else sh", "the release needs bash; images with a shell of another name can be measured as well"),
    Setting("end of the shell", "crash", "the release ends its run as if the task were complete"),
    Setting("message_to_user", "on", "the release has no way to talk to a user", "COLLAB"),
    Setting("summarised task", "all messages", "a summary is asked for with all that the user said", "COLLAB"),
)


def deviations(mode: Mode | None = None) -> tuple[Deviation, ...]:
    """The list for the lock; `mode` None: of both modes, with the mode in the setting's name where it matters."""
    return tuple(
        Deviation(
            program=PROGRAM,
            setting=setting.name if setting.mode is None or mode is not None else f"{setting.name} ({setting.mode})",
            value=setting.value,
            reason=setting.reason,
        )
        for setting in SETTINGS
        if mode is None or setting.mode in (None, mode)
    )


async def place_of(runner: RunnerPort, spec: AgentSpec) -> Place:
    """Shell, environment and folders in this image. SpawnFailed where it has no shell."""
    base = {name: value for name, value in spec.environ.items() if not name.startswith("KUBERNETES_")} | {"HOME": spec.home}
    problems: list[str] = []
    for shell in SHELLS:
        try:
            done = await runner.run([shell[0], "-c", ":"], env=base, cwd="/", uid=spec.uid, gid=spec.gid, seconds=PROBE_SECONDS)
        except SpawnFailed as error:
            problems.append(str(error))
            continue
        except TimeoutError:
            raise SpawnFailed(
                ErrorCode.SPAWN_FAILED, f"{shell[0]} of the task's image does not run ':' within {PROBE_SECONDS:g} s"
            ) from None
        if done.status.code == 0:
            env = base | {"TERM": "xterm-256color", "SHELL": f"/bin/{shell[0]}"}
            toolkit = posixpath.dirname(spec.program_dir)
            return Place(env, spec.workdir, shell, f"{spec.state_dir}/{PROGRAM}", toolkit, spec.uid, spec.gid)
        problems.append(f"{shell[0]} ends with {done.status}")
    text = f"{PROGRAM} types into a shell, and the task's image has neither bash nor sh that runs; use an image with one"
    raise SpawnFailed(ErrorCode.SPAWN_FAILED, f"{text} ({'; '.join(problems)})")


def mcp_note(servers: tuple[McpServer, ...], words: Wording) -> str:
    """What the release adds to the task for MCP servers: it names them, the model has to start them itself."""
    if not servers:
        return ""
    lines = [words.say("mcp_stdio", server.name, server.command[0], " ".join(server.command[1:])) for server in servers]
    return words.say("mcp_heading") + "".join(lines)
