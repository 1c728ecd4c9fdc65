"""A stand-in for a judge: reads the run and the questions in the request as a model would, and answers every check in form.

It understands nothing. A check gets 0 or 1 where the program's own record says so, else 1 with the first literal text of the
window that may serve, or with the window read whole; where the window holds nothing of the agent, 0. So it shows that a sweep is
judged from end to end, and never how well.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from realcli_provider.conversation import Action, Reply
from realcli_provider.script import Answer, Call

QUESTIONS = "\n# Questions\n"
_ITEM = re.compile(r"^\[(\d+)\.(\d+) ([^\n]*?)\]\n«([0-9a-f]{16})\n(.*?)\n\4»$", re.DOTALL | re.MULTILINE)
_GAP = re.compile(r"^\[exchanges that are not or not wholly shown here: ([\d, to]+); read_turns", re.MULTILINE)
_ON = re.compile(r"go on with read_turns\((?:first=(\d+), last=(\d+), )?item=\"(\d+\.\d+)\"(?:, offset=(\d+))?\)")
_CHECK = re.compile(r"^### Check (\S+)$", re.MULTILINE)
_WINDOW = re.compile(r"^window: (\w+) \(exchanges ([\d, ]+|none); (?:items (\d+)\.(\d+) to (\d+)\.(\d+)|nothing)", re.MULTILINE)
_MESSAGE = re.compile(r"^## Message \S+ of exchange \d+, id (\S+)\naspects: ([^\n]+)$", re.MULTILINE)
_TO_SAY = re.compile(r"^\[had to say (\S+?)[\];]", re.MULTILINE)
_SAID = re.compile(r"^\[said[^\n]*\]\n«([0-9a-f]{16})\n(.*?)\n\1»$", re.DOTALL | re.MULTILINE)
_DEVIATION = re.compile(r"^## Deviation in exchange \d+, id (\S+)$", re.MULTILINE)
SHORT = 8  # characters a quote has at least
LONG = 120


@dataclass(frozen=True)
class Item:
    """One numbered item of the run."""

    at: tuple[int, int]
    label: str
    text: str


@dataclass
class Desk:
    """What has been read."""

    items: dict[tuple[int, int], Item] = field(default_factory=dict)

    def read(self, text: str) -> None:
        """Items of a page; the first text of an item counts."""
        for found in _ITEM.finditer(text):
            at = int(found[1]), int(found[2])
            self.items.setdefault(at, Item(at, found[3], found[5]))


def work(opening: str) -> Generator[Action | Answer, Reply, None]:
    """See the module."""
    run, _, questions = opening.rpartition(QUESTIONS)
    desk = Desk()
    desk.read(run)
    yield from _read_on(desk, run)
    for answer in _answers(desk, questions):
        yield Answer(call=Call(name="answer", input=answer))
    while True:
        yield Answer(say="I have answered.")


def _read_on(desk: Desk, run: str) -> Generator[Action | Answer, Reply, None]:
    """Everything that was not shown, as far as the tools go."""
    due: list[dict[str, Any]] = []
    gap = _GAP.search(run)
    for part in gap[1].split(", ") if gap else []:
        first, _, last = part.partition(" to ")
        due.append({"first": int(first), "last": int(last or first)})
    if not gap:
        due = [{"item": item, "offset": int(offset)} for first, _, item, offset in _ON.findall(run) if offset and not first]
    while due:
        reply = yield Answer(call=Call(name="read_turns", input=due.pop(0)))
        if "the context is full" in reply.result:
            return
        desk.read(reply.result)
        for first, last, item, offset in _ON.findall(reply.result):
            if first:
                due.append({"first": int(first), "last": int(last), "item": item})
            elif offset:
                due.append({"item": item, "offset": int(offset)})


def _answers(desk: Desk, questions: str) -> Iterator[dict[str, Any]]:
    if "List the claims." in questions:
        yield {"claims": []}
    elif "What is the primary reason for the failure?" in questions:
        item = next((item for item in desk.items.values() if _line(item.text)), None)
        quote = _line(item.text) if item else ""
        reason = "a stand-in gives every failure this label"
        yield {"exchange": item.at[0] if item else 0, "quote": quote, "reason": reason, "label": "functional-or-boundary"}
    elif _MESSAGE.search(questions) or _DEVIATION.search(questions):
        yield from _audit(questions)
    else:
        yield from _scenarios(desk, questions)


def _audit(questions: str) -> Iterator[dict[str, Any]]:
    """The simulated user kept to everything, and what it did beside was harmless."""
    messages = list(_MESSAGE.finditer(questions))
    for message, after in zip(messages, [*messages[1:], None], strict=True):
        part = questions[message.end() : after.start() if after else len(questions)]
        text = _SAID.search(part)
        quote = text[2] if text else ""
        said = [{"item": item, "quote": quote} for item in _TO_SAY.findall(part)]
        yield {"id": message[1], "said": said, "findings": [], "aspects": dict.fromkeys(message[2].split(", "), "kept")}
    for id in _DEVIATION.findall(questions):
        reason = "a stand-in finds everything harmless"
        yield {"id": id, "reason": reason, "affected": [], "outcome": False, "harmful": False}


def _scenarios(desk: Desk, questions: str) -> Iterator[dict[str, Any]]:
    checks: dict[str, list[dict[str, Any]]] = {}
    parts = _CHECK.split(questions)
    for id, text in zip(parts[1::2], parts[2::2], strict=True):
        checks.setdefault(id.rpartition("/")[0], []).append(_check(desk, id, text))
    for instance, answers in checks.items():
        yield {"instance": instance, "answers": answers}


def _check(desk: Desk, id: str, text: str) -> dict[str, Any]:
    window = _WINDOW.search(text)
    exchanges = [int(number) for number in re.findall(r"\d+", window[2])] if window else []
    inside = [
        item for at, item in sorted(desk.items.items())
        if window and window[3] and (int(window[3]), int(window[4])) <= at <= (int(window[5]), int(window[6]))
    ]  # fmt: skip
    name = window[1] if window else ""
    read = {"kind": "absence", "window": name, "exchanges_read": exchanges, "nearest_quote": None}
    record = re.search(rf"^\[program record of {re.escape(id)}: \S+ says (pass|fail);", text, re.MULTILINE)
    quote = _quote(inside, "evidence: environment" in text)
    evidence: dict[str, Any]
    if record is not None:
        verdict, evidence = ("1" if record[1] == "pass" else "0"), {"kind": "hard", "ref": id}
    elif "one_needs: absence" in text:
        verdict, evidence = "1", read
    elif quote is not None:
        verdict, evidence = "1", quote
    else:
        verdict, evidence = "0", read
    anchor = re.search(r"^anchor_exchange: (\d+)$", text, re.MULTILINE)
    return {
        "check_id": id, "anchor_exchange": int(anchor[1]) if anchor else 0, "evidence": [evidence],
        "reason": "a stand-in answers in form", "zero_clause_met": verdict == "0", "na_clause_met": False, "verdict": verdict,
    }  # fmt: skip


def _quote(inside: list[Item], environment: bool) -> dict[str, Any] | None:
    labels = ("the agent calls", "a tool gives back", "changes of files", "programs that ran")
    wanted = labels if environment else ("the agent says", "the agent asks", *labels)
    for label in wanted:
        for item in inside:
            if item.label.startswith(label) and (line := _line(item.text)):
                return {"kind": "quote", "exchange": item.at[0], "quote": line}
    return None


def _line(text: str) -> str:
    """A line that is long enough to be quoted, or nothing."""
    return next((line.strip()[:LONG].strip() for line in text.splitlines() if len(" ".join(line.split())) >= SHORT), "")
