"""What the pod tells the session by environment, with the paths of the pod as defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from realcli.api.plan import Cgroup
from realcli_session.cgroup import CGROUP, PLACE, read_cgroup

KEYS = "REALCLI_KEYS"
SPOOL = "REALCLI_SPOOL"
SETUP_SECRETS = "REALCLI_SETUP_SECRETS"
TERMINATION = "REALCLI_TERMINATION_LOG"
GATEWAY_PORT = "REALCLI_GATEWAY_PORT"
STORAGE_PATIENCE = "REALCLI_STORAGE_PATIENCE"
SEGMENT_SECONDS = "REALCLI_SEGMENT_SECONDS"
RELEASE_SECONDS = "REALCLI_RELEASE_SECONDS"
ALLOW_LOOPBACK = "REALCLI_ALLOW_LOOPBACK"
FAULT = "REALCLI_FAULT"
ALLOW_FAULTS = "REALCLI_ALLOW_FAULTS"
KILL_AFTER_VERDICT = "kill-after-verdict"
FAULTS = frozenset({KILL_AFTER_VERDICT})


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things are, and how patient the session is. Everything about the trial itself is in the lock."""

    pod: str
    node: str | None
    termination_log: Path
    keys: Path
    """Directory of provider keys, one file per wire API."""
    setup_secrets: Path
    """Directory of the secrets of an own set-up's MCP servers: `<server>/<variable>`."""
    spool: Path
    gateway_port: int
    """Port on 127.0.0.1 of the pod; 0 = any free one."""
    storage_patience: float
    """Seconds each step of verify waits for storage; work waits for `limits.spoolHold`."""
    segment_seconds: float
    """Age at which an open ledger segment goes up."""
    release_seconds: float
    """Seconds a session that needs no runner waits for it, to let it go."""
    allow_loopback: bool
    """Endpoints on loopback may be used: for runs without a cluster, REALCLI_ALLOW_LOOPBACK=1."""
    cgroup: Cgroup | None
    """What this node kills for memory."""
    fault: str | None
    """A fault for tests, only with REALCLI_ALLOW_FAULTS=1: `kill-after-verdict` = SIGKILL between verdict and seal."""

    def key(self, api: str) -> str:
        """The provider key of a wire API; ValueError says which file was looked for."""
        path = self.keys / api
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"no key for the {api} API at {path}: {error}; does the Secret exist?") from error

    @staticmethod
    def from_environment(environ: Mapping[str, str] = os.environ) -> Settings:
        """ValueError names the variable that is wrong."""
        fault = environ.get(FAULT) if environ.get(ALLOW_FAULTS) == "1" else None
        if fault is not None and fault not in FAULTS:
            raise ValueError(f"{FAULT}={fault!r}: expected one of {', '.join(sorted(FAULTS))}")
        return Settings(
            pod=environ.get("REALCLI_POD", ""),
            node=environ.get("REALCLI_NODE"),
            termination_log=Path(environ.get(TERMINATION, "/dev/termination-log")),
            keys=Path(environ.get(KEYS, "/var/run/realcli/keys")),
            setup_secrets=Path(environ.get(SETUP_SECRETS, "/setup-secrets")),
            spool=Path(environ.get(SPOOL, "/spool")),
            gateway_port=_number(environ, GATEWAY_PORT, 8317),
            storage_patience=float(_number(environ, STORAGE_PATIENCE, 600)),
            segment_seconds=float(_number(environ, SEGMENT_SECONDS, 30)),
            release_seconds=float(_number(environ, RELEASE_SECONDS, 30)),
            allow_loopback=environ.get(ALLOW_LOOPBACK) == "1",
            cgroup=read_cgroup(Path(environ.get(CGROUP, PLACE))),
            fault=fault,
        )


def storage_secrets(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The secret parts of the storage credentials: an error message may repeat them, no file of ours may."""
    names = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    return [value for name in names if (value := environ.get(name))]


def _number(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name)
    if text is None:
        return default
    if not text.isdigit():
        raise ValueError(f"{name}={text!r}: expected a whole number")
    return int(text)
