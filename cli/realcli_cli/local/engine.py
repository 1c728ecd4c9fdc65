"""The same container in docker or podman, with the host's network so that the session is on its loopback."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from realcli_cli.local.cache import discard
from realcli_cli.local.runner import CAPABILITIES, SOCKET_DIR, TOOLKIT, runner_command
from realcli_cli.main import UserError

ENGINES = ("docker", "podman")


def engine(wanted: str | None = None) -> str | None:
    """The first engine that answers, or the wanted one if it does."""
    for name in (wanted,) if wanted else ENGINES:
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0:
            return name
    return None


@dataclass
class EngineContainer:
    """See Container."""

    engine: str
    image: str
    toolkit: Path
    agent: Path
    setuid: bool = False
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="rcli-")))
    name: str = field(default_factory=lambda: f"realcli-{uuid.uuid4().hex[:12]}")
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def socket(self) -> Path:
        """See Container."""
        return self.folder / "session.sock"

    def command(self, setup_seconds: float) -> list[str]:
        """The engine's command line."""
        runner = runner_command(setup_seconds, self.setuid)
        return [
            self.engine, "run", "--rm", "--name", self.name, "--network", "host", "--user", "0:0", "--cap-drop", "ALL",
            *(part for name in CAPABILITIES for part in ("--cap-add", name.upper())),
            *([] if self.setuid else ["--security-opt", "no-new-privileges"]),
            "--volume", f"{self.toolkit}:{TOOLKIT}:ro", "--volume", f"{self.agent}:{TOOLKIT}/agent:ro",
            "--volume", f"{self.folder}:{SOCKET_DIR}", "--entrypoint", runner[0], self.image, *runner[1:],
        ]  # fmt: skip

    def start(self, setup_seconds: float) -> None:
        """See Container."""
        self.folder.chmod(0o755)
        self.process = subprocess.Popen(self.command(setup_seconds), stdin=subprocess.DEVNULL, process_group=0)

    def stop(self, seconds: float = 30) -> int:
        """See Container."""
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._kill()
            raise

    def close(self) -> None:
        """See Container."""
        self._kill()
        discard(self.folder)

    def _kill(self) -> None:
        if self.process is None:
            return
        # also where the engine's client is gone: its container may not be
        subprocess.run([self.engine, "rm", "--force", self.name], capture_output=True, check=False)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def image_in(name: str, archive: Path | None, image: str) -> str:
    """The image's name or id in the engine; loaded from the archive if one is given. UserError: the engine lacks it."""
    if archive is not None:
        done = subprocess.run([name, "load", "-i", str(archive)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UserError(f"--image {archive}: {name} cannot load it: {done.stderr.strip()[-500:]}")
        return done.stdout.strip().splitlines()[-1].split(": ", 1)[-1].removeprefix("Loaded image ID: ")
    listed = subprocess.run([name, "image", "inspect", image], capture_output=True, text=True, check=False)
    if listed.returncode != 0 or not json.loads(listed.stdout):
        raise UserError(f"{name} has no image {image}; build it ({name} build -t {image} TASK/environment), or give --image FILE")
    return image
