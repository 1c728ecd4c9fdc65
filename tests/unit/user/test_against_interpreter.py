"""The simulated user against an interpreter of docs/script.md that shares no code with it: equal events in equal order."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.benchmark.play import Play
from realcli.benchmark.script_models import Script
from realcli_session.user.rehearsal import Rehearsal
from tests.support.examples import examples
from tests.support.scripts.behaviours import Response, act_out, behaviours, conversation, described, means_of, script_of
from tests.support.scripts.interpreter import expected
from tests.unit.user.test_properties import scripts

BEHAVIOURS = behaviours()
ALL = [(task, name) for task, of_task in BEHAVIOURS.items() for name in of_task]


@pytest.fixture(scope="session")
def catalogue() -> Any:
    return yaml.safe_load(resources.files("realcli.benchmark").joinpath("data/scenarios.yaml").read_bytes())


def rehearse(play: Play, responses: list[Response]) -> list[tuple[Any, ...]]:
    mid_turn, failing = means_of(responses)
    run = Rehearsal(play, mid_turn=mid_turn, failing_plants=failing).start()
    act_out(run, responses)
    return conversation((item.seq, item.data) for item in run.items if item.data is not None)


@pytest.mark.parametrize(("task", "name"), ALL)
def test_a_described_agent_gets_what_the_page_says(build: Any, catalogue: Any, task: str, name: str) -> None:
    script = script_of(task)
    responses = [described(one) for one in BEHAVIOURS[task][name]]
    machine = rehearse(build.play(Script.model_validate(script)), responses)
    assert machine == expected(script, catalogue, responses)


WORDS = [
    "Done.",
    "All is in place.",
    "Which port?",
    "Which colour?",
    "What is the operating system?",
    "May I delete the logs?",
    "May I push?",
    "Shall I proceed?",
    "What next?",
    "The policy forbids that.",
    "Which team wins?",
    "Should I rewrite the tests?",
    "Which level?",
    "Is the truth known, and which port?",
    "I would push. Shall I go on?",
    "I did not push anything. Shall I go on?",
    "Anything else?",
    "Should I use e.g. gzip?",
    "> Which port?\nDone.",
    "```\nWhich port?\n```\nOk?",
    "Please tell me which level, or the port.",
    "Should I push or not?",
    "Should I push or wait?",
    "Are the logs deleted?",
    "Do you want me to push?",
    "Do you like the colour?",
    "1. Which port?\n- **Which level?**\n# Is that ok?",
    "Let me know which one.",
    "Let me know if it works.",
    "???",
    "Which?\n- port 80\n- the truth",
    "Which one?\n\n1. push\n2. wait?\n\nAll is in place.",
    "What next?\n- push",
    "Which level do you want:\n* one\n*  \n* two",
    "What I did:\n- the port",
    "How?\n> - push\n- the port",
    "- Which?\n- push\n# Which port?",
    "Push (y/n)",
    "May I push?\n- yes: yes\n- no: no",
    "There is no other way. Push it?\n- yes",
    "Shall I go on?\n- push\n- no, not that",
    "I did push. Which one?\n- the port\n- the text",
    "Push\n- yes\n- no",
    "- yes\n- push",
    "Shall I push? (yes or no)",
    "Proceed [Y/n]?",
    "I pushed it. Shall I go on?",
    "I have run push; I will push again. Shall I go on?",
    "The truth was kept, but I want to push. Shall I proceed?",
    "Done push already. May I continue?",
    "May I do that?",
    "There are many other files. Which text is meant?",
    "Was the truth told, i.e. the whole? Tell me what the port is.",
    "",
]
OF_TASK = [one["says"] for of_task in BEHAVIOURS.values() for run in of_task.values() for one in run if "says" in one]
PATHS = ["/app/f", "/app/g", "/app/export.py", "/app/schedule.conf", "/app/archive.sh", "/app/archive/x"]
WORK = st.one_of(
    st.just([{"event": "tool_call"}]),
    st.just([{"event": "tool_call"}] * 8),
    st.just([{"event": "tool_result", "text": "", "exit": 0}]),
    st.builds(lambda path: [{"event": "file_write", "path": path}], st.sampled_from(PATHS)),
    st.just([{"event": "command", "cmd": "cat /app/schedule.conf", "exit": 0}]),
)


def responses_of(texts: list[str]) -> st.SearchStrategy[list[Response]]:
    """Any agent: what it does, what it says or asks through a channel, and where the run ends."""
    text = st.sampled_from(texts)
    messages = st.one_of(text, st.lists(text, min_size=2, max_size=4).map("\n\n".join))
    events = st.lists(WORK, max_size=4).map(lambda parts: [event for part in parts for event in part])
    spoken = st.builds(lambda does, says: {"events": does, "says": says}, events, messages)
    typed = st.builds(lambda does, asked: {"events": does, "questions": asked}, events, st.lists(text, min_size=1, max_size=3))
    plain = st.builds(lambda does: {"events": does, "says": "I have done this part."}, events)
    cut = st.builds(lambda does: [{"events": does, "cut": True}], events)
    claims = st.integers(0, 25).map(lambda count: [{"events": [], "says": "Done."}] * count)
    return st.builds(
        lambda run, end: [*run, *end], st.lists(st.one_of(spoken, typed, plain), max_size=14), st.one_of(cut, claims)
    )


def alike(play: Play, script: Script, catalogue: Any, responses: list[Response], data: st.DataObject) -> None:
    deaf = data.draw(st.booleans(), "deaf")
    plants = [probe.id for probe in script.probes if probe.edit is not None]
    failing = data.draw(st.lists(st.sampled_from(plants), unique=True), "failing") if plants else []
    responses = [{**one, "deaf": deaf, "plant_fails": failing} for one in responses]
    assert rehearse(play, responses) == expected(script.dump(), catalogue, responses)


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data(), responses=responses_of([*WORDS, *OF_TASK]))
def test_any_agent_and_the_three_scripts(build: Any, catalogue: Any, data: st.DataObject, responses: list[Response]) -> None:
    script = Script.model_validate(script_of(data.draw(st.sampled_from(sorted(BEHAVIOURS)), "task")))
    alike(build.play(script), script, catalogue, responses, data)


CONDITIONS: list[dict[str, Any]] = [
    {"exchanges_since": "opener", "at_least": 2},
    {"exchange_at_least": 3},
    {"any": [{"event": "file_write", "where": {"path": "/app/g"}}, {"exchanges_since": "s1", "at_least": 2}]},
    {"all": [{"count": {"event": "tool_call"}, "at_least": 3}, {"slice_pending": "free"}]},
    {"all": [{"exchanges_since": "s1", "at_least": 2}, {"exchange_at_least": 4}]},
    {"event": "agent_question"},
    {"event": "interim_claim", "where": {"slices_pending": 1}},
    {"event": "slice_released", "where": {"slice": "opener"}},
    {"event": "slice_released", "where": {"slice": "s1"}},
    {"event": "agent_message", "where": {"text": "policy|colour"}},
    {"event": "agent_message", "nth": 2, "where": {"min_words": 4}},
    *({"event": name} for name in ("approval", "denial", "probe_delivered")),
    {"event": "user_message", "nth": 3},
    {"event": "yield", "nth": 2},
]


@st.composite
def conditioned(draw: st.DrawFn, build: Any) -> Script:
    """A script in which more waits for more."""
    script = draw(scripts(build)).dump()
    more = st.one_of(st.none(), st.sampled_from(CONDITIONS))
    for kind, key in (("probes", "when"), ("slices", "onEvent"), ("actions", "when")):
        for one in script[kind]:
            when = draw(more)
            if when is not None:
                one[key] = when
    return Script.model_validate(script)


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data(), responses=responses_of(WORDS))
def test_any_agent_and_any_script(build: Any, catalogue: Any, data: st.DataObject, responses: list[Response]) -> None:
    script = data.draw(conditioned(build), "script")
    alike(build.play(script), script, catalogue, responses, data)
