"""Without root: the whole command again in a user namespace in which this user is root, with the ids of /etc/subuid."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from pathlib import Path

from realcli_cli.local.container import which, why_no_chroot
from realcli_cli.main import UserError

MARK = "REALCLI_USERNS"
_OWN = "containers of this kind need root, or user namespaces with newuidmap and a range of ids in /etc/subuid"


def become_root() -> None:
    """Returns if this process may make containers; else starts the command anew where it may. UserError: nowhere."""
    missing = why_no_chroot()
    if missing is None:
        return
    if os.geteuid() == 0 or os.environ.get(MARK):
        raise UserError(f"{_OWN}; {missing}. Use --isolation docker (or podman), or a cluster")
    user = pwd.getpwuid(os.getuid()).pw_name
    if shutil.which("newuidmap") is None:
        raise UserError(f"{_OWN}; newuidmap is not installed (package uidmap). Install it, or use --isolation docker")
    if not _has_range(user, Path("/etc/subuid")) or not _has_range(user, Path("/etc/subgid")):
        raise UserError(
            f"{_OWN}; {user} has no range in /etc/subuid and /etc/subgid: usermod --add-subuids 100000-165535 --add-subgids "
            f"100000-165535 {user}. Or use --isolation docker"
        )
    command = [which("unshare"), "--user", "--map-root-user", "--map-auto", "--", sys.executable, *_again()]
    os.execve(command[0], command, dict(os.environ) | {MARK: user})


def _again() -> list[str]:
    return ["-m", "realcli_cli", *sys.argv[1:]]


def _has_range(user: str, file: Path) -> bool:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return False
    return any(line.split(":")[0] in (user, str(os.getuid())) for line in lines if line.count(":") == 2)
