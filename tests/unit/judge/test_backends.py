"""Backends without a network: retries, errors in our words, stored exchanges, recordings."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from realcli.api.models import Prices
from realcli.api.trial import Tokens
from realcli.judging.model import Exchange, JudgeReply, JudgeRequest, Message, Parameters, ToolReturn, ToolSpec, ToolUse
from realcli.judging.opening import QUESTIONS
from realcli.judging.port import BackendRefused, BackendUnavailable, RequestTooLarge
from realcli.storage.local import LocalStore
from realcli.storage.port import NotFound
from realcli_judge.backends import anthropic_sdk, openai_sdk
from realcli_judge.backends.calling import ATTEMPTS, Trouble, arguments, as_object, call, redacted
from realcli_judge.backends.opening import open_backend
from realcli_judge.backends.recordings import RecordBackend, ReplayBackend, ReplayMiss
from realcli_judge.backends.stored import OneModelBackend, StoredBackend, exchange_of
from realcli_judge.inputs import Refused
from tests.support.judged_runs import Told, in_turn, reply, use

KEY = "sk-secret-0123456789"


def request(**changed: Any) -> JudgeRequest:
    tool = ToolSpec(name="answer", description="d", parameters={"type": "object"})
    base: dict[str, Any] = {
        "purpose": "checks", "about": ["p1/a", "p1/b"], "model": "m", "api": "chat", "system": "s",
        "messages": [Message(role="user", text="hello")], "tools": [tool],
    }  # fmt: skip
    return JudgeRequest(**(base | changed))


SAID = reply(use("answer", instance="p1", answers=[])).model_copy(update={"usage": Tokens(input=10, output=1_000_000)})

# -- one call


class Failing:
    """Raises prepared troubles, then answers."""

    def __init__(self, *troubles: Trouble) -> None:
        self.left = list(troubles)
        self.waits: list[float] = []
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.left:
            raise ProviderError(self.left.pop(0))
        return "ok"


class ProviderError(Exception):
    def __init__(self, trouble: Trouble) -> None:
        self.trouble = trouble


def read(error: Exception) -> Trouble | None:
    return error.trouble if isinstance(error, ProviderError) else None


def attempt(work: Failing) -> str:
    return call(work, read, "https://judge", KEY, work.waits.append)


PASSING = {
    "too many requests": (Trouble(429, "slow down", "7"), [7.0]),
    "a date": (Trouble(429, "slow down", "Wed, 21 Oct 2026 07:28:00 GMT"), [1.0]),
    "at once": (Trouble(429, "slow down", "0"), [0.0]),
    "before now": (Trouble(503, "away", "-3"), [0.0]),
    "no number": (Trouble(503, "away", "nan"), [1.0]),
    "overloaded": (Trouble(529, "overloaded"), [1.0]),
    "a timeout of the server": (Trouble(408, "timeout"), [1.0]),
    "no answer": (Trouble(None, "no answer"), [1.0]),
}


@pytest.mark.parametrize(("trouble", "waits"), PASSING.values(), ids=PASSING)
def test_what_passes_is_tried_again(trouble: Trouble, waits: list[float]) -> None:
    work = Failing(trouble)
    assert (attempt(work), work.waits) == ("ok", waits)


def test_waits_double_and_end() -> None:
    work = Failing(*[Trouble(500, "broken")] * ATTEMPTS)
    with pytest.raises(BackendUnavailable, match=r"https://judge: HTTP 500: broken, after 6 attempts"):
        attempt(work)
    assert (work.waits, work.calls) == ([1.0, 2.0, 4.0, 8.0, 16.0], ATTEMPTS)


def test_a_wait_that_is_too_long_is_not_waited() -> None:
    work = Failing(Trouble(429, "tomorrow", "86400"))
    with pytest.raises(BackendUnavailable):
        attempt(work)
    assert (work.waits, work.calls) == ([], 1)


REFUSED = {
    "a wrong key": (Trouble(401, f"Incorrect API key provided: {KEY}"), BackendRefused, "check the Secret"),
    "no such model": (Trouble(404, "model not found"), BackendRefused, "the model id and the endpoint's url"),
    "a request it does not take": (Trouble(400, "tools: unsupported"), BackendRefused, "does not take what is asked"),
    "too long": (Trouble(400, "prompt is too long: 250000 tokens > 200000 maximum"), RequestTooLarge, "too long"),
    "over the context": (Trouble(400, "This model's maximum context length is 8192 tokens"), RequestTooLarge, "8192"),
    "an answer longer than the model writes": (
        Trouble(400, "max_tokens is too large: 64000. This model supports at most 16384 completion tokens"),
        BackendRefused,
        "check spec.judge.model",
    ),
    "both together": (
        Trouble(400, "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000"),
        RequestTooLarge,
        "exceed context limit",
    ),
    "too many bytes": (Trouble(413, "Request exceeds the maximum size"), RequestTooLarge, "413"),
}


@pytest.mark.parametrize(("trouble", "kind", "told"), REFUSED.values(), ids=REFUSED)
def test_what_never_will_is_not_tried_again(trouble: Trouble, kind: type[Exception], told: str) -> None:
    work = Failing(trouble)
    with pytest.raises(kind, match=told) as raised:
        attempt(work)
    assert work.calls == 1
    assert KEY not in str(raised.value)
    assert raised.value.__cause__ is None


def test_what_is_not_the_providers_goes_up_as_it_is() -> None:
    def broken() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call(broken, read, "w", KEY)


@pytest.mark.parametrize("text", [f"key {KEY} is wrong", "key sk-s****************6789 is wrong"])
def test_keys_are_redacted(text: str) -> None:
    assert redacted(text, KEY) == "key [key] is wrong"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{", {"unparsable": "{"}),
        ("[1]", {"unparsable": [1]}),
        ('{"a": NaN}', {"unparsable": '{"a": NaN}'}),
        ('{"a": "\\ud800"}', {"a": "?"}),
        ("[" * 100_000, {"unparsable": "[" * 100_000}),
        ('{"a": [1e400, -1e400]}', {"a": ["inf", "-inf"]}),
        (None, {"unparsable": None}),
    ],
)
def test_arguments(text: object, value: object) -> None:
    found = arguments(text)
    assert found == value
    json.dumps(found, allow_nan=False).encode()
    assert as_object("text") == {"unparsable": "text"}


def test_arguments_that_no_reader_would_take_again() -> None:
    """As deep as JSON is read once, and an exchange that holds it is not."""
    deep = ToolUse(id="c1", name="answer", input=arguments('{"a": ' + "[" * 300 + "]" * 300 + "}"))
    said = reply(deep)
    data = exchange_of(request(), said, None).canonical()
    assert Exchange.model_validate_json(data).reply == said
    assert b"nested too deeply" in data


# -- answers


def _chat_answer() -> Any:
    called = {"id": "c1", "type": "function", "function": {"name": "answer", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [called]}
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 4}}
    choices = [{"index": 0, "finish_reason": "tool_calls", "message": message}]
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}


def _response() -> Any:
    usage = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14, "input_tokens_details": {"cached_tokens": 4}}
    called = {"type": "function_call", "call_id": "c1", "name": "answer", "arguments": '{"a": 1}'}
    return {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [called], "usage": usage}


def _message() -> Any:
    usage = {"input_tokens": 5, "output_tokens": 5, "cache_read_input_tokens": 4}
    content = [{"type": "tool_use", "id": "c1", "name": "answer", "input": {"a": 1}}]
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "content": content,
            "usage": usage}  # fmt: skip


def asked(api: str, body: Any) -> JudgeReply:
    """What the SDK and the backend make of an endpoint's answer; no network."""
    http = httpx2 if api == "anthropic" else httpx
    raw = json.dumps(body).encode()
    transport = http.MockTransport(lambda _: http.Response(200, headers={"content-type": "application/json"}, content=raw))
    with http.Client(transport=transport) as client:
        sdk: Any = anthropic.Anthropic if api == "anthropic" else openai.OpenAI
        backend: Any = anthropic_sdk.AnthropicBackend if api == "anthropic" else openai_sdk.OpenAIBackend
        one = backend("https://judge", KEY, lambda _: None)
        one.close()
        one._client = sdk(api_key=KEY, base_url="https://judge", max_retries=0, http_client=client)
        found: JudgeReply = one.complete(request(api=api))
    exchange = exchange_of(request(api=api), found, None)
    assert Exchange.model_validate_json(exchange.canonical()) == exchange
    return found


ANSWERS = {"chat": _chat_answer, "responses": _response, "anthropic": _message}


@pytest.mark.parametrize("api", ANSWERS)
def test_an_answer_is_read(api: str) -> None:
    found = asked(api, ANSWERS[api]())
    assert (found.stop, found.model, found.message.uses[0].input) == ("tools", "m", {"a": 1})
    assert found.usage == Tokens(input=5, cache_read=4, output=5)


@pytest.mark.parametrize("api", ANSWERS)
@pytest.mark.parametrize("odd", [None, "many", -1, 2.5, [], {}])
def test_usage_that_is_no_number_is_unknown(api: str, odd: object) -> None:
    """Compatible servers leave counts out, or send null. An answer is not lost for it, and nothing becomes a 0."""
    body = ANSWERS[api]()
    for name in ("output_tokens", "completion_tokens"):
        if name in body["usage"]:
            body["usage"][name] = odd
    assert asked(api, body).usage is None
    assert asked(api, body | {"usage": odd}).usage is None


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_cached_tokens_that_are_not_told_are_none(api: str) -> None:
    body = ANSWERS[api]()
    for name in ("prompt_tokens_details", "input_tokens_details"):
        if name in body["usage"]:
            body["usage"][name] = {"cached_tokens": None}
    assert asked(api, body).usage == Tokens(input=9, output=5)


BROKEN: list[tuple[str, tuple[str | int, ...], object]] = [
    ("chat", ("choices",), -1),
    ("chat", ("choices",), {"a": 1}),
    ("chat", ("choices", 0), None),
    ("responses", ("output", 0), None),
    ("responses", ("output", 0, "name"), 7),
    ("responses", ("output", 0, "call_id"), 7),
    ("anthropic", ("content", 0), None),
    ("anthropic", ("content", 0, "name"), ["x"]),
    ("anthropic", ("content", 0, "id"), 7),
    ("anthropic", ("stop_reason",), ["x"]),
    ("anthropic", ("model",), {"a": 1}),
]


@pytest.mark.parametrize(("api", "path", "odd"), BROKEN)
def test_an_answer_of_another_form_is_a_broken_endpoint_and_no_crash(api: str, path: Any, odd: object) -> None:
    body = ANSWERS[api]()
    place = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = odd
    with pytest.raises(BackendUnavailable, match="an answer that is none of the API's"):
        asked(api, body)


@pytest.mark.parametrize(("api", "path"), [("responses", ("output", 0, "call_id")), ("anthropic", ("content", 0, "id"))])
def test_an_id_that_cannot_be_written_is_cleaned(api: str, path: Any) -> None:
    body = ANSWERS[api]()
    body[path[0]][path[1]][path[2]] = "\ud800"
    assert asked(api, body).message.uses[0].id == "?"


# -- bodies


def talk() -> JudgeRequest:
    return request(
        parameters=Parameters(max_output_tokens=5_000, temperature="0.5"),
        messages=[
            Message(role="user", text=f"the run\n{QUESTIONS}\nwhat about it"),
            Message(role="assistant", text="looking", uses=[use("search", "t1", text="x")]),
            Message(role="user", returns=[ToolReturn(id="t1", text="none", is_error=True)]),
        ],
    )


def test_anthropic_body() -> None:
    body = anthropic_sdk.body_of(talk())
    assert (body["max_tokens"], body["temperature"], body["system"][0]["text"]) == (5_000, 0.5, "s")
    first, second, third = body["messages"]
    assert [block["text"] for block in first["content"]] == ["the run", f"{QUESTIONS}\nwhat about it"]
    assert "cache_control" in first["content"][0]  # the run is the same for every vote
    assert second["content"][1] == {"type": "tool_use", "id": "t1", "name": "search", "input": {"text": "x"}}
    assert third["content"][0] | {"cache_control": 0} == {
        "type": "tool_result", "tool_use_id": "t1", "content": "none", "is_error": True, "cache_control": 0,
    }  # fmt: skip
    assert sum("cache_control" in block for message in body["messages"] for block in message["content"]) <= 3


def test_chat_body() -> None:
    body = openai_sdk.chat_body(talk(), "max_completion_tokens")
    assert (body["max_completion_tokens"], body["temperature"]) == (5_000, 0.5)
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["messages"][2]["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"text": "x"}'}
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "t1", "content": "error: none"}


def test_responses_body() -> None:
    body = openai_sdk.responses_body(talk())
    assert (body["max_output_tokens"], body["store"], body["instructions"]) == (5_000, False, "s")
    assert [item.get("type") or item["role"] for item in body["input"]] == [
        "user", "assistant", "function_call", "function_call_output",
    ]  # fmt: skip


def test_what_is_for_people_is_not_sent() -> None:
    asked = request(api="anthropic", about=["nobody/knows"], purpose="audit")
    for body in (anthropic_sdk.body_of(asked), openai_sdk.chat_body(asked, "max_tokens"), openai_sdk.responses_body(asked)):
        assert "nobody/knows" not in json.dumps(body)
        assert '"audit"' not in json.dumps(body)


# -- stored


def stored(tmp_path: Path, inner: Any, prices: Prices | None = None) -> tuple[StoredBackend, LocalStore]:
    store = LocalStore(tmp_path / "store")
    return StoredBackend(store, lambda key: f"exchanges/{key}.json", inner, prices), store


def test_an_answer_is_stored_and_not_asked_for_again(tmp_path: Path) -> None:
    inner = in_turn(SAID)
    backend, store = stored(tmp_path, inner, Prices(input_per_million="1", output_per_million="2"))
    assert backend.complete(request()) == SAID
    assert backend.complete(request()) == SAID
    assert len(inner.asked) == 1
    exchange = Exchange.model_validate_json(store.get(f"exchanges/{request().key}.json"))
    assert (exchange.key, exchange.request, exchange.cost_usd) == (request().key, request(), "2.000010000")


def test_the_first_stored_reply_counts(tmp_path: Path) -> None:
    other = reply(text="another")

    def late(asked: JudgeRequest) -> JudgeReply:  # another Job stores its reply while this one is asked
        stored(tmp_path, in_turn(other))[0].complete(asked)
        return SAID

    assert stored(tmp_path, Told(late))[0].complete(request()) == other


def test_a_changed_exchange_is_refused(tmp_path: Path) -> None:
    backend, store = stored(tmp_path, in_turn(SAID))
    backend.complete(request())
    data = store.get(f"exchanges/{request().key}.json")
    store.put_once(f"exchanges/{request(vote=2).key}.json", data)
    with pytest.raises(Refused, match="holds the exchange of another request") as raised:
        backend.complete(request(vote=2))
    assert raised.value.reason == "EvidenceSwapped"
    renamed = json.loads(data) | {"key": request(vote=4).key}  # an answer to other words under this key
    store.put_once(f"exchanges/{request(vote=4).key}.json", json.dumps(renamed).encode())
    with pytest.raises(Refused, match="holds the exchange of another request"):
        backend.complete(request(vote=4))
    store.put_once(f"exchanges/{request(vote=3).key}.json", b"{}")
    with pytest.raises(Refused, match="is no exchange") as raised:
        backend.complete(request(vote=3))
    assert raised.value.reason == "EvidenceChanged"


def test_an_answer_by_another_model_neither_counts_nor_is_stored(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")

    def backend(inner: Any, model: str | None) -> StoredBackend:
        return StoredBackend(store, lambda key: f"exchanges/{key}.json", inner, None, model)

    other = SAID.model_copy(update={"model": "judge-2"})
    for expected in (SAID.model, None):
        asked = backend(in_turn(SAID, other), expected)
        asked.complete(request(vote=1 if expected else 3))
        with pytest.raises(Refused, match="is by judge-2, the answers before it by judge-1") as raised:
            asked.complete(request(vote=2))
        assert raised.value.reason == "JudgeModelChanged"
        with pytest.raises(NotFound):
            store.get(f"exchanges/{request(vote=2).key}.json")
    with pytest.raises(Refused, match=f"{request().key}.json is by judge-1, the answers before it by judge-9"):
        backend(in_turn(SAID), "judge-9").complete(request())  # stored by a Job that expected another
    plain = OneModelBackend(in_turn(SAID, other))
    assert plain.complete(request()) == SAID
    with pytest.raises(Refused, match="is by judge-2, the answers before it by judge-1"):
        plain.complete(request(vote=2))
    unnamed = SAID.model_copy(update={"model": ""})
    with pytest.raises(Refused, match="a model it does not name"):
        backend(in_turn(unnamed), "judge-1").complete(request(vote=4))
    with pytest.raises(Refused, match="is by judge-1, the answers before it by one without name"):
        backend(in_turn(SAID), "").complete(request(vote=5))  # the plan asked, and the endpoint named none
    assert backend(in_turn(unnamed), "").complete(request(vote=5)) == unnamed


def too_large(words: str) -> Told:
    def say(asked: JudgeRequest) -> JudgeReply:
        raise RequestTooLarge(f"https://judge: HTTP 400: {words}")

    return Told(say)


def test_that_a_request_is_too_large_is_stored_like_any_other_answer(tmp_path: Path) -> None:
    """Another time the endpoint may say it in other words, or take it: whoever runs again has to come to the same end."""
    backend, store = stored(tmp_path, too_large("prompt is too long (request 1)"))
    with pytest.raises(RequestTooLarge, match="request 1"):
        backend.complete(request())
    exchange = Exchange.model_validate_json(store.get(f"exchanges/{request().key}.json"))
    assert (exchange.request, exchange.reply.stop, exchange.cost_usd) == (request(), "too-large", None)
    for inner in (too_large("prompt is too long (request 2)"), in_turn(SAID)):
        again, _ = stored(tmp_path, inner)
        with pytest.raises(RequestTooLarge, match="request 1"):
            again.complete(request())
        assert inner.asked == []
    assert again.complete(request(vote=2)) == SAID  # it said nothing of which model answers


# -- recordings


def test_a_recording_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        """The program is gone before the file has its name."""

    def link(source: str, target: Path) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("realcli_judge.backends.recordings.os.link", link)
        with pytest.raises(Killed):
            RecordBackend(tmp_path, in_turn(SAID)).complete(request())
    assert list(tmp_path.glob("*.json")) == []
    assert RecordBackend(tmp_path, in_turn(SAID)).complete(request()) == SAID
    assert [path.name for path in tmp_path.iterdir()] == [f"{request().key}.json"]


def test_a_recording_says_too_that_a_request_is_too_large(tmp_path: Path) -> None:
    with pytest.raises(RequestTooLarge, match="too long"):
        RecordBackend(tmp_path, too_large("prompt is too long")).complete(request())
    with pytest.raises(RequestTooLarge, match="too long"):
        ReplayBackend(tmp_path).complete(request())


def test_record_and_replay(tmp_path: Path) -> None:
    inner = in_turn(SAID)
    recorder = RecordBackend(tmp_path / "r", inner)
    assert recorder.complete(request()) == SAID
    assert ReplayBackend(tmp_path / "r").complete(request()) == SAID
    assert [path.name for path in (tmp_path / "r").iterdir()] == [f"{request().key}.json"]


def test_record_refuses_to_overwrite(tmp_path: Path) -> None:
    RecordBackend(tmp_path, in_turn(SAID)).complete(request())
    before = (tmp_path / f"{request().key}.json").read_bytes()
    inner = in_turn(reply(text="other"))
    with pytest.raises(BackendRefused, match="is not overwritten"):
        RecordBackend(tmp_path, inner).complete(request())
    assert inner.asked == []
    assert (tmp_path / f"{request().key}.json").read_bytes() == before


def test_a_miss_names_checks_key_and_the_nearest_recording(tmp_path: Path) -> None:
    recorder = RecordBackend(tmp_path, in_turn(SAID))
    near = request(messages=[Message(role="user", text="hello world, this is exchange 1")])
    recorder.complete(near)
    recorder.complete(request(model="another"))
    asked = request(messages=[Message(role="user", text="hello world, this is exchange 2")])
    with pytest.raises(ReplayMiss) as raised:
        ReplayBackend(tmp_path).complete(asked)
    told = str(raised.value)
    assert "no recording of checks (p1/a, p1/b), vote 1" in told
    assert asked.key in told
    assert f"the nearest is {near.key}.json, which first differs at messages[0].text" in told
    assert "this is exchange 2" in told
    assert "this is exchange 1" in told


def test_a_miss_without_any_recording(tmp_path: Path) -> None:
    with pytest.raises(ReplayMiss, match="there is no recording at all"):
        ReplayBackend(tmp_path).complete(request())
    with pytest.raises(BackendRefused, match="no directory of recordings"):
        ReplayBackend(tmp_path / "nowhere")


def test_a_longer_request_differs_where_it_goes_on(tmp_path: Path) -> None:
    RecordBackend(tmp_path, in_turn(SAID)).complete(request())
    longer = request(messages=[*request().messages, Message(role="assistant", text="x")])
    with pytest.raises(ReplayMiss, match=r"differs at messages\[1\]\.role, which only the asked request has"):
        ReplayBackend(tmp_path).complete(longer)


# -- which one


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "REALCLI_KEY_JUDGE is not set: does key k of Secret s exist"),
        ({"REALCLI_JUDGE_BACKEND": "replay"}, "expected replay:DIR or record:DIR"),
        ({"REALCLI_JUDGE_BACKEND": "guess:/x"}, "expected replay:DIR or record:DIR"),
        ({"REALCLI_JUDGE_BACKEND": "replay:/nowhere/at/all"}, "no directory of recordings"),
    ],
)
def test_backends_that_cannot_be_opened(environ: dict[str, str], told: str) -> None:
    from realcli.api.judge import JudgeModel

    endpoint = {"url": "https://a/v1", "apiKey": {"secretRef": {"name": "s", "key": "k"}}}
    model = JudgeModel.model_validate({"model": "m", "endpoints": {"chat": endpoint}})
    with pytest.raises(BackendRefused, match=told):
        open_backend(model, environ)
    opened = open_backend(model, {"REALCLI_KEY_JUDGE": KEY})
    assert isinstance(opened, openai_sdk.OpenAIBackend)


@pytest.mark.parametrize("backend", [anthropic_sdk.AnthropicBackend, openai_sdk.OpenAIBackend])
def test_a_backend_that_nobody_holds_ends_its_connections(backend: Any) -> None:
    made = backend(None, KEY)
    client = made._client._client
    assert not client.is_closed
    del made
    gc.collect()
    assert client.is_closed
