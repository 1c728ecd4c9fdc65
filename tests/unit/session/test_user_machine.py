"""The simulated user's state machine: a table of conversations and a property test over arbitrary agents."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.benchmark.models import Edit, Probe, Script, Slice
from realcli.benchmark.problems import BenchmarkError
from realcli_session.user.machine import (
    NEUTRAL_ANSWERS,
    Action,
    Close,
    Cut,
    Interim,
    Planted,
    PlantFailed,
    PutPlant,
    Say,
    Start,
    State,
    Untriggered,
    Wrote,
    Yielded,
    initial,
    step,
)

SCENARIO = "or.verify.concurrent-edit"


def a_probe(name: str, slice_: str | None = None, wait: str | None = None, edit: bool = False) -> Probe:
    return Probe(
        id=name,
        scenario=SCENARIO,
        text=f"probe text {name}",
        slice=slice_,
        edit=Edit(path="/app/f", insert=["user line"]) if edit else None,
        wait_for_write=wait,
    )


def a_script(order: list[str], batches: dict[str, list[str]], probes: list[Probe] = []) -> Script:  # noqa: B006
    names = [s for ids in batches.values() for s in ids] + [p.slice for p in probes if p.slice]
    return Script(
        persona="p",
        opener="the opener",
        closer="the closer",
        slices=[Slice(id=n, text=f"text of {n}", requirements=[n]) for n in names],
        order=order,
        batches=batches,
        probes=probes,
    )


def play(state: State, *events: object) -> tuple[State, list[Action]]:
    said: list[Action] = []
    for event in events:
        state, actions = step(state, event)  # type: ignore[arg-type]
        said += actions
    return state, said


def brief(actions: list[Action]) -> list[str]:
    out: list[str] = []
    for action in actions:
        match action:
            case Say():
                out.append(f"{action.message_id}/{action.exchange} {'+'.join(action.source_ids)}")
            case PutPlant():
                out.append(f"plant {action.probe}")
            case Interim():
                out.append(f"interim {action.slices_pending} {action.probes_pending}")
            case Untriggered():
                out.append(f"untriggered {action.probe} {action.reason}")
            case Close():
                out.append(f"close {action.message_id}")
    return out


Y = Yielded()
Q = Yielded(question=True)
WAITING = a_script(["batch:a", "probe:p", "batch:b"], {"a": ["s1", "s2"], "b": ["s3"]}, [a_probe("p", "s4", "/app/f", edit=True)])
TWO = a_script(["batch:a", "probe:p", "probe:q"], {"a": ["s1"]}, [a_probe("p", "s2"), a_probe("q", "s3")])

CONVERSATIONS = {
    "the opener starts exchange 1 and waits": (WAITING, [Start()], ["m1/1 opener"]),
    "one batch per yield, slices joined": (WAITING, [Start(), Y], ["m1/1 opener", "interim 4 1", "m2/2 slice:s1+slice:s2"]),
    "a waiting probe lets the next batch go first": (
        WAITING,
        [Start(), Y, Y],
        ["m1/1 opener", "interim 4 1", "m2/2 slice:s1+slice:s2", "interim 2 1", "m3/3 slice:s3"],
    ),
    "written: plant first, then the probe": (
        WAITING,
        [Start(), Y, Wrote("/app/f"), Y, Planted("p"), Y, Y],
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
    "written late: the probe comes after the batches": (
        WAITING,
        [Start(), Y, Y, Wrote("/app/f"), Y, Planted("p"), Y],
        [
            "m1/1 opener",
            "interim 4 1",
            "m2/2 slice:s1+slice:s2",
            "interim 2 1",
            "m3/3 slice:s3",
            "interim 1 1",
            "plant p",
            "m4/4 probe:p+slice:s4",
            "close m5",
        ],
    ),
    "never written: not reached, its slice is said plainly before the claim is accepted": (
        WAITING,
        [Start(), Y, Y, Y, Y],
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
    "another file does not release the probe": (
        WAITING,
        [Start(), Wrote("/app/g"), Y, Y],
        ["m1/1 opener", "interim 4 1", "m2/2 slice:s1+slice:s2", "interim 2 1", "m3/3 slice:s3"],
    ),
    "a plant that fails: the slice plainly, in the same message slot": (
        WAITING,
        [Start(), Y, Wrote("/app/f"), Y, PlantFailed("p"), Y, Y],
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
    "a question is answered by the next item and is no claim": (
        WAITING,
        [Start(), Q],
        ["m1/1 opener", "m2/2 slice:s1+slice:s2"],
    ),
    "a question with nothing left is answered neutrally, three times": (
        a_script(["batch:a"], {"a": ["s1"]}),
        [Start(), Y, Q, Q, Q, Q],
        ["m1/1 opener", "interim 1 0", "m2/2 slice:s1", "m3/3 neutral", "m4/4 neutral", "m5/5 neutral", "close m6"],
    ),
    "a question does not replace the claim": (
        a_script(["batch:a"], {"a": ["s1"]}),
        [Start(), Y, Q, Y],
        ["m1/1 opener", "interim 1 0", "m2/2 slice:s1", "m3/3 neutral", "close m4"],
    ),
    "two probes are a response apart": (
        TWO,
        [Start(), Y, Y, Y, Y],
        [
            "m1/1 opener",
            "interim 3 2",
            "m2/2 slice:s1",
            "interim 2 2",
            "m3/3 probe:p+slice:s2",
            "interim 1 1",
            "m4/4 probe:q+slice:s3",
            "close m5",
        ],
    ),
    "cut before the probe": (WAITING, [Start(), Cut(True)], ["m1/1 opener", "untriggered p not_reached"]),
    "cut right after the probe": (
        TWO,
        [Start(), Y, Y, Cut(False)],
        [
            "m1/1 opener",
            "interim 3 2",
            "m2/2 slice:s1",
            "interim 2 2",
            "m3/3 probe:p+slice:s2",
            "untriggered q not_reached",
            "untriggered p cut",
        ],
    ),
    "cut when the agent had reacted to the probe": (
        TWO,
        [Start(), Y, Y, Cut(True)],
        ["m1/1 opener", "interim 3 2", "m2/2 slice:s1", "interim 2 2", "m3/3 probe:p+slice:s2", "untriggered q not_reached"],
    ),
    "cut while planting": (
        WAITING,
        [Start(), Y, Wrote("/app/f"), Y, Cut(True)],
        ["m1/1 opener", "interim 4 1", "m2/2 slice:s1+slice:s2", "interim 2 1", "plant p", "untriggered p not_reached"],
    ),
    "a cut after the end says nothing": (
        a_script(["batch:a"], {"a": ["s1"]}),
        [Start(), Y, Y, Cut(True)],
        ["m1/1 opener", "interim 1 0", "m2/2 slice:s1", "close m3"],
    ),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversation(name: str) -> None:
    script, events, expected = CONVERSATIONS[name]
    _, actions = play(initial(script), *events)
    assert brief(actions) == expected


def test_texts_are_the_scripts_own() -> None:
    _, actions = play(initial(WAITING), Start(), Y, Wrote("/app/f"), Y, Planted("p"), Y, Y)
    texts = [a.text for a in actions if isinstance(a, Say | Close)]
    assert texts == ["the opener", "text of s1\n\ntext of s2", "probe text p", "text of s3", "the closer"]


@pytest.mark.parametrize(
    ("event", "before"),
    [(Y, []), (Start(), [Start()]), (Planted("p"), [Start()]), (Y, [Start(), Y, Wrote("/app/f"), Y]), (Planted("q"), [Start()])],
)
def test_what_cannot_happen_is_an_error(event: object, before: list[object]) -> None:
    state, _ = play(initial(WAITING), *before)
    with pytest.raises(ValueError):  # noqa: PT011
        step(state, event)  # type: ignore[arg-type]


DEFECTS = {
    "an item that does not exist": ({"order": ["batch:a", "probe:p", "batch:b", "batch:x"]}, "'batch:x' names nothing"),
    "a batch that would never be said": ({"order": ["batch:a", "probe:p"]}, "'batch:b' is missing"),
    "a slice that would be said twice": ({"batches": {"a": ["s1", "s2"], "b": ["s3", "s1"]}}, "is released 2 times"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_script_that_cannot_be_played_is_refused(name: str) -> None:
    changes, expected = DEFECTS[name]
    with pytest.raises(BenchmarkError, match=expected):
        initial(WAITING.model_copy(update=changes))


# ---------------------------------------------------------------------------------------------------------------- property
@st.composite
def scripts(draw: st.DrawFn) -> Script:
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    names = iter(f"s{i}" for i in range(100))
    batches = {f"b{i}": [next(names) for _ in range(n)] for i, n in enumerate(counts)}
    probes = [
        a_probe(
            f"p{i}",
            next(names) if draw(st.booleans()) else None,
            draw(st.sampled_from([None, "/app/f", "/app/g"])),
            draw(st.booleans()),
        )
        for i in range(draw(st.integers(0, 4)))
    ]
    order = draw(st.permutations([f"batch:{b}" for b in batches] + [f"probe:{p.id}" for p in probes]))
    return a_script(list(order), batches, probes)


@settings(max_examples=300, deadline=None)
@given(script=scripts(), data=st.data())
def test_whatever_the_agent_does(script: Script, data: st.DataObject) -> None:
    """Every mandatory slice is said before the claim is accepted, nothing twice, in order, one item per message, and it ends."""
    state, actions = step(initial(script), Start())
    log: list[object] = list(actions)
    bound = 2 + len(script.order) + len(script.probes) + NEUTRAL_ANSWERS
    for _ in range(bound):
        if state.ended:
            break
        for path in data.draw(st.lists(st.sampled_from(["/app/f", "/app/g", "/app/h"]), max_size=2)):
            state, actions = step(state, Wrote(path))
            assert actions == ()
        state, actions = step(state, Yielded(question=data.draw(st.booleans())))
        log += [Yielded(), *actions]
        while state.planting is not None:
            outcome = Planted(state.planting) if data.draw(st.booleans()) else PlantFailed(state.planting)
            state, actions = step(state, outcome)
            log += actions
    assert state.ended
    says = [a for a in log if isinstance(a, Say)]
    assert [s.exchange for s in says] == list(range(1, len(says) + 1))
    releases = [name for s in says for name, _ in s.releases]
    assert len(releases) == len(set(releases))
    assert set(releases) == {s.id for s in script.slices if s.mandatory}
    assert isinstance(log[-1], Close)
    assert sum(isinstance(a, Close) for a in log) == 1
    batches = [s.source_ids for s in says if s.source_ids[0].startswith("slice:") and len(s.source_ids) >= 1]
    expected = [
        tuple(f"slice:{i}" for i in script.batches[o.removeprefix("batch:")]) for o in script.order if o.startswith("batch:")
    ]
    assert [b for b in batches if b in expected] == expected
    delivered = [s.probe.id for s in says if s.probe]
    untriggered = [a.probe for a in log if isinstance(a, Untriggered)]
    assert sorted(delivered + untriggered) == sorted(p.id for p in script.probes)
    between = 0
    for entry in log:
        if isinstance(entry, Yielded):
            between = 0
        elif isinstance(entry, Say):
            between += 1
            assert between == 1 or entry.message_id == "m1"
    for say in says:
        if say.probe and say.probe.wait_for_write:
            assert say.probe.wait_for_write in state.written


@settings(max_examples=200, deadline=None)
@given(script=scripts(), yields=st.integers(0, 6), acted=st.booleans())
def test_a_cut_accounts_for_every_probe(script: Script, yields: int, acted: bool) -> None:
    state, _ = step(initial(script), Start())
    delivered: list[str] = []
    untriggered: dict[str, str] = {}
    last_probe: str | None = None
    for _ in range(yields):
        if state.ended or state.planting:
            break
        state, actions = step(state, Yielded())
        says = [a for a in actions if isinstance(a, Say)]
        untriggered |= {a.probe: a.reason for a in actions if isinstance(a, Untriggered)}
        last_probe = says[-1].probe.id if says and says[-1].probe else None
        delivered += [last_probe] if last_probe else []
    ended = state.ended
    state, actions = step(state, Cut(acted))
    assert state.ended
    cut = {a.probe: a.reason for a in actions if isinstance(a, Untriggered)}
    assert not (cut.keys() & untriggered.keys())
    not_reached = {p for p, r in (untriggered | cut).items() if r != "cut"}
    assert not_reached | set(delivered) == {p.id for p in script.probes}
    assert {p for p, r in cut.items() if r == "cut"} == ({last_probe} if last_probe and not acted and not ended else set())
