"""Wording by a model: what it is given, what is done with its answers, and what each guard objects to."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from realcli.ledger.events import AgentMessage, Data, Event, Guard, UserMessage, WordingRequest
from realcli_session.user.events import Say
from realcli_session.user.rehearsal import Rehearsal
from realcli_session.user.wording import Canonical, Model, SimulatorFailed
from realcli_session.user.wording.brief import SCHEMA, SYSTEM
from realcli_session.user.wording.endpoint import Answered, HttpEndpoint
from realcli_session.user.wording.guards import GUARDS, Context, hits
from realcli_session.user.wording.model import SILENT, TRIES
from realcli_session.user.wording.withheld import Withheld


class Sink:
    def __init__(self) -> None:
        self.turn = 0
        self.events: list[Data] = []

    def emit(self, actor: Any, data: Data, *, turn: int | None = None) -> Event:
        self.events.append(data)
        return None  # type: ignore[return-value]

    def blob(self, data: bytes) -> Any:
        raise AssertionError


class Scripted:
    """Gives the answers it was given, the last for ever; a dict is completed to a valid reply."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), []  # type: ignore[var-annotated]

    async def ask(self, user_text: str, seed: int) -> Answered:
        self.asked.append(json.loads(user_text))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Answered):
            return answer
        if isinstance(answer, str):
            return Answered(answer, 200, "m")
        items = [item["id"] for item in self.asked[-1]["items"]]
        return Answered(json.dumps({"release": items, "reply_kind": self.asked[-1]["reply_kind"], **answer}), 200, "m")

    async def close(self) -> None:
        return None


def a_run(b: Any) -> tuple[Rehearsal, Say]:
    """A batch of one slice is due; the next is withheld."""
    script = b.script(
        ["batch:a", "probe:q", "batch:b"],
        {"a": ["s1"], "b": ["s2"]},
        slices=[
            b.slice("s1", text="Set `keep` to `14`, not more.", onAsk=["keep"]),
            b.slice("s2", text="The target is `mirror-7`.", leakTerms=["mirror-7"]),
        ],
        probes=[b.quality(text="Make sure the pages feel pleasant to elderly visitors.")],
        actions=[{"id": "go", "topics": ["delete"], "decision": "approve", "text": "Yes, delete it."}],
    )
    run = b.run(script).hand_over("I looked around.")
    return run, run.said[-1]


GOOD = {"text": "Please set `keep` to `14`, and not more than that."}
BAD = {"text": "Set `keep` to `14`, not more. Later it goes to mirror-7."}


def a_model(endpoint: Any, run: Rehearsal | None = None) -> tuple[Model, Sink]:
    sink = Sink()
    model = Model(endpoint, sink, seed=7)
    for item in run.items if run is not None else []:
        model.seen(item.event, item.data)  # type: ignore[arg-type]
    return model, sink


async def test_a_text_that_passes_is_said(build: Any) -> None:
    run, say = a_run(build)
    model, sink = a_model(Scripted(GOOD), run)
    worded = await model.word(say, run.state)
    assert (worded.text, worded.by) == (GOOD["text"], "model")
    assert [type(event) for event in sink.events] == [WordingRequest, Guard]
    guard = sink.events[1]
    assert isinstance(guard, Guard)
    assert (guard.message_id, guard.attempt, guard.hits, guard.outcome) == ("m2", 1, [], "sent")


async def test_it_is_given_what_is_due_and_what_was_said_and_nothing_else(build: Any) -> None:
    run, say = a_run(build)
    endpoint = Scripted(GOOD)
    model, _ = a_model(endpoint, run)
    model.seen(None, AgentMessage(text="hidden", field="analysis"))  # type: ignore[arg-type]
    await model.word(say, run.state)
    asked = endpoint.asked[0]
    assert asked["items"] == [{"id": "slice:s1", "text": "Set `keep` to `14`, not more."}]
    assert asked["conversation"][:2] == [{"who": "user", "text": "the opener"}, {"who": "assistant", "text": "I looked around."}]
    assert set(asked) == {"persona", "conversation", "items", "reply_kind"}
    for secret in ("mirror", "elderly", "delete", "closer", "hidden", "s2"):
        assert secret not in json.dumps(asked)


async def test_a_hit_is_tried_again_and_then_the_canonical_text_is_said(build: Any) -> None:
    run, say = a_run(build)
    model, sink = a_model(Scripted(BAD, GOOD), run)
    assert (await model.word(say, run.state)).by == "model"
    assert [event.outcome for event in sink.events if isinstance(event, Guard)] == ["retry", "sent"]
    endpoint = Scripted(BAD)
    model, sink = a_model(endpoint, run)
    worded = await model.word(say, run.state)
    assert (worded.text, worded.by) == (say.text, "script")
    guards = [event for event in sink.events if isinstance(event, Guard)]
    assert [guard.outcome for guard in guards] == ["retry", "retry", "canonical"]
    assert len(endpoint.asked) == TRIES
    assert all("leak" in guard.hits and "mirror-7" in str(guard.draft) for guard in guards)


@pytest.mark.parametrize(
    ("answer", "hit"),
    [
        ("no json", "schema"),
        ('{"text": "x"}', "schema"),
        (GOOD | {"release": ["slice:s1", "slice:s2"]}, "release"),
        (GOOD | {"release": []}, "release"),
        (GOOD | {"reply_kind": "answer"}, "reply_kind"),
        (GOOD | {"also": 1}, "schema"),
        (Answered(None, 500, error="down"), "no_answer"),
    ],
)
async def test_an_answer_of_another_form_is_discarded(build: Any, answer: Any, hit: str) -> None:
    run, say = a_run(build)
    model, sink = a_model(Scripted(answer), run)
    assert (await model.word(say, run.state)).by == "script"
    assert all(hit in event.hits for event in sink.events if isinstance(event, Guard))


async def test_what_is_verbatim_is_asked_of_nobody(build: Any) -> None:
    run, _ = a_run(build)
    endpoint = Scripted(GOOD)
    model, _ = a_model(endpoint, run)
    assert (await model.word(run.said[0], run.state)).text == "the opener"
    run.hand_over("May I delete the folder?")
    approval = run.said[-1]
    assert approval.verdicts
    assert (await model.word(approval, run.state)).text == "Yes, delete it."
    assert endpoint.asked == []
    run.hand_over("Which colour has the delete key? What does keep mean?")
    endpoint.answers = [{"text": "I said set `keep` to `14`, not more."}]
    worded = await model.word(run.said[-1], run.state)
    assert worded.text.startswith("I have nothing to add")
    assert worded.text.endswith("I said set `keep` to `14`, not more.")


async def test_an_endpoint_that_never_answers_ends_the_run(build: Any) -> None:
    run, say = a_run(build)
    model, _ = a_model(Scripted(Answered(None, 401, error="unauthorised")), run)
    for _ in range(SILENT - 1):
        assert (await model.word(say, run.state)).by == "script"
    with pytest.raises(SimulatorFailed, match="no answer for 3 messages in a row"):
        await model.word(say, run.state)
    talks = a_model(Scripted(BAD), run)[0]
    for _ in range(SILENT + 1):
        assert (await talks.word(say, run.state)).by == "script"


async def test_canonical_is_the_script(build: Any) -> None:
    run, say = a_run(build)
    assert (await Canonical().word(say, run.state)).text == say.text


# ------------------------------------------------------------------------------------------------------------------ guards
CANONICAL = "Set `keep` in `/app/a.conf` to `14`, not more."
CONTEXT = Context(
    canonical=CANONICAL,
    before="The word begins with lan",
    licensed="Hello. I use port 8080. " + CANONICAL,
    heard="I wrote report.csv with 12 rows.",
    withheld=Withheld(terms=(("lantern",), ("4711",), ("mirror", "7")), words=frozenset(("lighthouse", "backups"))),
)
PASS = [
    "Hello again! One more thing, please: set `keep` in `/app/a.conf` to `14`, not more. Thanks, take care.",
    "Please set `keep` in `/app/a.conf` to `14`, not more.",
    "Now then: in `/app/a.conf`, `keep` has to be `14`, and not more than that.",
    "You wrote 12 rows into report.csv, fine, but set `keep` in `/app/a.conf` to `14`, not more. I still use port 8080.",
]
OBJECT = {
    "leak": ["It is the lantern.", "l a n t e r n", "forty-seven eleven", "bGFudGVybg==", "nretnal", "tern it is", "mirror 7"],
    "overlap": ["The lighthouse keeps the backups."],
    "numbers": ["Set it to 15.", "Seventeen is enough."],
    "paths": ["Look into /etc/passwd.", "It is in other.yaml."],
    "lost": ["Set `keep` in `/app/a.conf` to a value, not more.", "Set `keep` in `/app/a.conf` to `14` or more."],
    "code": ["```\nx\n```", "$ ls", "Use `other` instead.", "Run sudo now."],
    "stop_marker": ["###STOP###", "<end>"],
    "meta": ["This is a benchmark.", "The next probe comes soon.", "As an AI I cannot.", "Here is my script."],
    "reasoning": ["<think>hm</think>", "Thinking: they want 14", "<|im_start|>"],
    "length": ["x" * 400, " "],
    "role": ["I have implemented it.", "Sure, I'll do that.", "How can I help you?", "Assistant: yes"],
    "json": ['{"text": "x"}', "[1]"],
    "encoded": ["QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "%6c%61%6e", "68 65 6c 6c 6f 20 77 6f 72 6c 64"],
    "invisible": ["k\u200beep", "kеep", "a\x07"],
    "language": ["Bitte das und nicht die andere Datei.", "Il faut le mettre dans le fichier."],
    "question": ["Would you set it?"],
    "beyond": [
        "Later it gets a colour. " + CANONICAL,
        CANONICAL + " A large figure is still to come.",
        "Your report has the rows.",
    ],
}


@pytest.mark.parametrize("text", PASS)
def test_what_only_words_the_item_passes(text: str) -> None:
    assert hits(text, CONTEXT) == []


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in OBJECT.items() for text in texts])
def test_each_guard_objects(name: str, text: str) -> None:
    assert name in hits(text, CONTEXT)


def test_every_guard_has_a_row() -> None:
    assert OBJECT.keys() == GUARDS.keys()


# ---------------------------------------------------------------------------------------------------------------- endpoint
@pytest.fixture
async def server() -> Any:
    """Answers both APIs; `seen` keeps what was asked."""
    seen: list[tuple[str, Any, Any]] = []
    said = {"release": ["slice:s1"], "text": "hello", "reply_kind": "inform"}

    async def messages(request: web.Request) -> web.Response:
        seen.append((request.path, dict(request.headers), await request.json()))
        return web.json_response(
            {"model": "a-1", "content": [{"type": "tool_use", "input": said}], "usage": {"input_tokens": 5, "output_tokens": 2}}
        )

    async def chat(request: web.Request) -> web.Response:
        seen.append((request.path, dict(request.headers), await request.json()))
        message = {"content": json.dumps(said)}
        usage = {"prompt_tokens": 6, "completion_tokens": 3}
        return web.json_response({"model": "c-1", "choices": [{"message": message}], "usage": usage})

    async def broken(request: web.Request) -> web.Response:
        return (
            web.Response(status=200, text="not json")
            if request.path.startswith("/odd")
            else web.Response(status=503, text="busy")
        )

    app = web.Application()
    app.router.add_post("/v1/messages", messages)
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_post("/{rest:.*}", broken)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}", seen
    await runner.cleanup()


@pytest.mark.parametrize(("api", "suffix", "model", "tokens"), [("anthropic", "", "a-1", 5), ("chat", "/v1", "c-1", 6)])
async def test_both_apis(server: Any, api: Any, suffix: str, model: str, tokens: int) -> None:
    url, seen = server
    endpoint = HttpEndpoint(api, url + suffix, "key-1", "the-model", 0.0)
    answer = await endpoint.ask("the brief", 9)
    await endpoint.close()
    assert answer.text is not None
    assert json.loads(answer.text)["text"] == "hello"
    assert answer.usage is not None
    assert (answer.status, answer.model, answer.usage.input, answer.error) == (200, model, tokens, None)
    _, headers, body = seen[0]
    assert headers.get("x-api-key", headers.get("Authorization")) in ("key-1", "Bearer key-1")
    assert (body["model"], body["temperature"]) == ("the-model", 0.0)
    if api == "anthropic":
        assert (body["system"], body["tools"][0]["input_schema"]) == (SYSTEM, SCHEMA)
        assert body["tool_choice"] == {"type": "tool", "name": "say"}
    else:
        assert body["messages"][0] == {"role": "system", "content": SYSTEM}
        assert body["response_format"]["json_schema"]["schema"] == SCHEMA
        assert body["seed"] == 9


@pytest.mark.parametrize(("suffix", "status", "error"), [("/busy", 503, "busy"), ("/odd", 200, "no answer of this API")])
async def test_what_an_endpoint_can_do_is_an_answer(server: Any, suffix: str, status: int, error: str) -> None:
    endpoint = HttpEndpoint("chat", server[0] + suffix, "key", "m", 0.0)
    answer = await endpoint.ask("x", 1)
    await endpoint.close()
    assert (answer.text, answer.status) == (None, status)
    assert error in (answer.error or "")


async def test_nobody_listens() -> None:
    endpoint = HttpEndpoint("chat", "http://127.0.0.1:9", "key", "m", 0.0)
    answer = await endpoint.ask("x", 1)
    await endpoint.close()
    assert (answer.text, answer.status) == (None, None)
    assert "ClientConnectorError" in (answer.error or "")
    await asyncio.sleep(0)


def test_user_messages_are_kept_as_they_were_delivered() -> None:
    model, _ = a_model(Scripted(GOOD))
    model.seen(None, UserMessage(id="m9", text="closer", source_ids=["closer"], delivered=False))  # type: ignore[arg-type]
    assert model._said.lines == []
