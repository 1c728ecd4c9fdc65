"""`python -m realcli_session plan|work|verify|control`: the trusted programs of a sweep's pods (docs/design/001-contracts.md)."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Literal

from realcli.api.termination import MAX_TRIAL_BYTES, Result, Termination
from realcli.storage.port import StorageConfig
from realcli.wire.protocol import DEFAULT_SOCKET
from realcli_session.plan import job
from realcli_session.release import SocketUse
from realcli_session.settings import Settings
from realcli_session.termination import report, shorten


def main(argv: Sequence[str] | None = None) -> int:
    """0 if a termination message with a definite result was written, else 1."""
    args = _parser().parse_args(argv)
    try:
        settings = Settings.from_environment()
    except ValueError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    return asyncio.run(_run(args, settings))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    socket = SocketUse(getattr(args, "socket", ""))
    try:
        message = await _message(args, settings, socket)
    except Exception as error:
        traceback.print_exc()
        message, code = _bug(args.command, error), 1
    else:
        code = exit_code(message)
    try:
        report(message, settings.termination_log)
    except OSError as error:  # a node whose disk is full: the log is all that can be told, and the runner is let go all the same
        print(f"the result cannot be handed over: {error}; it is {message.encode(MAX_TRIAL_BYTES).decode()}", file=sys.stderr)
        code = 1
    if args.command != "plan":
        await socket.release(settings.release_seconds)
    return code


def exit_code(message: Termination) -> int:
    """0 where the message tells the end. One of a session that was told to end does not: the pod's status does, and of a pod
    whose containers all exit with 0 the kubelet forgets that (and why) it evicted it."""
    lost = message.phase == "Work" and message.reason == "SessionLost"
    return int(lost or message.result is Result.NO_VERDICT)


async def _message(args: argparse.Namespace, settings: Settings, socket: SocketUse) -> Termination:
    if args.command == "plan":
        return await asyncio.to_thread(job.run, os.environ)  # its test requests need an event loop of their own
    config = StorageConfig.from_environment()
    where = {"root": args.root, "lock_digest": args.lock_digest}
    if args.command == "work":
        from realcli_session.phases.session import run_work

        return await run_work(config, settings, socket, **where, ordinal=args.ordinal, attempt=args.attempt)
    if args.command == "control":
        from realcli_session.verify.control import run_control

        return await run_control(
            config, settings, socket, **where, ordinal=args.ordinal, attempt=args.attempt, control=args.control
        )
    from realcli_session.verify.session import run_verify

    numbers = {"ordinal": args.ordinal, "attempt": args.attempt, "verify": args.verify}
    return await run_verify(config, settings, socket, **where, **numbers, work_seal=args.work_seal)


def _bug(command: str, error: Exception) -> Termination:
    """What can be said when the program itself failed: nothing definite."""
    text = shorten(f"{type(error).__name__}: {error}")
    if command == "plan":
        return Termination(phase="Plan", result=Result.REFUSED, reason="ConfigurationError", message=text)
    if command == "work":
        return Termination(phase="Work", result=Result.WORK_INVALID, reason="SessionLost", message=text)
    phase: Literal["Verify", "Control"] = "Control" if command == "control" else "Verify"
    return Termination(phase=phase, result=Result.NO_VERDICT, reason="VerifierFault", message=text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="realcli_session", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("plan", help="check everything, write the lock, print the frozen plan (REALCLI_SWEEP)")
    programs = {
        "work": "run one attempt and seal it",
        "verify": "judge a sealed state by the task's tests",
        "control": "judge the task's reference solution by its tests",
    }
    for name, what in programs.items():
        command = commands.add_parser(name, help=what)
        command.add_argument("--root", required=True, help="the sweep's root key in storage")
        command.add_argument("--lock-digest", required=True, help="digest of sweep.json")
        command.add_argument("--ordinal", required=True, type=int)
        command.add_argument("--attempt", required=True, type=int)
        command.add_argument("--socket", default=DEFAULT_SOCKET, help="where the runner connects")
        if name == "verify":
            command.add_argument("--verify", required=True, type=int, help="number of this verify, from 1")
            command.add_argument("--work-seal", help="digest of the work seal the operator has anchored")
        if name == "control":
            command.add_argument("--control", required=True, type=int, help="number of this control, from 1")
    return parser


if __name__ == "__main__":
    sys.exit(main())
