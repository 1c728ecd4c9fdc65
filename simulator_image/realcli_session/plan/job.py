"""The plan Job: check storage and benchmark, write the lock, print the frozen plan."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

from pydantic import ValidationError

from realcli.api.base import sha256_digest
from realcli.api.handed import whole
from realcli.api.models import Api, Endpoint
from realcli.api.plan import PLAN_BEGIN, PLAN_END, Deviation, Lock, SetupLock, encode_plan, plan_of
from realcli.api.source import From
from realcli.api.termination import Result, Termination
from realcli.benchmark.bundles import File
from realcli.benchmark.models import INDEX_KEY, Index
from realcli.benchmark.problems import BenchmarkError
from realcli.benchmark.publish import read_bundle, read_index
from realcli.ledger.redaction import MIN_SECRET
from realcli.storage.opening import open_store
from realcli.storage.paths import SweepPaths, join, sweep_root
from realcli.storage.port import (
    AlreadyStored,
    NotFound,
    ObjectStore,
    StorageConfig,
    StorageRefused,
    StorageUnavailable,
)
from realcli_session.agents.registry import adapter_class
from realcli_session.agents.terminus import Terminus2
from realcli_session.agents.terminus_wording import WordingMissing
from realcli_session.cgroup import CGROUP, PLACE, read_cgroup
from realcli_session.inputs import benchmark_store
from realcli_session.plan.lock import ConfigurationRefused, PlanRequest, build_lock, with_answers
from realcli_session.plan.mended import Benchmarks, Here
from realcli_session.plan.probing import (
    JUDGE,
    JUDGE_KEY,
    USER_KEY,
    Finding,
    Target,
    apis_used,
    judge_endpoint,
    key_name,
    probe_all,
    targets_of,
    user_endpoint,
)
from realcli_session.plan.runs import SourceRefused
from realcli_session.plan.setups import SetupProblem, pin
from realcli_session.plan.source import plan_again
from realcli_session.plan.storage_check import check_storage
from realcli_session.settings import ALLOW_LOOPBACK
from realcli_session.termination import findings, shorten

SWEEP_ENV = "REALCLI_SWEEP"
SETUP_ENV = "REALCLI_SETUP"
VERIFIER = f"realcli/{version('realcli')}"


class Refusal(Exception):
    """Planning cannot go on; `reason` is for programs, the text for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def run(environ: Mapping[str, str], out: TextIO = sys.stdout, log: TextIO = sys.stderr) -> Termination:
    """Plan the sweep of REALCLI_SWEEP. The plan is the last thing written to `out`."""
    try:
        request = _request(environ)
        config = _storage_config(environ)
        lock, digest, root = plan(request, environ, config, open_store(config))
        line = _encoded(lock, root, digest)
    except Refusal as refusal:
        print(f"{refusal.reason}: {refusal}", file=log, flush=True)
        return Termination(phase="Plan", result=Result.REFUSED, reason=refusal.reason, message=findings(str(refusal)))
    for warning in lock.warnings:
        print(f"warning: {warning}", file=log, flush=True)
    print(f"{PLAN_BEGIN}\n{line}\n{PLAN_END}", file=out, flush=True)
    planned = plan_of(lock, root, digest)
    return Termination(
        phase="Plan",
        result=Result.PLANNED,
        seal=planned.content_digest(),
        message=f"{planned.size} trials",
        uri=shorten(config.uri(SweepPaths(root).lock), 200),
    )


def plan(request: PlanRequest, environ: Mapping[str, str], config: StorageConfig, store: ObjectStore) -> tuple[Lock, str, str]:
    """(lock, its digest, the sweep's root key), with everything checked and the lock stored. Raises Refusal."""
    identity = request.sweep
    root = sweep_root(request.spec.storage.prefix, identity.namespace, identity.name, identity.uid)
    try:
        check_storage(store, root)
        earlier = _planned(store, SweepPaths(root).lock, identity.uid)
        if earlier is not None:
            return *earlier, root
        _check_keys(request, environ)
        asked = request.spec.from_
        if asked is None:
            lock = _anew(request, environ, config, store, root)
        else:
            lock = _again(request, asked, environ, config, store, root)
        lock = lock.model_copy(update={"cgroup": read_cgroup(Path(environ.get(CGROUP, PLACE)))})
        store.put_once(SweepPaths(root).lock, lock.canonical())
    except StorageRefused as error:
        raise Refusal("StorageRefused", str(error)) from error
    except AlreadyStored as error:
        raise Refusal("StorageRefused", f"{error}: the sweep's place in storage holds something else") from error
    except StorageUnavailable as error:
        raise Refusal("StorageUnavailable", str(error)) from error
    except ConfigurationRefused as error:
        raise Refusal("ConfigurationError", str(error)) from error
    except SourceRefused as error:
        raise Refusal(error.reason, str(error)) from error
    return lock, sha256_digest(lock.canonical()), root


def _anew(request: PlanRequest, environ: Mapping[str, str], config: StorageConfig, store: ObjectStore, root: str) -> Lock:
    """The lock of a sweep whose agents run."""
    given = request.spec.benchmark.source
    here = None if given is None else _index(given, request.spec.benchmark.digest, config, store)
    lock = build_lock(
        request,
        Index(name="none", version="0", tasks=[]) if here is None else here.index,
        "" if here is None else here.digest,
        _deviations,
        VERIFIER,
        _now(),
        setups=_setups(request, environ, config, store, SweepPaths(root)),
        visible=_visible,
        parts=_parts,
        allow_loopback=environ.get(ALLOW_LOOPBACK) == "1",
    )
    answers, judge = _answers(request, environ)
    return with_answers(lock, answers, judge)


def _again(
    request: PlanRequest, asked: From, environ: Mapping[str, str], config: StorageConfig, store: ObjectStore, root: str
) -> Lock:
    """The lock of a sweep of another's runs. Only the judge is asked whether it answers: no other model takes part."""
    benchmarks = Benchmarks(
        index=lambda source, digest: _index(source, digest, config, store),
        files=lambda source, digest: _bundle(source, digest, config, store),
        allow_loopback=environ.get(ALLOW_LOOPBACK) == "1",
    )
    lock = plan_again(request, asked, store, root, benchmarks, VERIFIER, _now())
    _, judge = _answers(request, environ)
    return with_answers(lock, {}, judge).model_copy(update={"configurations": lock.configurations})


def _request(environ: Mapping[str, str]) -> PlanRequest:
    try:
        return PlanRequest.model_validate_json(whole(environ, SWEEP_ENV))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or SWEEP_ENV
        raise Refusal(
            "ConfigurationError", f"{SWEEP_ENV}: {where}: {first['msg']}; the operator and this image must match"
        ) from error


def _storage_config(environ: Mapping[str, str]) -> StorageConfig:
    try:
        return StorageConfig.from_environment(environ)
    except ValueError as error:
        raise Refusal("ConfigurationError", str(error)) from error


def _index(source: str, digest: str | None, config: StorageConfig, store: ObjectStore) -> Here:
    """The benchmark version at `source`; `digest`: what its index has to have."""
    where, prefix = benchmark_store(config, store, source)
    key = join(prefix, INDEX_KEY)
    try:
        found = sha256_digest(where.get(key))
    except NotFound:
        message = f"spec.benchmark.source: {key} does not exist in {where.describe()}; realcli benchmark publish puts it there"
        raise Refusal("BenchmarkNotFound", message) from None
    if digest is not None and digest != found:
        message = f"spec.benchmark.digest: {key} has the digest {found}, expected {digest}; correct digest or source"
        raise Refusal("DigestMismatch", message)
    try:
        return Here(source, *read_index(where, prefix, found))
    except BenchmarkError as error:
        raise Refusal("BenchmarkNotFound", str(error)) from error


def _bundle(source: str, digest: str, config: StorageConfig, store: ObjectStore) -> list[File]:
    """The files of a bundle of the version at `source`."""
    where, prefix = benchmark_store(config, store, source)
    try:
        return read_bundle(where, prefix, digest)
    except BenchmarkError as error:
        raise Refusal("BenchmarkNotFound", str(error)) from error


def _setups(
    request: PlanRequest, environ: Mapping[str, str], config: StorageConfig, store: ObjectStore, paths: SweepPaths
) -> dict[str, SetupLock]:
    """Pin every agent's own set-up: its archive lies in storage before the lock names it."""
    folder = Path(environ.get(SETUP_ENV, "/setup"))

    def fetch(source: str) -> bytes:
        where, key = benchmark_store(config, store, source)
        return where.get(key)

    found, problems = {}, []
    for index, agent in enumerate(request.spec.agents):
        try:
            pinned = pin(agent, folder / str(index), fetch)
        except SetupProblem as problem:
            problems.append(str(problem))
            continue
        if pinned is not None:
            found[agent.name] = pinned.lock
            if pinned.archive is not None and pinned.lock.archive is not None:
                store.put_once(paths.setup(pinned.lock.archive), pinned.archive)
    if problems:
        raise ConfigurationRefused("\n".join(problems))
    return found


def _deviations(program: str) -> tuple[Deviation, ...]:
    return adapter_class(program).deviations()


def _planned(store: ObjectStore, key: str, uid: str) -> tuple[Lock, str] | None:
    """The lock an earlier run of this Job stored. It is the truth, whatever has changed since."""
    try:
        stored = store.get(key)
    except NotFound:
        return None
    try:
        lock = Lock.model_validate_json(stored)
    except ValidationError as error:
        raise ConfigurationRefused(
            f"{key} in {store.describe()} is no lock of this version ({error.error_count()} fields do not fit); make a new sweep"
        ) from error
    if lock.sweep.uid != uid:
        raise ConfigurationRefused(f"{key} in {store.describe()} is of another sweep (uid {lock.sweep.uid}); make a new sweep")
    return lock, sha256_digest(stored)


def _visible(program: str) -> str:
    return adapter_class(program).visible_text


def _parts(program: str) -> Mapping[str, str]:
    """Raises ConfigurationRefused where this image lacks them."""
    if program != Terminus2.program:
        return {}
    try:
        return Terminus2.key_parts()
    except WordingMissing as error:
        raise ConfigurationRefused(f"{program}: {error}") from error


def _answers(request: PlanRequest, environ: Mapping[str, str]) -> tuple[dict[tuple[str, Api], str | None], str | None]:
    """Which id answers for each (model, API) that a configuration uses, and which for the judge ("": it names none; None: no
    judge was asked). Raises Refusal."""
    targets = list(targets_of(request.spec, environ))
    findings = _ask(targets, request.platform.cluster_domain, environ.get(ALLOW_LOOPBACK) == "1")
    problems = [finding for finding in findings if finding.problem is not None]
    if problems:
        reason = "ProviderUnavailable" if all(finding.passing for finding in problems) else "ConfigurationError"
        raise Refusal(reason, "\n".join(str(finding.problem) for finding in problems))
    asked = list(zip(targets, findings, strict=True))
    answers = {(target.name, target.api): finding.model for target, finding in asked if target.name is not None}
    return answers, next((finding.model or "" for target, finding in asked if target.where == JUDGE), None)


def _ask(targets: list[Target], cluster_domain: str, allow_loopback: bool) -> list[Finding]:
    return asyncio.run(probe_all(targets, cluster_domain=cluster_domain, allow_loopback=allow_loopback))


def _check_keys(request: PlanRequest, environ: Mapping[str, str]) -> None:
    """Every key is there as REALCLI_KEY_<model index>_<API>; a blank one would fail in the first trial only."""
    used = apis_used(request.spec)
    for index, model in enumerate(request.spec.models):
        for api, endpoint in model.endpoints.given:
            if api not in used and key_name(index, api) not in environ:
                continue
            _check_key(environ, key_name(index, api), f"spec.models[{model.name}].endpoints.{api}", endpoint)
    user = user_endpoint(request.spec)
    if user is not None:
        api, endpoint = user
        _check_key(environ, USER_KEY, f"spec.simulatedUser.model.endpoints.{api}", endpoint)
    judge = judge_endpoint(request.spec)
    if judge is not None:
        api, endpoint = judge
        _check_key(environ, JUDGE_KEY, f"{JUDGE}.endpoints.{api}", endpoint)


def _check_key(environ: Mapping[str, str], name: str, field: str, endpoint: Endpoint) -> None:
    key, ref = environ.get(name), endpoint.api_key.secret_ref
    where = f"{field}.apiKey: key {ref.key} of Secret {ref.name}"
    if key is None:
        raise ConfigurationRefused(f"{where} was not given to this program as {name}; the operator and this image must match")
    if not key.isascii() or not key or any(c.isspace() for c in key):
        raise ConfigurationRefused(
            f"{where} is empty or holds characters that no HTTP header may hold (a line end?); correct the Secret"
        )
    if len(key) < MIN_SECRET:
        raise ConfigurationRefused(
            f"{where} has {len(key)} characters; at least {MIN_SECRET} are needed to redact it from the evidence without harm "
            "to innocent text: use a longer key"
        )


def _encoded(lock: Lock, root: str, digest: str) -> str:
    try:
        return encode_plan(plan_of(lock, root, digest))
    except ValueError as error:
        raise Refusal("ConfigurationError", str(error)) from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
