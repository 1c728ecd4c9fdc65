"""A sweep of one configuration planned in a local directory by the real plan program."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realcli.api.agents import PROGRAMS
from realcli.api.handed import parts
from realcli.api.models import Api
from realcli.api.plan import Lock, Plan, plan_in_log
from realcli.api.sweep import Mode
from realcli.api.termination import parse_termination
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.problems import BenchmarkError
from realcli.benchmark.publish import publish
from realcli.benchmark.suite import Suite, SuiteToml, check_task
from realcli.ledger.events import EVENT, Event
from realcli.ledger.seals import VerifySeal, WorkSeal
from realcli.storage.opening import open_store
from realcli.storage.paths import AttemptPaths, SweepPaths
from realcli.storage.port import ObjectStore, StorageConfig
from realcli_cli.local.pods import start_session
from realcli_cli.main import UserError

STORE = {"bucket": "local", "credentials": {"secretRef": {"name": "local"}}}
_KEY = {"secretRef": {"name": "local", "key": "key"}}
PLAN_SECONDS = 900.0  # four test requests, each of which a slow model may think about
KEY_VARIABLES: dict[str, str] = {"anthropic": "ANTHROPIC", "responses": "RESPONSES", "chat": "CHAT"}


@dataclass(frozen=True)
class Model:
    """A model behind one address: base URL without /v1, and the key."""

    id: str
    url: str
    key: str = field(repr=False)

    def endpoint(self, api: Api) -> dict[str, Any]:
        """As a sweep names it."""
        url = self.url.rstrip("/").removesuffix("/v1")
        return {"url": url if api == "anthropic" else f"{url}/v1", "apiKey": _KEY}


@dataclass
class LocalSweep:
    """A planned sweep. Its storage is a directory, or a bucket (then the credentials are in `environment`)."""

    storage: StorageConfig
    lock: Lock
    plan: Plan
    environment: dict[str, str]
    """What every session of it needs."""

    @property
    def store(self) -> ObjectStore:
        """Where everything lies."""
        return open_store(self.storage)

    @property
    def store_dir(self) -> Path:
        """The directory; ValueError for a bucket."""
        if self.storage.directory is None:
            raise ValueError(f"the storage is {self.storage.uri('')}, no directory")
        return Path(self.storage.directory)

    def ordinal(self, task: str, mode: Mode, repeat: int = 1) -> int:
        """The trial of a cell."""
        cells = (self.plan.coordinates(n) for n in range(self.plan.size))
        return next(c.ordinal for c in cells if (c.task, c.mode, c.repeat) == (task, mode, repeat))

    def attempt(self, ordinal: int, attempt: int = 1) -> AttemptPaths:
        """Its keys."""
        return SweepPaths(self.plan.root).attempt(ordinal, attempt)

    def place(self, ordinal: int, attempt: int = 1) -> Path:
        """Its folder."""
        return self.store_dir / self.attempt(ordinal, attempt).root

    def events(self, ordinal: int, attempt: int = 1) -> list[Event]:
        """The ledger in storage."""
        store = self.store
        keys = [info.key for info in store.list(self.attempt(ordinal, attempt).ledger + "/")]
        return [EVENT.validate_json(line) for key in sorted(keys) for line in store.get(key).splitlines()]

    def work_seal(self, ordinal: int, attempt: int = 1) -> WorkSeal:
        """Parsed."""
        return WorkSeal.model_validate_json(self.store.get(self.attempt(ordinal, attempt).work_seal))

    def verify_seal(self, ordinal: int, verify: int = 1, attempt: int = 1) -> VerifySeal:
        """Parsed."""
        return VerifySeal.model_validate_json(self.store.get(self.attempt(ordinal, attempt).verify(verify).seal))


def suite_of_task(task: Path) -> Suite:
    """A suite of this task alone. UserError with every problem of the task."""
    if not (task / "task.toml").is_file():
        raise UserError(
            f"--task {task}: no task.toml in it; expected a task's folder, e.g. benchmark/starter/tasks/site-settings"
        )
    found, problems = check_task(task.resolve(), load_catalogue())
    if found is None or problems:
        raise UserError(f"--task {task}: {BenchmarkError(problems)}")
    return Suite(SuiteToml(name="local", version="1.0.0"), [found])


def plan_sweep(
    storage: Path | StorageConfig,
    suite: Suite,
    program: str,
    model: Model,
    *,
    modes: Sequence[Mode] = ("EXEC", "COLLAB"),
    user: Model | None = None,
    limits: Mapping[str, Any] | None = None,
    agent: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> LocalSweep:
    """Publish the suite and plan all its tasks, one repeat. UserError says what the plan program refuses.

    `storage`: a directory (made), or a bucket whose credentials are in this process's environment and in `environment`.
    `user`: the simulated user's model; without one it is Canonical. `agent`: further fields of spec.agents[0].
    """
    if isinstance(storage, Path):
        storage.mkdir(parents=True, exist_ok=True)
        storage = StorageConfig(directory=str(storage.resolve()))
    published = publish(suite, open_store(storage), "benchmarks")
    bucket = storage.bucket or STORE["bucket"]
    api = PROGRAMS[program].api
    spec: dict[str, Any] = {
        "benchmark": {"source": f"s3://{bucket}/{published.key}", "digest": published.digest},
        "agents": [{"name": program, **(agent or {})}],
        "models": [{"name": "model", "model": model.id, "endpoints": {api: model.endpoint(api)}}],
        "modes": list(modes),
        "repeats": 1,
        "limits": dict(limits or {}),
        "storage": STORE | {"bucket": bucket},
    }
    keys = {f"REALCLI_KEY_0_{KEY_VARIABLES[api]}": model.key}
    if user is not None:
        spec["simulatedUser"] = {"mode": "Model", "model": {"model": user.id, "endpoints": {"chat": user.endpoint("chat")}}}
        keys["REALCLI_KEY_USER"] = user.key
    version = PROGRAMS[program].version
    platform = {
        "operatorVersion": "local", "userNamespaces": False, "imageVolumes": False,
        "images": {"session": "local", "judge": "local", "toolkit": "local", "agents": {f"{program}/{version}": "local"}},
    }  # fmt: skip
    request = {"sweep": {"namespace": "local", "name": "local", "uid": "00000000"}, "spec": spec, "platform": platform}
    variables = {
        "REALCLI_STORAGE": storage.model_dump_json(exclude_none=True),
        "REALCLI_ALLOW_LOOPBACK": "1",
        "REALCLI_GATEWAY_PORT": "0",
        "REALCLI_SEGMENT_SECONDS": "1",
        "REALCLI_NODE": "local",
        **(environment or {}),
    }
    return _planned(storage, variables, keys | parts("REALCLI_SWEEP", json.dumps(request)))


def _planned(storage: StorageConfig, variables: dict[str, str], own: dict[str, str]) -> LocalSweep:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "termination"
        session = start_session(["plan"], variables | own | {"REALCLI_TERMINATION_LOG": str(log)}, stderr=subprocess.PIPE)
        try:
            out, err = session.communicate(timeout=PLAN_SECONDS)
        except subprocess.TimeoutExpired:
            raise UserError(f"planning has not ended within {PLAN_SECONDS:.0f} s; does the model's endpoint answer?") from None
        finally:
            session.kill()
            session.communicate()
        message = parse_termination(log.read_text()) if log.exists() else None
    if message is None or message.seal is None or session.returncode != 0:
        said = message.message if message is not None else err.strip()[-2000:]
        raise UserError(f"the trial cannot be planned: {said}")
    plan = plan_in_log(out, message.seal)
    lock = Lock.model_validate_json(open_store(storage).get(SweepPaths(plan.root).lock))
    return LocalSweep(storage, lock, plan, variables)
