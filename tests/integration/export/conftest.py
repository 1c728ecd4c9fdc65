"""Harbor in an environment of its own: it needs a newer Python than this project, and much that this project does not."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "harbor-environment.txt"
OLDEST = (3, 12)
VARIABLE = "REALCLI_HARBOR_PYTHON"
ASK = "import json, sys; print(json.dumps(sys.version_info[:2]))"


@pytest.fixture(scope="session")
def harbor_python() -> Path:
    """The interpreter of an environment with the real package: made once, by hashes, kept in the cache."""
    interpreter = _newer_python()
    about = REQUIREMENTS.read_bytes() + str(interpreter.resolve()).encode()
    cache = Path(os.environ.get("REALCLI_CACHE") or Path.home() / ".cache" / "realcli") / "tests"
    folder = cache / f"harbor-{hashlib.sha256(about).hexdigest()[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".harbor.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            _run("uv", "venv", "-q", "--clear", "--no-python-downloads", "--python", interpreter, folder)
            made = folder / "bin" / "python"
            _run("uv", "pip", "install", "-q", "--require-hashes", "--only-binary", ":all:", "--python", made, "-r", REQUIREMENTS)
            (folder / "whole").touch()
    return folder / "bin" / "python"


@pytest.fixture
def loaded(harbor_python: Path, tmp_path: Path) -> Callable[[Path], dict[str, Any]]:
    """`loaded(job)`: what Harbor's models and viewer make of a job directory."""

    def load(job: Path) -> dict[str, Any]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        done = subprocess.run(
            [harbor_python, "-I", HERE / "load_job.py", job], capture_output=True, text=True, timeout=120, env=environment
        )
        assert done.returncode == 0, done.stderr[-4000:]
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return load


def _newer_python() -> Path:
    """An interpreter that Harbor runs on: the one that is named, one on the path, one of pyenv. Without one the test fails."""
    named = os.environ.get(VARIABLE)
    folders = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [folder / f"python3.{minor}" for minor in (12, 13, 14) for folder in folders]
    candidates += sorted(versions.glob("3.*/bin/python3"))
    for candidate in [Path(named)] if named else candidates:
        if candidate.is_file():
            done = subprocess.run([candidate, "-I", "-c", ASK], capture_output=True, text=True, timeout=30)
            if done.returncode == 0 and tuple(json.loads(done.stdout)) >= OLDEST:
                return candidate
    pytest.fail(
        f"harbor needs Python {OLDEST[0]}.{OLDEST[1]} or later, none was found ({VARIABLE}={named}, PATH, {versions}); install "
        f"one, e.g. `apt-get install python3.12 python3.12-venv` or `pyenv install 3.12`, or name it by {VARIABLE}"
    )


def _run(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command[:3]))}: {done.stderr[-2000:]}")
