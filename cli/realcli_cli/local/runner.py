"""How the runner is started in a container, whatever makes the container. The same as in a pod."""

from __future__ import annotations

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CAPABILITIES = ("chown", "dac_override", "fowner", "fsetid", "kill", "setuid", "setgid", "sys_chroot", "net_bind_service")
TOOLKIT = "/opt/realcli"
RUNNER = (
    f"{TOOLKIT}/bin/clean", f"{TOOLKIT}/lib/ld-linux-x86-64.so.2", "--argv0", f"{TOOLKIT}/bin/python3", "--library-path",
    f"{TOOLKIT}/lib", f"{TOOLKIT}/bin/python3.real", "-I", f"{TOOLKIT}/runner/start.py",
)  # fmt: skip
SOCKET_DIR = "/run/realcli"
SOCKET = f"{SOCKET_DIR}/session.sock"


def runner_command(setup_seconds: float, setuid: bool) -> list[str]:
    """PID 1 of the container."""
    options = ["--no-exec-record"] if setuid else []
    return [*RUNNER, "--socket", SOCKET, "--setup-seconds", f"{setup_seconds:g}", *options]
