"""Hostile text wherever a report takes text: a browser makes of a page what it makes of it with harmless words.

No element, attribute, link or script comes from a text; every text is there to be read; nothing that hides is sent.
"""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import NamedTuple

from realcli.api.sweepstatus import ControlEnd
from realcli.audit.model import AuditRecord, Deviation, SimCheck
from realcli.judging.model import Claim, EvidenceItem, JudgeAnswer
from realcli.ledger.ctrf import failed_tests
from realcli.ledger.events import (
    AgentMessage,
    AgentQuestion,
    FileDelete,
    FileRead,
    FileWrite,
    Plant,
    ProbeDelivered,
    ToolCall,
    ToolResult,
)
from realcli.scoring.records import CheckRecord, Failure, HardRecord, InstanceRecord, RepeatJudgement, WithdrawnTask
from realcli.trajectory import conversation
from realcli_judge.details import Detail
from realcli_judge.hostile import hidden, plain
from realcli_judge.pages import Site, column, environment, side_page, trial_page
from realcli_judge.scores import Counted, summarise
from realcli_judge.shown import shown
from realcli_judge.tables import tables
from tests.support.ledgers import Ledger
from tests.support.sealed_sweep import DIGEST
from tests.support.synthetic_report import synthetic

SCENARIO = "or.verify.concurrent-edit"
HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "\" onmouseover='alert(3)' x=\"></style></title></textarea></pre></svg><base href=//evil.example>",
    "javascript:alert(4)",
    "<a href='javascript:alert(5)'>../../../etc/passwd</a>",
    "\x1b]0;title\x07\x1b[31mred\x9b0m\x00",
    "\u202egnp.exe\u2066\u200f\u061c\u200b\ufeff\U000e0041",
    "lone \ud800 and \udfff",
    "=HYPERLINK(\"http://evil.example\")",
    "@SUM(A1)\r+1",
    "{{ 7*7 }}{% raw %}&lt;b&gt;&#0;<!-- --><![CDATA[",
    "w" * 250,
]  # fmt: skip


class Texts:
    """The next of the texts, each marked by its number: two are never the same."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        self.given: list[str] = []

    def __call__(self) -> str:
        text = self._texts[len(self.given) % len(self._texts)]
        self.given.append(f"{text}~{len(self.given)}~")
        return self.given[-1]


class Page(HTMLParser):
    """What a browser makes of a page: elements with the attributes that do something, and text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.text = self.titles = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (tag, attrs) == ("span", [("class", "hid")]):
            return
        self.titles += "".join(value or "" for name, value in attrs if name == "title")
        self.elements.append((tag, tuple((name, _without_text(name, value or "")) for name, value in attrs)))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    handle_decl = unknown_decl = handle_pi = handle_comment  # type: ignore[assignment]

    def handle_data(self, data: str) -> None:
        self.text += data


def _without_text(name: str, value: str) -> str | None:
    """A title is a text; an id of a sheet and a link to it end with the id of an instance, a place in the summary with a key."""
    if name == "data-at":
        return value.partition("/untriggered/")[0]
    return None if name == "title" else re.sub(r"^(#?[ig]-|#?(?:[^#]*#)?q-).*", r"\1", value, flags=re.DOTALL)


class Rendered(NamedTuple):
    pages: dict[str, str]
    given: list[str]  # texts that have to be on one of them


def checked(hostile: Rendered, harmless: Rendered) -> None:
    assert hostile.pages.keys() == harmless.pages.keys()
    seen = ""
    for name, html in hostile.pages.items():
        assert not [hex(ord(char)) for char in html if hidden(char)], name
        html.encode()
        page, other = Page(html.replace("<!doctype html>", "")), Page(harmless.pages[name].replace("<!doctype html>", ""))
        for one, expected in zip(page.elements, other.elements, strict=True):
            assert one == expected, name
        for tag, attributes in page.elements:
            assert tag not in ("script", "iframe", "object", "embed", "form", "img", "base", "input"), name
            assert not [key for key, _ in attributes if key.startswith("on")], name
            for value in (value or "" for key, value in attributes if key in ("href", "src", "xlink:href")):
                assert re.match(r"#|(\.\./|\./)?[a-z0-9.-]+(/|\.html|\.json)", value), (name, value)
        seen += page.text + page.titles
    assert [text for text in hostile.given if plain(text) not in seen and plain(" ".join(text.split())) not in seen] == []


# -- a trial, and side by side


def told(text: Texts) -> Ledger:
    made = Ledger().starts().request()
    made.emit(AgentMessage(text=text(), field=text()), AgentQuestion(text=text()))
    made.emit(ToolCall(call_id="c1", name=text(), input={text(): text()}), ToolResult(call_id="c1", text=text()))
    made.emit(ToolResult(call_id="c1", text=text(), is_error=True))
    made.emit(
        FileWrite(path=text(), after_turn=0, before_turn=1, created=True), FileDelete(path=text(), after_turn=0, before_turn=1)
    )
    made.emit(FileRead(path=text(), marker=text(), call_id="c1"))
    made.emit(ProbeDelivered(probe=text(), scenario=text(), message_id="m"))
    made.emit(Plant(path=text(), how="dynamic", probe="p", applied=False, detail=text()))
    made.says(text()).message([text()], text=text()).request()
    made.emit(AgentMessage(text=text()))
    return made.yields().ends()


def instance(text: Texts, scenario: str) -> InstanceRecord:
    """By the judge and by program."""
    quoted = [EvidenceItem(kind="quote", exchange=1, quote=text()), EvidenceItem(kind="file", ref=text(), quote=text()),
              EvidenceItem(kind="absence", window=text(), nearest_quote=text(), exchanges_read=[1])]  # fmt: skip
    answer = JudgeAnswer(
        check_id="touched/c", vote=1, zero_clause_met=False, na_clause_met=False, evidence=quoted, verdict="1", reason="w"
    )
    hard = HardRecord(op="w", result="fail", why=text(), events=[2])
    return InstanceRecord(
        scenario=scenario, probe=text(), dimension="OR", sub_dimension="verify", state="triggered", reason=text(), anchor=2,
        checks=[CheckRecord(check=text(), verdict="1", by="judge", reason=text(), answers=[answer], trusted=True),
                CheckRecord(check=text(), verdict="0", by="program", hard=hard)],
    )  # fmt: skip


def detail(texts: list[str]) -> tuple[Detail, list[str]]:
    text = Texts(texts)
    made = synthetic(1, 1, 1)
    trial = next(t for t in made.trials if t.mode == "COLLAB")
    summary = trial.model_copy(
        update={"phase": "Sealed", "success": False, "reward": "0.5", "reason": text(), "name": text(), "limit": text(),
                "work_seal": DIGEST, "seal": DIGEST, "ledger": text(), "outcome_flag": text(), "trouble": text(), "turns": 3}
    )  # fmt: skip
    trajectory = told(text).trajectory
    judgement = RepeatJudgement(
        configuration=trial.configuration, task=trial.task, repeat=1, ordinal=trial.ordinal, attempt=1, work_seal=DIGEST,
        judge=DIGEST, instances=[instance(text, SCENARIO), instance(text, text())], generic=[instance(text, text())],
        claims=[Claim(kind="ran", exchange=1, quote=text(), subject=text(), value=text())],
    )  # fmt: skip
    deviation = Deviation(seq=2, what=text(), quote=text(), affected=[text()], harmful=True)
    audit = AuditRecord(
        configuration=trial.configuration, task=trial.task, repeat=1, ordinal=trial.ordinal, attempt=1, work_seal=DIGEST,
        judge=DIGEST, contaminated={text(): text(), judgement.instances[0].probe: text()},
        checks=[SimCheck(check="sim_goal_stability", verdict="0", by="judge", reason=text(), deviations=[deviation])],
    )  # fmt: skip
    failure = Failure(ordinal=trial.ordinal, mode="COLLAB", repeat=1, by="judge", label="other", reason=text(), quote=text())
    ctrf = json.dumps({"results": {"tests": [{"name": text(), "status": "failed", "message": text()}]}}).encode()
    sections = shown(conversation(trajectory), str).sections
    return Detail(summary, sections, trajectory, judgement, audit, failure, failed_tests(ctrf)), text.given


def trial_pages(texts: list[str]) -> Rendered:
    made, given = detail(texts)
    lock = synthetic(1, 1, 1).lock
    one = column(made)
    assert one is not None
    beside = [one, one._replace(configuration="codex.other", ordinal=7)]
    return Rendered(
        {"trial": trial_page(made, lock, (0, None), True, environment()),
         "side": side_page("task-000", 1, [1, 2], beside, "sweep", environment())},
        given,
    )  # fmt: skip


def test_pages_of_trials() -> None:
    checked(trial_pages(HOSTILE), trial_pages(["w"]))


# -- index, configurations, tasks, scenarios, further readings, tables


def site(texts: list[str]) -> tuple[Rendered, dict[str, bytes]]:
    """Whatever a lock, an operator's word or a record holds as free text; names that are parts of a file's name are not.

    Half a character stands in no JSON that a model reads.
    """
    text = Texts([one for one in texts if "\ud800" not in one])
    made = synthetic(2, 3, 1)
    lock = made.lock
    configurations = [
        c.model_copy(update={"agent_version": text(), "permissions": text(), "model_id": text()}) for c in lock.configurations
    ]
    tasks = [t.model_copy(update={"category": text(), "information_structure": text()}) for t in lock.tasks]
    lock = lock.model_copy(
        update={"configurations": configurations, "tasks": tasks, "created_at": text(),
                "benchmark": lock.benchmark.model_copy(update={"name": text(), "version": text(), "source": text()}),
                "sweep": lock.sweep.model_copy(update={"name": text(), "namespace": text()}),
                "platform": lock.platform.model_copy(update={"operator_version": text()})}
    )  # fmt: skip
    detail = text()[-150:]
    text.given[-1] = detail
    control = ControlEnd(result="Failed", ordinal=0, attempt=1, number=1, detail=detail)
    gone = WithdrawnTask(task=lock.tasks[2].name, reason="VerifierFault", control=control)
    judged = {}
    for ordinal, one in made.collected.trials.items():
        if one.cell.task != gone.task:
            seen = tuple(
                instance._replace(contaminated=text()) if at == 0 else instance._replace(reason=text())
                for at, instance in enumerate(one.instances)
            )
            judged[ordinal] = replace(one, instances=seen)
    collected = replace(made.collected, trials=judged, withdrawn=(gone,))
    told = [
        t.model_copy(update={"name": text(), "outcome_flag": "w", "trouble": "w"}) for t in made.trials if t.ordinal in judged
    ]
    counted = Counted.of(lock, collected)
    summary = summarise(lock, made.plan, collected, counted, told)
    root = text()
    return Rendered(dict(Site(summary, collected, root, environment()).pages()), text.given), tables(summary, counted)


def test_pages_of_a_sweep() -> None:
    checked(site(HOSTILE)[0], site(["w"])[0])


def test_tables_hold_texts_and_no_formulas() -> None:
    for name, data in site(HOSTILE)[1].items():
        if name.endswith(".csv"):
            rows = list(csv.reader(io.StringIO(data.decode())))
            assert {len(row) for row in rows} == {len(rows[0])}, name
            for cell in (cell for row in rows for cell in row):
                assert not any(hidden(char) for char in cell), name
                assert re.fullmatch(r"[-+]?[0-9.]+(e-?[0-9]+)?", cell) or not cell.startswith(("=", "+", "-", "@", "\t")), cell
