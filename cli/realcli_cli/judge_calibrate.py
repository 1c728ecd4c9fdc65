"""`realcli judge calibrate`: a judge over the known-answer set, its error rates and the gate that scores have to pass."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
import yaml
from pydantic import ValidationError

from realcli.api.faults import first_fault
from realcli.api.judge import Judge
from realcli.api.models import Api
from realcli.api.sweep import BenchmarkSweep
from realcli.checks.digest import digest8
from realcli.judging.conversing import Pool, one_by_one
from realcli.judging.identity import identity_of
from realcli.judging.model import JudgeIdentity
from realcli.judging.port import Backend, BackendRefused, BackendUnavailable
from realcli.judging.purse import Purse
from realcli.judging.run import Settings
from realcli.known.bench import injected
from realcli.known.calibration import gate_of, judged
from realcli.known.cases import known_cases
from realcli.known.gate import Gate, Share
from realcli.known.judges import emulated
from realcli.known.kept import kept_gate
from realcli.known.model import Case, KnownError
from realcli.ledger.show import printable_json, visible
from realcli.storage import ObjectStore, StorageConfig
from realcli.storage.opening import open_store
from realcli.storage.paths import calibration, join
from realcli.storage.port import AlreadyStored
from realcli_cli.main import UserError
from realcli_cli.progress import Progress

EMULATED = "emulated:"
VOTES = 3
GULLIBLE = EMULATED + "gullible"
FAILED, MISSED = 1, 3
"""Exit codes: the gate is not passed; a recording is missing. 2 is an error."""
PLACEHOLDER = {"secretRef": {"name": "local", "key": "local"}}  # a model names a Secret; here the key comes from the environment


@dataclass(frozen=True)
class Asked:
    """A judge that is ready to be asked."""

    settings: Settings
    backend: Backend
    identity: JudgeIdentity
    purse: Purse
    pool: Pool = one_by_one
    emulated: str | None = None
    models: tuple[str, ...] = ()


def calibrate(
    judge: Annotated[str | None, typer.Option(help="emulated:oracle, …:noisy, …:lazy, or a model id.")] = None,
    sweep: Annotated[Path | None, typer.Option(help="A BenchmarkSweep: its spec.judge is calibrated.")] = None,
    api: Annotated[str | None, typer.Option(help="anthropic, chat or responses; with a model id.")] = None,
    url: Annotated[str | None, typer.Option(help="Base URL of the endpoint; of a sweep, another one to reach it by.")] = None,
    key_env: Annotated[str, typer.Option(help="Environment variable that holds the endpoint's key.")] = "REALCLI_KEY_JUDGE",
    votes: Annotated[int | None, typer.Option(min=1, max=9, help="Votes, 3 without it; a sweep says its own.")] = None,
    temperature: Annotated[str | None, typer.Option(help="Sampling temperature; a sweep says its own.")] = None,
    seed: Annotated[int, typer.Option(help="Of an emulated judge that draws.")] = 0,
    only: Annotated[str | None, typer.Option(help="Scenarios whose id begins with this: a first look, no gate.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Directory of recordings to answer from.")] = None,
    record: Annotated[Path | None, typer.Option(help="Empty directory to record into.")] = None,
    store: Annotated[str | None, typer.Option(help="Storage prefix (as a sweep's) the gate is kept in.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="S3 endpoint, where it is not AWS.", envvar="AWS_ENDPOINT_URL")] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
) -> None:
    """Run a judge over runs whose verdicts are known. Exit code 0: it passes the gate (or --only); 1: not; 3: no recording."""
    if output not in ("text", "json"):
        raise UserError(f"--output {output}: expected text or json")
    if (judge is None) == (sweep is None):
        raise UserError("name one of --judge (emulated:NAME or a model id) and --sweep (a file with spec.judge)")
    if replay is not None and record is not None:
        raise UserError("--replay and --record: name one of them")
    emulates = (judge or "").startswith(EMULATED)
    _none_idle(
        "an emulated judge answers by itself" if emulates else "the sweep says its own" if sweep is not None else None,
        {"--api": api, "--temperature": temperature, "--url": url if emulates else None, "--votes": None if emulates else votes,
         "--replay": replay if emulates else None, "--record": record if emulates else None},
    )  # fmt: skip
    cases = [case for case in known_cases() if case.template.startswith(only or "")]
    if not cases:
        raise UserError(f"--only {only}: no scenario begins with it; expected the beginning of an id such as u.plan")
    kept = None if store is None else _store(store, endpoint)
    if kept is not None and (only is not None or emulates):
        raise UserError("--store: only the gate of a model over the whole set is kept, for a report to read")
    if (judge or "").startswith(GULLIBLE):
        cases = [injected(case) for case in cases]  # else it would have nothing to obey
    with ExitStack() as closing:
        if judge is not None and judge.startswith(EMULATED):
            asked = _emulated(judge.removeprefix(EMULATED), votes or VOTES, seed, cases)
        else:
            spec, models = _spec(judge, sweep, api, url, votes or VOTES, temperature)
            asked = _model(spec, models, url, os.environ.get(key_env, ""), key_env, replay, record, kept, closing)
        gate = _ask(asked, cases)
    if kept is not None:
        _keep(*kept, gate)
    typer.echo(
        printable_json(gate.model_dump_json(by_alias=True, indent=2))
        if output == "json"
        else "\n".join(map(visible, _text(gate, asked.purse, whole=only is None)))
    )
    if only is None and not gate.passed:
        raise typer.Exit(FAILED)


def _none_idle(why: str | None, options: Mapping[str, object]) -> None:
    """UserError for an option that would be read by nobody."""
    idle = [name for name, given in options.items() if given is not None]
    if why is not None and idle:
        raise UserError(f"{', '.join(idle)}: {why}; leave it out")


def _ask(asked: Asked, cases: list[Case]) -> Gate:
    from realcli_judge.backends.recordings import ReplayMiss
    from realcli_judge.inputs import Refused

    try:
        records = judged(cases, asked.settings, asked.backend, asked.purse, Progress(asked.pool, asked.settings.votes))
    except ReplayMiss as error:
        typer.echo(visible(f"realcli: {error}"), err=True)
        raise typer.Exit(MISSED) from error
    except (BackendRefused, BackendUnavailable, Refused) as error:
        raise UserError(str(error)) from error
    return gate_of(cases, records, asked.identity, emulated=asked.emulated, models=asked.models)


def _emulated(name: str, votes: int, seed: int, cases: list[Case]) -> Asked:
    try:
        backend = emulated(name, seed).over(cases)
    except KnownError as error:
        raise UserError(f"--judge {EMULATED}{name}: {error}") from error
    spec = _judge({"model": EMULATED + name, "endpoints": _endpoints("chat", "http://127.0.0.1:9")}, votes)
    settings = Settings.of(spec)
    assert settings is not None  # it names a model and an endpoint
    return Asked(settings, backend, identity_of(spec), Purse(), emulated=name)


def _spec(
    model: str | None, sweep: Path | None, api: str | None, url: str | None, votes: int, temperature: str | None
) -> tuple[Judge, tuple[str, ...]]:  # fmt: skip
    """What is to be calibrated, and the models it is to judge."""
    if sweep is not None:
        found = _sweep(sweep)
        if found.spec.judge.model is None:
            raise UserError(f"{sweep}: spec.judge names no model: it judges by program alone, and there is nothing to calibrate")
        return found.spec.judge, tuple(one.model for one in found.spec.models)
    if api not in get_args(Api):
        given = "--api is missing" if api is None else f"--api {api} is no wire API"
        raise UserError(f"{given}; expected {', '.join(get_args(Api))} (chat: OpenAI-compatible)")
    if url is None:
        raise UserError("--url is missing: the base URL of the endpoint, without /v1 for anthropic and with it for the others")
    return _judge({"model": model, "endpoints": _endpoints(str(api), url), "temperature": temperature}, votes), ()


def _judge(model: Mapping[str, Any], votes: int) -> Judge:
    try:
        return Judge.model_validate({"model": {k: v for k, v in model.items() if v is not None}, "votes": votes})
    except ValidationError as error:
        raise UserError(first_fault(error)) from error


def _endpoints(api: str, url: str) -> dict[str, Any]:
    return {api: {"url": url, "apiKey": PLACEHOLDER}}


def _sweep(path: Path) -> BenchmarkSweep:
    try:
        found = [one for one in yaml.safe_load_all(path.read_bytes()) if one is not None]
        sweeps = [one for one in found if isinstance(one, dict) and one.get("kind") == "BenchmarkSweep"]
        if len(found) > 1 and len(sweeps) != 1:  # a file may hold what its sweep needs, too: a ConfigMap, say
            raise UserError(f"{path}: {len(sweeps)} of its {len(found)} documents are a BenchmarkSweep; expected one")
        return BenchmarkSweep.model_validate(sweeps[0] if sweeps else found[0] if found else None)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; expected a YAML file with a BenchmarkSweep") from error
    except ValidationError as error:
        raise UserError(f"{path} is no BenchmarkSweep: {first_fault(error)}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is no YAML: {' '.join(str(error).split())}") from error


def _model(
    spec: Judge, models: tuple[str, ...], url: str | None, key: str, key_env: str, replay: Path | None, record: Path | None,
    kept: tuple[ObjectStore, str] | None, closing: ExitStack,
) -> Asked:  # fmt: skip
    from realcli_judge.asking import in_threads
    from realcli_judge.backends.recordings import RecordBackend, ReplayBackend
    from realcli_judge.backends.stored import OneModelBackend, StoredBackend

    settings, found = Settings.of(spec), None if spec.model is None else spec.model.endpoint
    if settings is None or spec.model is None or found is None:
        raise UserError("spec.judge.model.endpoints: name one of chat, anthropic, responses")
    identity = identity_of(spec)
    pool: Pool = in_threads
    try:
        if replay is not None:
            backend: Backend = ReplayBackend(replay)
            pool = one_by_one
        else:
            backend = _live(found[0], url or found[1].url, key, key_env, closing)
            backend = RecordBackend(record, backend) if record is not None else backend
    except BackendRefused as error:
        raise UserError(str(error)) from error
    prices = spec.model.prices
    if kept is not None:  # what was answered once is not asked again
        store, prefix = kept
        place = calibration(prefix, digest8(identity.content_digest())).rsplit("/", 1)[0]
        backend = StoredBackend(store, lambda name: join(place, "exchanges", f"{name}.json"), backend, prices)
    else:
        backend = OneModelBackend(backend)
    try:
        purse = Purse.of(spec.budget, 1, prices)
    except ValueError as error:
        raise UserError(str(error)) from error
    return Asked(settings, backend, identity, purse, pool, models=models)


def _live(api: Api, url: str, key: str, key_env: str, closing: ExitStack) -> Backend:
    from realcli_judge.backends.anthropic_sdk import AnthropicBackend
    from realcli_judge.backends.openai_sdk import OpenAIBackend

    if not key:
        raise UserError(f"{key_env} is not set; put the endpoint's key there, or name another variable with --key-env")
    backend = AnthropicBackend(url, key) if api == "anthropic" else OpenAIBackend(url, key)
    closing.callback(backend.close)
    return backend


def _store(uri: str, endpoint: str | None) -> tuple[ObjectStore, str]:
    try:
        config, prefix = StorageConfig.of_uri(uri, endpoint)
        if config.directory is not None and Path(config.directory).exists() and not Path(config.directory).is_dir():
            raise ValueError("it is a file; expected a directory or s3://bucket/path")
        return open_store(config), prefix
    except ValueError as error:
        raise UserError(f"--store {uri}: {error}") from error


def _keep(store: ObjectStore, prefix: str, gate: Gate) -> None:
    key = calibration(prefix, digest8(gate.judge))
    try:
        store.put_once(key, gate.canonical())
    except AlreadyStored as error:
        before = kept_gate(store, prefix, gate.judge)
        if before is None:
            raise
        which = "another known-answer set" if before.known != gate.known else "the same set with other answers"
        raise UserError(
            f"{key} holds the gate of this judge over {which} ({before.told}); nothing is overwritten: remove it, or keep this "
            f"one below another prefix"
        ) from error
    typer.echo(f"kept: {key}", err=True)


def _text(gate: Gate, purse: Purse, *, whole: bool) -> list[str]:
    name = gate.identity.model if gate.emulated is None else f"emulated judge {gate.emulated}"
    lines = [f"{name}: {gate.cases} runs, judge {gate.judge}"]
    lines += [f"note: {one}; a judge is kinder to its own kin" for one in gate.related]
    lines += ["", f"{'verdicts no program settled':32}{'false failures':>26}{'violations missed':>26}{'unscored':>10}"]
    for one in gate.verdicts:
        lines.append(f"{one.name:32}{_share(one.false_failures):>26}{_share(one.misses):>26}{one.unscored:>10}")
    first = gate.answers[0]
    lines += ["", f"{'single answers, all checks':32}{_share(first.false_failures):>26}{_share(first.misses):>26}"]
    if gate.alpha is not None:
        lines.append(f"agreement of the votes (Krippendorff's alpha): {gate.alpha:.3f}")
    cost = purse.cost()
    if cost.requests:
        lines.append(f"{cost.requests} requests, {'cost unknown' if cost.cost_usd is None else cost.cost_usd + ' USD'}")
    wrong = gate.disagreements[:20]
    lines += ["", *(f"  {one.case} {one.check}: {one.verdict}, but {one.truth} is true" for one in wrong)]
    if not whole:
        return [*lines, "a part of the set is too little for the gate: run it without --only"]
    return [*lines, f"{'PASSES' if gate.passed else 'FAILS'} the gate: {gate.told}"]


def _share(found: Share) -> str:
    if found.low is None or found.high is None:
        return "-"
    return f"{found.hits}/{found.of} [{100 * found.low:.1f}, {100 * found.high:.1f}] %"
