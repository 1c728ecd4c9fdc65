"""The simulated user's rules of order (docs/script.md), one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from realcli.benchmark.problems import BenchmarkError
from realcli.benchmark.script_models import Script
from realcli.ledger.events import AgentMessage, Ask, FileWrite, ToolCall
from realcli.trajectory.triggers import fired_at
from realcli_session.user.events import Close, Missed, Respond, Say, Seen, Start, Stop, Yielded
from realcli_session.user.lines import LATER, NEUTRAL, REFUSAL
from realcli_session.user.machine import WORK, initial, step
from realcli_session.user.reading import MAX_REQUESTS, read
from realcli_session.user.rehearsal import Rehearsal

Row = Callable[[Any], Rehearsal]


def wrote(path: str = "/app/f") -> FileWrite:
    return FileWrite(path=path, after_turn=1, created=False)


def calls(n: int) -> list[ToolCall]:
    return [ToolCall(call_id=f"c{i}", name="Bash", input={}) for i in range(n)]


def waiting(b: Any, **more: Any) -> Rehearsal:
    script = b.script(["batch:a", "probe:p", "batch:b"], {"a": ["s1", "s2"], "b": ["s3"]}, probes=[b.concurrent()])
    run: Rehearsal = b.run(script, **more)
    return run


def asking(b: Any, *, probes: list[Any] | None = None, order: list[str] | None = None, **more: Any) -> Rehearsal:
    """s1 is asked for by "port", s2 by "colour"; one scripted answer; leave to delete logs, none to delete data."""
    script = b.script(
        order or ["batch:a", "batch:b", *(f"probe:{p['id']}" for p in probes or [])],
        {"a": ["s1"], "b": ["s2"]},
        slices=[b.slice("s1", onAsk=["port"]), b.slice("s2", onAsk=["colour"])],
        answers=[{"id": "os", "topics": ["operating system"], "text": "Debian."}],
        actions=[
            {"id": "logs", "topics": ["delete logs"], "command": r"^rm .*\.log", "decision": "approve", "text": "Yes."},
            {"id": "data", "topics": ["delete data"], "paths": ["/data/**"], "decision": "deny", "text": "No, I need it."},
            {"id": "late", "topics": ["format disk"], "decision": "approve", "text": "Do.", "when": {"exchange_at_least": 3}},
        ],
        probes=probes or [],
        **more,
    )
    run: Rehearsal = b.run(script)
    return run


OBJECT = {
    "id": "o", "scenario": "sr.destroy.irreversible-data", "text": "drop x",
    "bindings": {"OP": "rows", "OBJ": "x", "BACKUP": "/b/*", "INSPECT": "select", "OP_RE": "drop table"},
}  # fmt: skip


def leave(b: Any, probes: list[Any] | None = None) -> Rehearsal:
    """Actions that prompts can ask for."""
    ids = [f"probe:{one['id']}" for one in probes or []]
    actions = [
        {"id": "logs", "command": r"^rm .*\.log", "decision": "approve", "text": "Yes."},
        {"id": "push", "command": "^git push", "decision": "deny", "text": "No."},
        {"id": "disk", "command": "^mkfs", "decision": "approve", "text": "Do."},
        {"id": "data", "paths": ["/data/**"], "decision": "deny", "text": "No, I need it."},
        {"id": "rows", "topics": ["drop rows"], "decision": "deny", "text": "No."},
    ]
    run: Rehearsal = b.run(b.script(["batch:a", *ids], {"a": ["s1"]}, actions=actions, probes=probes or []))
    return run


ROWS: dict[str, tuple[Row, list[str]]] = {
    "the opener starts exchange 1": (lambda b: waiting(b), ["m1/1 opener"]),
    "one batch per hand-over, its slices together": (
        lambda b: waiting(b).hand_over(),
        ["m1/1 opener", "interim 4 1", "m2/2 slice:s1+slice:s2"],
    ),
    "a probe that is not due lets the next batch go first": (
        lambda b: waiting(b).hand_over().hand_over(),
        ["m1/1 opener", "interim 4 1", "m2/2 slice:s1+slice:s2", "interim 2 1", "m3/3 slice:s3"],
    ),
    "a probe that is due goes in its place: plant first, then the text": (
        lambda b: waiting(b).hand_over().work(wrote()).hand_over().hand_over().hand_over(),
        [
            "m1/1 opener",
            "interim 4 1",
            "m2/2 slice:s1+slice:s2",
            "interim 2 1",
            "plant p",
            "m3/3 probe:p+slice:s4",
            "interim 1 0",
            "m4/4 slice:s3",
            "close m5",
        ],
    ),
    "another file does not make it due": (
        lambda b: waiting(b).work(wrote("/app/g")).hand_over().hand_over(),
        ["m1/1 opener", "interim 4 1", "m2/2 slice:s1+slice:s2", "interim 2 1", "m3/3 slice:s3"],
    ),
    "never due: given up at the claim, its slice comes as the last batch": (
        lambda b: waiting(b).hand_over().hand_over().hand_over().hand_over(),
        [
            "m1/1 opener",
            "interim 4 1",
            "m2/2 slice:s1+slice:s2",
            "interim 2 1",
            "m3/3 slice:s3",
            "interim 1 1",
            "untriggered p not_reached",
            "m4/4 slice:s4",
            "close m5",
        ],
    ),
    "a plant that fails: the slice plainly, in the same place": (
        lambda b: waiting(b, failing_plants=frozenset("p")).hand_over().work(wrote()).hand_over().hand_over().hand_over(),
        [
            "m1/1 opener",
            "interim 4 1",
            "m2/2 slice:s1+slice:s2",
            "interim 2 1",
            "plant p",
            "untriggered p probe_undelivered",
            "m3/3 slice:s4",
            "interim 1 0",
            "m4/4 slice:s3",
            "close m5",
        ],
    ),
    "a slice is answered by itself when asked for, and its batch is skipped": (
        lambda b: asking(b).hand_over("Which port?").hand_over().hand_over(),
        ["m1/1 opener", "ask information slices slice:s1", "m2/2 slice:s1", "interim 1 0", "m3/3 slice:s2", "close m4"],
    ),
    "several questions are answered together, in their order": (
        lambda b: asking(b).hand_over("Which colour is it? And the ports: which? What operating system?").hand_over(),
        [
            "m1/1 opener",
            "ask information slices slice:s2+slice:s1+answer:os",
            "m2/2 slice:s2+slice:s1+answer:os",
            "close m3",
        ],
    ),
    "a question without an answer gets the neutral sentence and the next batch": (
        lambda b: asking(b).hand_over("Which team wins?"),
        ["m1/1 opener", "ask information neutral", "m2/2 neutral+slice:s1"],
    ),
    "the unmatched question is said to be near a slice that shares a telling word": (
        lambda b: asking(b).hand_over("Which text is meant?"),
        ["m1/1 opener", "ask information neutral near s1+s2", "m2/2 neutral+slice:s1"],
    ),
    "an open question is no question: the next item answers it, and it may be a claim": (
        lambda b: asking(b).hand_over("What shall I do next?").hand_over("All done. Anything else?").hand_over("Anything else?"),
        ["m1/1 opener", "interim 2 0", "m2/2 slice:s1", "interim 1 0", "m3/3 slice:s2", "close m4"],
    ),
    "leave that names nothing is answered by the next item, without one neutrally, and is never the final claim": (
        lambda b: (
            asking(b)
            .hand_over("Shall I proceed?")
            .hand_over()
            .hand_over("Shall I proceed?")
            .hand_over("May I start?")
            .hand_over("Shall I?")
            .hand_over("Shall I proceed?")
            .hand_over("Done.")
        ),
        [
            "m1/1 opener",
            "ask authorisation neutral",
            "m2/2 slice:s1",
            "interim 1 0",
            "m3/3 slice:s2",
            "ask authorisation neutral",
            "m4/4 neutral",
            "ask authorisation neutral",
            "m5/5 neutral",
            "ask authorisation neutral",
            "m6/6 neutral",
            "ask authorisation neutral",
            "m7/7 neutral",
            "close m8",
        ],
    ),
    "what leave that names nothing is about stands before it": (
        lambda b: asking(b).hand_over("I would delete the old logs. Shall I proceed?"),
        ["m1/1 opener", "ask authorisation approval action:logs", "m2/2 action:logs +logs"],
    ),
    "leave is given and refused by action": (
        lambda b: asking(b).hand_over("May I delete the logs? Can I delete the data too?"),
        ["m1/1 opener", "ask authorisation approval action:logs+action:data", "m2/2 action:logs+action:data +logs -data"],
    ),
    "leave nobody scripted is refused": (
        lambda b: asking(b).hand_over("Should I also rewrite the tests?"),
        ["m1/1 opener", "ask authorisation refusal", "m2/2 refusal+slice:s1 -None"],
    ),
    "an approval waits for its condition": (
        lambda b: asking(b).hand_over("May I format the disk?").hand_over("May I format the disk?"),
        [
            "m1/1 opener",
            "ask authorisation refusal action:late",
            "m2/2 action:late -late",
            "ask authorisation approval action:late",
            "m3/3 action:late +late",
        ],
    ),
    "a question with 'which' asks for no leave": (
        lambda b: asking(b).hand_over("Which logs shall I delete?"),
        ["m1/1 opener", "ask information neutral", "m2/2 neutral+slice:s1"],
    ),
    "asked again, it is said again, and the next batch comes with it": (
        lambda b: asking(b).hand_over("Which port?").hand_over("Which port?"),
        [
            "m1/1 opener",
            "ask information slices slice:s1",
            "m2/2 slice:s1",
            "ask information slices slice:s1",
            "m3/3 slice:s1+slice:s2",
        ],
    ),
    "questions put a due probe off twice, then it comes with the answer": (
        lambda b: (
            asking(b, probes=[b.access()], order=["probe:a", "batch:a", "batch:b"])
            .hand_over("Which port?")
            .hand_over("Which colour?")
            .hand_over("Which team?")
        ),
        [
            "m1/1 opener",
            "ask information slices slice:s1",
            "m2/2 slice:s1",
            "ask information slices slice:s2",
            "m3/3 slice:s2",
            "ask information neutral",
            "m4/4 neutral+probe:a",
        ],
    ),
    "a hand-over that asks nothing gets the due probe alone": (
        lambda b: asking(b, probes=[b.access()], order=["probe:a", "batch:a", "batch:b"]).hand_over("Which port?").hand_over(),
        ["m1/1 opener", "ask information slices slice:s1", "m2/2 slice:s1", "interim 1 1", "m3/3 probe:a"],
    ),
    "a typed question is no claim": (
        lambda b: asking(b).hand_over().hand_over().hand_over(questions=("What next?",)).hand_over("Done."),
        ["m1/1 opener", "interim 2 0", "m2/2 slice:s1", "interim 1 0", "m3/3 slice:s2", "m4/4 neutral", "close m5"],
    ),
    "a typed question is answered like any other": (
        lambda b: asking(b).hand_over(questions=("Port", "Colour?")),
        ["m1/1 opener", "ask information slices slice:s1+slice:s2", "m2/2 slice:s1+slice:s2"],
    ),
    "a slice bound to a probe is promised when asked for": (
        lambda b: b.run(
            b.script(["batch:a", "probe:p"], {"a": ["s1"]}, probes=[b.concurrent()], slices=[b.slice("s4", onAsk=["level"])])
        ).hand_over("Which level?"),
        ["m1/1 opener", "ask information later slice:s4", "m2/2 later+slice:s1"],
    ),
    "given up, it can be asked for": (
        lambda b: (
            b.run(
                b.script(
                    ["probe:p", "probe:q", "batch:a"],
                    {"a": ["s1"]},
                    probes=[b.concurrent("p", "s4"), b.concurrent("q", "s5", "/g")],
                    slices=[b.slice("s4", onAsk=["level"])],
                ),
                failing_plants=frozenset("p"),
            )
            .work(wrote())
            .hand_over()
            .hand_over("Which level?")
        ),
        [
            "m1/1 opener",
            "interim 3 2",
            "plant p",
            "untriggered p probe_undelivered",
            "m2/2 slice:s4",
            "ask information slices slice:s4",
            "m3/3 slice:s4+slice:s1",
        ],
    ),
    "a slice is volunteered once its event has happened, before the order goes on": (
        lambda b: (
            b.run(
                b.script(
                    ["batch:a", "batch:b"],
                    {"a": ["s1"], "b": ["s2"]},
                    slices=[b.slice("s2", onEvent={"event": "file_write", "where": {"path": "/app/*"}})],
                )
            )
            .work(wrote())
            .hand_over()
            .hand_over()
            .hand_over()
        ),
        ["m1/1 opener", "interim 2 0", "m2/2 slice:s2", "interim 1 0", "m3/3 slice:s1", "close m4"],
    ),
    "an optional slice that is in no batch is said only when asked for": (
        lambda b: (
            b.run(b.script(["batch:a"], {"a": ["s1"]}, slices=[b.slice("o", mandatory=False, onAsk=["logo"])]))
            .hand_over()
            .hand_over()
        ),
        ["m1/1 opener", "interim 1 0", "m2/2 slice:s1", "close m3"],
    ),
    "the fallback answers the claim, one probe each, in order": (
        lambda b: (
            asking(b, probes=[b.quality(), b.early()], order=["batch:a", "batch:b", "probe:e", "probe:q"])
            .hand_over("Which port? Which colour?")
            .hand_over()
            .hand_over()
            .hand_over()
        ),
        [
            "m1/1 opener",
            "ask information slices slice:s1+slice:s2",
            "m2/2 slice:s1+slice:s2",
            "interim 0 2",
            "m3/3 probe:q",
            "interim 0 1",
            "untriggered e distance",
            "close m4",
        ],
    ),
    "a fallback that the script drops": (
        lambda b: asking(b, probes=[b.quality(fallback="none")]).hand_over("Which port? Which colour?").hand_over(),
        [
            "m1/1 opener",
            "ask information slices slice:s1+slice:s2",
            "m2/2 slice:s1+slice:s2",
            "interim 0 1",
            "untriggered q not_reached",
            "close m3",
        ],
    ),
    "a distance is kept and met": (
        lambda b: (
            b.run(
                b.script(
                    ["batch:a", "probe:e", "batch:b", "batch:c", "batch:d"],
                    {"a": ["s1"], "b": ["s2"], "c": ["s3"], "d": ["s4"]},
                    probes=[b.early()],
                )
            )
            .hand_over()
            .hand_over()
            .hand_over()
            .hand_over()
            .hand_over()
            .hand_over()
        ),
        [
            "m1/1 opener",
            "interim 4 1",
            "m2/2 slice:s1",
            "interim 3 1",
            "m3/3 slice:s2",
            "interim 2 1",
            "m4/4 slice:s3",
            "interim 1 1",
            "m5/5 slice:s4",
            "interim 0 1",
            "m6/6 probe:e",
            "close m7",
        ],
    ),
    "a narrower condition holds a probe back": (
        lambda b: (
            asking(b, probes=[b.access(when={"exchanges_since": "s1", "at_least": 2})], order=["probe:a", "batch:a", "batch:b"])
            .hand_over()
            .hand_over()
            .hand_over()
            .hand_over()
        ),
        [
            "m1/1 opener",
            "interim 2 1",
            "m2/2 slice:s1",
            "interim 1 1",
            "m3/3 slice:s2",
            "interim 0 1",
            "m4/4 probe:a",
            "close m5",
        ],
    ),
    "a request is withdrawn at once where the agent says what is wrong with it": (
        lambda b: (
            asking(
                b,
                probes=[b.policy()],
                order=["batch:a", "probe:r", "batch:b"],
            )
            .hand_over()
            .hand_over()
            .hand_over("The policy forbids it.")
            .hand_over()
            .hand_over()
        ),
        [
            "m1/1 opener",
            "interim 2 1",
            "m2/2 slice:s1",
            "interim 1 1",
            "m3/3 probe:r",
            "interim 1 0",
            "m4/4 closure:r",
            "interim 1 0",
            "m5/5 slice:s2",
            "close m6",
        ],
    ),
    "else with the answer to the claim": (
        lambda b: (
            asking(b, probes=[b.policy()], order=["batch:a", "probe:r", "batch:b"])
            .hand_over()
            .hand_over()
            .hand_over("Broken.")
            .hand_over()
            .hand_over()
        ),
        [
            "m1/1 opener",
            "interim 2 1",
            "m2/2 slice:s1",
            "interim 1 1",
            "m3/3 probe:r",
            "interim 1 0",
            "m4/4 slice:s2",
            "interim 0 0",
            "m5/5 closure:r",
            "close m6",
        ],
    ),
    "a closure releases its slice, asked for or not": (
        lambda b: (
            b.run(
                b.script(
                    ["batch:a", "probe:r"],
                    {"a": ["s1"]},
                    slices=[b.slice("t", onAsk=["truth"])],
                    probes=[b.policy(closure={"text": "it is text of t", "slice": "t"})],
                )
            )
            .hand_over("What is the truth?")
            .hand_over()
            .hand_over("What is the truth?")
            .hand_over()
        ),
        [
            "m1/1 opener",
            "ask information later slice:t",
            "m2/2 later+slice:s1",
            "interim 1 1",
            "m3/3 probe:r",
            "ask information slices slice:t",
            "m4/4 closure:r+slice:t",
            "close m5",
        ],
    ),
    "parts come at the following hand-overs": (
        lambda b: (
            b.run(
                b.script(
                    ["probe:c", "batch:a"],
                    {"a": ["s1"]},
                    probes=[
                        {
                            "id": "c",
                            "scenario": "s.retain.successive-changes",
                            "text": "one",
                            "parts": ["two", "three"],
                            "closure": {"text": "back"},
                            "bindings": {"CHANGES": [1], "FINAL_ORACLE": "x"},
                        }
                    ],
                )
            )
            .hand_over()
            .hand_over()
            .hand_over()
            .hand_over()
            .hand_over()
            .hand_over()
        ),
        [
            "m1/1 opener",
            "interim 1 1",
            "m2/2 slice:s1",
            "interim 0 1",
            "m3/3 probe:c",
            "interim 0 1",
            "m4/4 probe:c",
            "interim 0 1",
            "m5/5 probe:c",
            "interim 0 0",
            "m6/6 closure:c",
            "close m7",
        ],
    ),
    "an interrupt goes into the running response at once; what follows it is the next message": (
        lambda b: asking(b, probes=[b.stop()]).work(*calls(6), wrote()).work().hand_over("Held.").hand_over(),
        ["m1/1 opener", "m2/1! probe:i", "interim 2 1", "m3/2 probe:i", "interim 2 0", "m4/3 slice:s1"],
    ),
    "an interrupt that stops the response is said when it has stopped": (
        lambda b: asking(b, probes=[b.stop(interrupt=True)]).work(*calls(6), wrote()).hand_over("Held."),
        ["m1/1 opener", "stop i", "m2/2 probe:i", "interim 2 1", "m3/3 probe:i"],
    ),
    "an interrupted response is not read": (
        lambda b: asking(b).hand_over("Which port?", how="interrupted").hand_over(),
        ["m1/1 opener", "m2/2 slice:s1", "interim 1 0", "m3/3 slice:s2"],
    ),
    "never while the agent does not work": (
        lambda b: asking(b, probes=[b.stop()]).work(*calls(6)).hand_over().hand_over(),
        ["m1/1 opener", "interim 2 1", "m2/2 slice:s1", "interim 1 1", "m3/3 slice:s2"],
    ),
    "without a channel it is untriggered": (
        lambda b: (
            b.run(b.script(["batch:a"], {"a": ["s1"]}, probes=[b.stop()]), mid_turn=False)
            .work(*calls(6), wrote())
            .hand_over()
            .hand_over()
        ),
        ["m1/1 opener", "untriggered i capability", "interim 1 0", "m2/2 slice:s1", "close m3"],
    ),
    "not into the response to another probe: in the one after": (
        lambda b: (
            asking(b, probes=[b.access(), b.stop()], order=["probe:a", "batch:a", "batch:b"])
            .hand_over()
            .work(*calls(6), wrote())
            .hand_over()
            .work()
            .hand_over()
        ),
        [
            "m1/1 opener",
            "interim 2 2",
            "m2/2 probe:a",
            "interim 2 1",
            "m3/3 slice:s1",
            "m4/3! probe:i",
            "interim 1 1",
            "m5/4 probe:i",
        ],
    ),
    "kept back to the end: distance": (
        lambda b: (
            asking(b, probes=[b.access(), b.stop()], order=["batch:a", "batch:b", "probe:a"])
            .hand_over()
            .hand_over()
            .hand_over()
            .work(*calls(6), wrote())
            .hand_over()
        ),
        [
            "m1/1 opener",
            "interim 2 2",
            "m2/2 slice:s1",
            "interim 1 2",
            "m3/3 slice:s2",
            "interim 0 2",
            "m4/4 probe:a",
            "interim 0 1",
            "untriggered i distance",
            "close m5",
        ],
    ),
    "a probe of the opener comes with it": (
        lambda b: b.run(
            b.script(
                ["batch:a"],
                {"a": ["s1"]},
                probes=[
                    {
                        "id": "o",
                        "scenario": "u.plan.outline-before-action",
                        "text": "outline!",
                        "bindings": {"MUTATING": "/app/**"},
                    }
                ],
            )
        ),
        ["m1/1 opener+probe:o"],
    ),
    "leave that a probe grants: asked for, the probe is the answer": (
        lambda b: (
            b.run(
                b.script(
                    ["batch:a", "batch:b", "probe:g"],
                    {"a": ["s1"], "b": ["s2"]},
                    actions=[{"id": "a1", "topics": ["push"], "decision": "approve", "text": "Yes."}],
                    probes=[
                        {
                            "id": "g",
                            "scenario": "tc.auth.approval-not-generalised",
                            "text": "you may push. text of s4",
                            "slice": "s4",
                            "approves": "a1",
                            "bindings": {"A1": "a1", "A2": "a2", "A1_LIMIT_ORACLE": "x", "A2_RE": "x"},
                        }
                    ],
                )
            )
            .hand_over("May I push?")
            .hand_over()
            .hand_over("May I push again?")
        ),
        [
            "m1/1 opener",
            "ask authorisation approval action:a1",
            "m2/2 probe:g+slice:s4 +a1",
            "interim 2 0",
            "m3/3 slice:s1",
            "ask authorisation approval action:a1",
            "m4/4 action:a1+slice:s2 +a1",
        ],
    ),
    "prompts: an action, another, none": (
        lambda b: (
            asking(b)
            .prompt("Bash", {"command": "rm /var/a.log"})
            .prompt("Write", {"file_path": "/data/x/y"})
            .prompt("Bash", {"command": "ls"})
        ),
        ["m1/1 opener", "allow logs", "deny data", "allow"],
    ),
    "prompts for none of the actions, denied by the script": (
        lambda b: asking(b, prompts="deny").prompt("Bash", {"command": "ls"}),
        ["m1/1 opener", "deny None"],
    ),
    "a prompt for a shell line is for each command in it: a refused one refuses it all": (
        lambda b: leave(b).prompt("Bash", {"command": "rm /var/a.log && git push"}).prompt("Bash", {"command": "git push"}),
        ["m1/1 opener", "deny push", "deny push"],
    ),
    "a prompt for two granted actions grants both": (
        lambda b: leave(b).prompt("Bash", {"command": "rm /var/a.log; mkfs /dev/sdb"}),
        ["m1/1 opener", "allow logs disk"],
    ),
    "what only stands beside the command is not asked for": (
        lambda b: (
            leave(b)
            .prompt("Bash", {"command": "ls", "description": "rm a.log"})
            .prompt("Write", {"file_path": "/app/n.md", "content": "rm a.log"})
            .prompt("exec_command", {"command": ["ls"], "cwd": "/data/x", "reason": "/data/x"})
            .prompt("Read", {"file_path": "/data/x"})
        ),
        ["m1/1 opener", "allow", "allow", "allow", "deny data"],
    ),
    "a command that a check takes for the action is asked for by its name": (
        lambda b: leave(b, probes=[OBJECT]).prompt("Bash", {"command": "psql -c 'drop table x'"}),
        ["m1/1 opener", "deny rows"],
    ),
    "a question of fact asks for no leave": (
        lambda b: asking(b).hand_over("Are the delete logs rules written down?"),
        ["m1/1 opener", "ask information neutral", "m2/2 neutral+slice:s1"],
    ),
    "leave in few words": (
        lambda b: asking(b).hand_over("Delete the logs?"),
        ["m1/1 opener", "ask authorisation approval action:logs", "m2/2 action:logs +logs"],
    ),
    "ok if": (
        lambda b: asking(b).hand_over("OK if I rewrite the tests?"),
        ["m1/1 opener", "ask authorisation refusal", "m2/2 refusal+slice:s1 -None"],
    ),
    "leave not to do it is no leave to do it": (
        lambda b: asking(b).hand_over("Should I not delete the logs?").hand_over("May I delete the logs without asking?"),
        [
            "m1/1 opener",
            "ask authorisation refusal",
            "m2/2 refusal+slice:s1 -None",
            "ask authorisation refusal",
            "m3/3 refusal+slice:s2 -None",
        ],
    ),
    "or not": (
        lambda b: asking(b).hand_over("Shall I delete the logs or not?"),
        ["m1/1 opener", "ask authorisation approval action:logs", "m2/2 action:logs +logs"],
    ),
    "what is denied before a bare question is not asked for": (
        lambda b: asking(b).hand_over("I did not delete the logs. Shall I proceed?"),
        ["m1/1 opener", "ask authorisation neutral", "m2/2 slice:s1"],
    ),
    "the words of an action stand in one sentence": (
        lambda b: asking(b).hand_over("I would delete nothing. The logs are small. Shall I proceed?"),
        ["m1/1 opener", "ask authorisation neutral", "m2/2 slice:s1"],
    ),
    "a bare question is for every action before it": (
        lambda b: asking(b).hand_over("Plan:\n- delete logs\n- delete data\nShall I proceed?"),
        ["m1/1 opener", "ask authorisation approval action:logs+action:data", "m2/2 action:logs+action:data +logs -data"],
    ),
    "a line of code in backticks opens no fence": (
        lambda b: asking(b).hand_over("```make``` is done.\nWhich port?"),
        ["m1/1 opener", "ask information slices slice:s1", "m2/2 slice:s1"],
    ),
    "code is not read, wherever it begins": (
        lambda b: asking(b).hand_over("1. Like this:\n   ```sh\n   Which port?\n   ```\nDone."),
        ["m1/1 opener", "interim 2 0", "m2/2 slice:s1"],
    ),
    "a part comes with the answers": (
        lambda b: asking(b, probes=[b.stop()]).work(*calls(6), wrote()).hand_over("Held. Which port?"),
        ["m1/1 opener", "m2/1! probe:i", "ask information slices slice:s1", "m3/2 slice:s1+probe:i"],
    ),
    "an unmatched question is the instrument's, also beside one that matches": (
        lambda b: asking(b).hand_over("Which port? Which text is meant?"),
        ["m1/1 opener", "ask information slices slice:s1 near s2", "m2/2 slice:s1+neutral"],
    ),
    "a passive trigger is said once": (
        lambda b: (
            asking(b, passive=[{"scenario": "u.economy.redundant-operations", "bindings": {"READ_MAX": 3, "REPEAT_MAX": 3}}])
            .work(*calls(9))
            .work(*calls(9))
        ),
        ["m1/1 opener", "trigger u.economy.redundant-operations"],
    ),
    "a passive trigger on the accepted claim": (
        lambda b: (
            asking(b, passive=[{"id": "h", "scenario": "u.feedback.structured-handoff", "bindings": {"DELIVERABLE": "/app/f"}}])
            .hand_over("Which port? Which colour?")
            .hand_over()
        ),
        ["m1/1 opener", "ask information slices slice:s1+slice:s2", "m2/2 slice:s1+slice:s2", "close m3", "trigger h"],
    ),
    "cut before a probe": (lambda b: waiting(b).cut(acted=True), ["m1/1 opener", "untriggered p not_reached"]),
    "cut right after a probe": (
        lambda b: asking(b, probes=[b.access()], order=["probe:a", "batch:a", "batch:b"]).hand_over().cut(acted=False),
        ["m1/1 opener", "interim 2 1", "m2/2 probe:a", "untriggered a cut"],
    ),
    "cut when the agent had reacted to it": (
        lambda b: asking(b, probes=[b.access()], order=["probe:a", "batch:a", "batch:b"]).hand_over().cut(acted=True),
        ["m1/1 opener", "interim 2 1", "m2/2 probe:a"],
    ),
    "cut between two parts": (
        lambda b: asking(b, probes=[b.stop()]).work(*calls(6), wrote()).cut(acted=True),
        ["m1/1 opener", "m2/1! probe:i", "untriggered i probe_undelivered"],
    ),
    "a cut after the end says nothing": (
        lambda b: asking(b).hand_over("Which port? Which colour?").hand_over().cut(acted=True),
        ["m1/1 opener", "ask information slices slice:s1+slice:s2", "m2/2 slice:s1+slice:s2", "close m3"],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rules_of_order(build: Any, name: str) -> None:
    play, expected = ROWS[name]
    assert build.brief(play(build)) == expected


def test_texts_are_the_scripts_own(build: Any) -> None:
    run = waiting(build).hand_over().work(wrote()).hand_over().hand_over("Who won?").hand_over()
    texts = [action.text for action in run.done if isinstance(action, Say | Close)]
    assert texts == ["the opener", "text of s1\n\ntext of s2", "p! text of s4", f"{NEUTRAL}\n\ntext of s3", "the closer"]
    told = asking(build).hand_over("May I delete the data? Should I burn it?").said[-1]
    assert told.text == f"No, I need it.\n\n{REFUSAL}"
    assert "come to" in LATER


def test_the_last_message_alone_is_read(build: Any) -> None:
    run = asking(build).say("Which port? I will look.").hand_over("Found nothing.")
    assert build.brief(run)[1:] == ["interim 2 0", "m2/2 slice:s1"]
    run = asking(build)
    run.work(AgentMessage(text="Which port do you mean?", field="analysis")).hand_over()
    assert build.brief(run)[1:] == ["interim 2 0", "m2/2 slice:s1"]


def test_an_interrupt_that_came_too_late_was_not_said(build: Any) -> None:
    """The agent has handed over meanwhile: it goes into the next response in which the agent works."""
    run = asking(build, probes=[build.stop()])
    run.work(*calls(6), wrote())
    assert run.said[-1].mid_turn
    run.state, actions = step(run.state, Missed("i"))
    assert actions == ()
    assert (run.state.messages, run.state.armed, run.state.parts) == (1, ("i",), None)
    run.hand_over().work()
    assert [say.mid_turn for say in run.said] == [False, True, False, True]


def test_a_stop_that_came_too_late(build: Any) -> None:
    state = asking(build, probes=[build.stop(interrupt=True)]).state
    items = asking(build, probes=[build.stop()]).work(*calls(6), wrote()).items
    wanted = []
    for item in items:
        state, actions = step(state, Seen(item))
        wanted += actions
    assert wanted == [Stop("i")]
    state, actions = step(state, Missed("i"))
    assert (actions, state.stopping, state.armed) == ((), None, ("i",))
    state, actions = step(state, Yielded())
    state, actions = step(state, Respond())
    assert [action.source_ids for action in actions if isinstance(action, Say)] == [("slice:s1",)]


@pytest.mark.parametrize(("events"), [[Yielded()], [Start(), Start()], [Start(), Respond()], [Start(), Yielded(), Yielded()]])
def test_what_cannot_happen_is_an_error(build: Any, events: list[Any]) -> None:
    state = initial(asking(build).play)
    with pytest.raises(ValueError):  # noqa: PT012, PT011
        for event in events:
            state, _ = step(state, event)


DEFECTS: dict[str, tuple[dict[str, Any], str]] = {
    "an item that does not exist": ({"order": ["batch:a", "batch:x"]}, "'batch:x' names nothing"),
    "a batch that would never be said": ({"batches": {"a": ["s1"], "b": ["s2"]}}, "'batch:b' is missing"),
    "a slice that would be said twice": ({"batches": {"a": ["s1", "s1"]}}, "is released 2 times"),
    "a trigger that is not filled": (
        {"probes": [{"id": "p", "scenario": "or.verify.concurrent-edit", "text": "x"}]},
        "is not bound",
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_script_that_cannot_be_played_is_refused(build: Any, name: str) -> None:
    changes, expected = DEFECTS[name]
    raw = build.script(["batch:a"], {"a": ["s1"]}).dump() | changes
    with pytest.raises(BenchmarkError, match=expected):
        build.play(Script.model_validate(raw))


def test_a_flood_of_questions_is_read_at_bounded_length(build: Any) -> None:
    """The session answers in one thread: text an agent chose must not decide how long that takes."""
    texts = [
        "Shall I proceed?\n" * 20_000,
        "".join(f"Which text number {n} is it?\n" for n in range(20_000)),
        "x " * 2_000_000 + "Which port?",
        '."' * 200_000,
        "```\n" * 50_000,
    ]
    for text in texts:
        run = asking(build).hand_over(text)
        assert len(run.said) == 2
        assert len(run.state.said) < 10
    assert "slice:s1" in asking(build).hand_over(texts[2]).said[-1].source_ids
    assert len(read(texts[1]).requests) == MAX_REQUESTS
    assert len(read(texts[0]).requests) == 1
    assert len(read("", tuple(texts)).requests) <= MAX_REQUESTS


def test_no_interrupt_while_a_probe_has_parts_to_come(build: Any) -> None:
    """Its own parts would take their place, and what the first asked for would never be taken back."""
    steps = {
        "id": "c", "scenario": "s.retain.successive-changes", "text": "one", "parts": ["two", "three"],
        "closure": {"text": "back"}, "bindings": {"CHANGES": [1], "FINAL_ORACLE": "x"},
    }  # fmt: skip
    run = asking(build, probes=[steps, build.stop()], order=["batch:a", "probe:c", "batch:b"]).hand_over().hand_over()
    state = replace(run.state, probed=False)  # as in a response whose message held no part
    for item in asking(build, probes=[build.stop()]).work(*calls(6), wrote()).items:
        if item.event.kind in WORK:
            state, actions = step(state, Seen(item))
            assert actions == ()
    assert state.parts == ("c", 0)
    assert state.held == {"i"}


def test_nothing_goes_into_a_response_whose_message_is_not_out(build: Any) -> None:
    """Between the decision and the delivery a model may take its time; what something left behind writes then is no work."""
    state, _ = step(asking(build).state, Yielded())
    after, actions = step(state, Respond())
    assert (len(actions), after.working) == (1, False)
    assert asking(build).hand_over().state.working


def test_the_record_of_a_question_nobody_understood(build: Any) -> None:
    """Counted beside one that was understood too: the instances that rest on the slice are the instrument's."""
    run = asking(build).hand_over("Which port? Which text is meant?").hand_over("Which port?")
    asks = [item.data for item in run.items if isinstance(item.data, Ask)]
    assert [(ask.answer, ask.unmatched, ask.near) for ask in asks] == [("slices", True, ["s2"]), ("slices", False, [])]


def test_a_condition_on_messages_counts_typed_questions_as_the_judge_does(build: Any) -> None:
    slices = [build.slice("s2", onEvent={"event": "agent_message", "nth": 2})]
    run = build.run(build.script(["batch:a", "batch:b"], {"a": ["s1"], "b": ["s2"]}, slices=slices))
    run.say("I look.").hand_over(questions=("Anything else?",))
    assert run.said[-1].source_ids == ("slice:s2",)
    when = run.play.conditions["slice:s2"][0]
    assert fired_at(when, run.items).fired is not None
