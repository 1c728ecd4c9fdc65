"""One attempt written and sealed by the session's own code (writer, uploader, `phases.seal`), with nothing running in it."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

from realcli.api.base import sha256_digest
from realcli.ledger.events import (
    ZERO_HASH,
    AgentMessage,
    AgentStart,
    EpisodeStart,
    FileWrite,
    LedgerOpen,
    ModelReply,
    ModelRequest,
    PhaseChange,
    RunData,
    Snapshot,
    StateStored,
    ToolCall,
    ToolResult,
    UserMessage,
    Yield,
)
from realcli.ledger.redaction import Redactor
from realcli.ledger.seals import SealedObject, Verdict, VerifySeal
from realcli.ledger.uploader import Uploader
from realcli.ledger.writer import LedgerWriter
from realcli.storage import ObjectStore
from realcli_session.inputs import trial_of
from realcli_session.phases.attempt import Attempt
from realcli_session.phases.seal import seal
from realcli_session.phases.setup import make_run
from realcli_session.phases.storage import tell_outages
from realcli_session.phases.table import Cause, Progress, Stage, advance
from realcli_session.phases.working import WorkingClock
from realcli_session.settings import Settings
from tests.support.sealed_sweep import DIGEST, _lock, archive_of

ROOT = "p/sweeps/audits/first-0f6a2b1c"


class Gateway:
    """What the seal asks a gateway for."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    @property
    def turns(self) -> int:
        return self._attempt.writer.turn

    def __getattr__(self, name: str) -> Any:
        from realcli.api.trial import Tokens

        return {"tokens": Tokens(input=120, output=30), "cost_usd": None, "throttled": None, "refused_by_model": False}[name]

    async def stop(self) -> None:
        pass


def make_attempt(
    folder: Path, store: ObjectStore, ordinal: int = 1, attempt: int = 1, *, hold: str = "24h", secrets: list[str] | None = None,
    segment_bytes: int = 4096, stall: float = 30.0, interval: float = 30.0, max_waiting: int = 1 << 30,
) -> Attempt:  # fmt: skip
    """An attempt with an empty spool in `folder`."""
    lock = _lock(DIGEST, ["claude-code.sonnet"])
    limits = lock.spec.limits.model_copy(update={"spool_hold": hold})
    lock = lock.model_copy(update={"spec": lock.spec.model_copy(update={"limits": limits})})
    trial = trial_of(lock, ROOT, DIGEST, ordinal, attempt)
    writer = LedgerWriter(folder, secrets=secrets or [], segment_bytes=segment_bytes)
    uploader = Uploader(writer, store, trial.paths.root, stall=stall, interval=interval, max_waiting=max_waiting)
    settings = Settings.from_environment({"REALCLI_SPOOL": str(folder)})
    made = Attempt(trial, settings, writer, uploader, make_run(), Redactor(secrets or []), WorkingClock(lambda: 0.0))
    made.gateway = Gateway(made)  # type: ignore[assignment]
    tell_outages(made)
    return made


def open_ledger(attempt: Attempt) -> None:
    """The first event, once."""
    if not attempt.writer.events:
        opened = {key: value for key, value in attempt.trial.identity.model_dump().items() if key != "namespace"}
        attempt.writer.emit("session", LedgerOpen(**opened, session_version="0.1.0"))


def tell(attempt: Attempt, rng: random.Random, turns: int = 12) -> None:
    """Events of a whole trial, up to the seal, with blobs, snapshots and a state."""
    emit, writer = attempt.writer.emit, attempt.writer
    open_ledger(attempt)
    emit("session", PhaseChange(phase="setup"))
    emit("session", RunData(digest=sha256_digest(attempt.run.canonical())))
    emit("session", AgentStart(program="claude-code", version="2.1.140", argv=["claude"]))
    _snapshot(attempt, "s0", b"# Plan\n")
    emit("session", PhaseChange(phase="work"))
    writer.exchange = 1
    emit("session", EpisodeStart())
    emit("user", UserMessage(id="m1", text="The whole specification.", source_ids=["spec"]))
    messages = [writer.blob(b'{"role":"user","content":"The whole specification."}')]
    for turn in range(1, turns + 1):
        writer.turn = turn
        words = " ".join(rng.choice(["alpha", "beta", "gamma", "delta"]) for _ in range(rng.randint(3, 30)))
        emit("gateway", ModelRequest(
            request_id=f"r{turn}", dialect="anthropic", path="/v1/messages", body_sha256=ZERO_HASH, body_bytes=turn,
            model_asked="claude-sonnet-4-5", counted=True, system=[writer.blob(b'"Be good."')], messages=list(messages),
        ))  # fmt: skip
        emit("gateway", ModelReply(request_id=f"r{turn}", status=200, body=writer.blob(f"reply {turn} {words}".encode())))
        emit("agent", ToolCall(call_id=f"c{turn}", name="Bash", input={"command": f"echo {words}"}))
        long = "output\n" * 12_000 if turn == turns // 2 else words
        emit("gateway", ToolResult(call_id=f"c{turn}", text=writer.text(long)))
        emit("runner", FileWrite(path="/app/plan.md", after_turn=turn, before_turn=turn + 1, created=turn == 1))
        messages += [
            writer.blob(f'{{"role":"assistant","turn":{turn}}}'.encode()),
            writer.blob(f'{{"role":"user","turn":{turn}}}'.encode()),
        ]
    emit("agent", AgentMessage(text="Done."))
    emit("agent", Yield(how="yielded"))
    attempt.progress = advance(Progress(Stage.WORK), Cause.COMPLETED)
    emit("session", PhaseChange(phase="quiesce"))
    _snapshot(attempt, "final", b"# Plan\n- all\n")
    _state(attempt)
    attempt.progress = advance(attempt.progress, Cause.QUIESCED)


async def finish(attempt: Attempt, store: ObjectStore, verify: bool = True) -> str | None:
    """Seal, and a verdict beside it; the digest of the work seal."""
    happened, digest = await seal(attempt)
    attempt.progress = advance(attempt.progress, *happened)
    if digest is None or not verify:
        return digest
    paths = attempt.trial.paths.verify(1)
    verdict = Verdict(reward="1", exit_code=0, seconds="2.000").canonical()
    made = VerifySeal(
        trial=attempt.trial.identity, verify=1, work_seal=digest, work_reason="Completed", reason="Completed", reward="1",
        verifier_version="realcli/0.1.0", image="demo:1",
        objects=[_sealed("logs.txt", b"ok\n"), _sealed("verdict.json", verdict)],
    ).seal()  # fmt: skip
    store.put_once(paths.verdict, verdict)
    store.put_once(paths.logs, b"ok\n")
    store.put_once(paths.seal, made)
    return digest


def _sealed(path: str, data: bytes) -> SealedObject:
    return SealedObject(path=path, sha256=hashlib.sha256(data).hexdigest(), size=len(data))


def _snapshot(attempt: Attempt, name: Any, content: bytes) -> None:
    data = archive_of({"/app/plan.md": content})
    path = attempt.settings.spool / "snapshots" / f"{len(attempt.files)}.tar.zst"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    event = attempt.writer.emit("runner", Snapshot(name=name, sha256=hashlib.sha256(data).hexdigest(), size=len(data)))
    attempt.files.append((f"snapshots/{event.seq}.tar.zst", path))


def _state(attempt: Attempt) -> None:
    data = archive_of({"/app/plan.md": b"# Plan\n- all\n"})
    path = attempt.settings.spool / "state.tar.zst"
    path.write_bytes(data)
    attempt.state = sha256_digest(data)
    attempt.files.append(("state.tar.zst", path))
    attempt.writer.emit("session", StateStored(digest=attempt.state, size=len(data), files=1))
