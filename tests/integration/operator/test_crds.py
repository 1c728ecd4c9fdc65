"""The CRDs on a real API server: defaults, every rule with its message, immutability, strictness, examples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from realcli.api.sweep import IMMUTABLE
from realcli_operator.kube.errors import Invalid

pytestmark = pytest.mark.apiserver
ROOT = Path(__file__).resolve().parents[3]
SWEEPS = "/apis/realcli.dev/v1alpha1/namespaces/two/benchmarksweeps"
TRIALS = "/apis/realcli.dev/v1alpha1/namespaces/two/trials"
DRY = "?dryRun=All&fieldValidation=Strict"
DIGEST = "sha256:" + "0" * 64
SMALLEST = """
apiVersion: realcli.dev/v1alpha1
kind: BenchmarkSweep
metadata: {name: first}
spec:
  benchmark: {source: s3://evals/benchmarks/starter/1.0.0}
  agents: [{name: claude-code}]
  models:
  - name: sonnet
    model: claude-sonnet-4-5
    endpoints: {anthropic: {url: https://api.anthropic.com, apiKey: {secretRef: {name: anthropic, key: api-key}}}}
  storage: {bucket: evals, credentials: {secretRef: {name: evals-s3}}}
"""


def smallest(change: Callable[[dict[str, Any]], Any] | None = None) -> dict[str, Any]:
    sweep: dict[str, Any] = yaml.safe_load(SMALLEST)
    if change is not None:
        change(sweep)
    return sweep


def trial(**spec: Any) -> dict[str, Any]:
    values = {"sweep": "first", "planDigest": DIGEST, "ordinal": 0, "configuration": "claude-code.sonnet", "task": "t"}
    return {
        "apiVersion": "realcli.dev/v1alpha1",
        "kind": "Trial",
        "metadata": {"name": "first-00000"},
        "spec": values | {"mode": "EXEC", "repeat": 1} | spec,
    }


async def test_defaults_are_visible(admin: Any) -> None:
    made = await admin.send("POST", SWEEPS + DRY, smallest())
    spec = made["spec"]
    assert (spec["modes"], spec["repeats"], spec["parallelism"], spec["suspend"]) == (["EXEC", "COLLAB"], 3, 10, False)
    assert spec["limits"] == {
        "turns": 600, "exec": {"deadline": "6h"}, "collab": {"deadline": "10h"}, "wallFactor": "1.5", "pending": "1h",
        "setup": "15m", "verify": "30m", "spoolHold": "24h",
    }  # fmt: skip
    assert spec["agents"][0] == {
        "name": "claude-code", "permissions": "Bypass", "options": {}, "toolImages": [], "mcpServers": []
    }  # fmt: skip
    assert spec["models"][0]["acceptedIds"] == []
    assert spec["simulatedUser"] == {"mode": "Canonical"}
    assert spec["retry"] == {"infrastructure": 3, "backoff": "30s"}
    assert spec["models"][0]["endpoints"]["anthropic"]["insecureHttp"] == "Never"
    assert spec["storage"]["region"] == "us-east-1"


def model(sweep: dict[str, Any]) -> Any:
    return sweep["spec"]["models"][0]


def agent(**given: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda sweep: sweep["spec"]["agents"][0].update(given)


def second(program: str) -> Callable[[dict[str, Any]], Any]:
    return lambda sweep: sweep["spec"]["agents"].append({"name": program})


def again(
    source: dict[str, Any] | None = None, phases: Sequence[str] = ("Judge",), **spec: Any
) -> Callable[[dict[str, Any]], Any]:
    """A sweep of another's runs: it names neither benchmark nor agents nor models."""

    def change(sweep: dict[str, Any]) -> None:
        given = {"sweep": "earlier"} if source is None else source
        sweep["spec"] = {"from": {**given, "phases": list(phases)}, "storage": sweep["spec"]["storage"], **spec}

    return change


USER = {"model": "glm-5.3", "endpoints": {"chat": {"url": "https://z/v1", "apiKey": {"secretRef": {"name": "z", "key": "k"}}}}}


CASES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "long name": (lambda s: s["metadata"].update(name="a" * 41), "metadata.name may have at most 40 characters"),
    "dotted name": (lambda s: s["metadata"].update(name="a.b"), "metadata.name may hold lower case letters"),
    "same agent twice": (lambda s: s["spec"]["agents"].append({"name": "claude-code"}), "Duplicate value"),
    "same model twice": (lambda s: s["spec"]["models"].append(copy.deepcopy(model(s))), "Duplicate value"),
    "same mode twice": (lambda s: s["spec"].update(modes=["EXEC", "EXEC"]), "Duplicate value"),
    "no agents": (lambda s: s["spec"].update(agents=[]), "give agents and models"),
    "no models": (lambda s: s["spec"].pop("models"), "give agents and models"),
    "no benchmark": (lambda s: s["spec"].pop("benchmark"), "benchmark.source is missing"),
    "again, with agents": (again(agents=[{"name": "claude-code"}]), "leave agents and models out"),
    "again, with a budget for agents": (again(budget={"tokens": 5}), "leave budget out: no agent runs"),
    "again, what is not run": (again(retryInvalid=1), "retryInvalid renews nothing here"),
    "again from nowhere": (again({}), "give either sweep or uri"),
    "again from two places": (again({"sweep": "first", "uri": "s3://evals/x"}), "give either sweep or uri"),
    "again with a digest of nothing": (again({"sweep": "first", "lockDigest": DIGEST}), "lockDigest goes with uri"),
    "again from itself": (
        lambda s: (again()(s), s["spec"]["from"].update(sweep=s["metadata"]["name"])),
        "from.sweep is this sweep itself",
    ),
    "again without the judge": (again(phases=["Verify"]), "what is verified again is judged again"),
    "again the work": (again(phases=["Work", "Judge"]), "Unsupported value"),
    "confirmed by a word": (lambda s: s["spec"].update(confirm="yes"), "spec.confirm"),
    "unknown agent": (lambda s: s["spec"].update(agents=[{"name": "mine"}]), "program is missing"),
    "unknown program": (lambda s: s["spec"].update(agents=[{"name": "mine", "program": "vi"}]), "Unsupported value"),
    "no endpoint": (lambda s: model(s).update(endpoints={}), "every model needs endpoints.anthropic"),
    "plain http": (lambda s: model(s)["endpoints"]["anthropic"].update(url="http://x"), "sends the key in clear text"),
    "base URL with /v1": (lambda s: model(s)["endpoints"]["anthropic"].update(url="https://x/v1/"), "leave out /v1 at its end"),
    "no Responses endpoint": (second("codex"), "codex speaks the responses API: every model needs endpoints.responses"),
    "no Chat endpoint": (second("terminus-2"), "terminus-2 speaks the chat API: every model needs endpoints.chat"),
    "asking where nobody asks": (agent(program="terminus-2", permissions="Ask"), "terminus-2 knows permissions Bypass"),
    "unknown permissions": (agent(permissions="Maybe"), "Unsupported value"),
    "files from nowhere": (agent(files={}), "give either source (with digest) or configMapRef"),
    "files without a digest": (agent(files={"source": "s3://evals/a.tar.zst"}), "source and digest go together"),
    "file outside": (
        agent(files={"configMapRef": {"name": "a", "items": [{"key": "k", "path": "/etc/passwd"}]}}),
        "spec.agents[0].files.configMapRef.items[0].path",
    ),
    "variable with two sources": (
        agent(
            mcpServers=[
                {"name": "t", "command": ["t"], "env": [{"name": "A", "value": "b", "secretRef": {"name": "s", "key": "k"}}]}
            ]
        ),
        "give either value or secretRef",
    ),
    "budget without prices": (lambda s: s["spec"].update(limits={"trialBudget": {"usd": "5"}}), "needs models[].prices"),
    "budget that is no number": (
        lambda s: s["spec"].update(limits={"trialBudget": {"usd": "5 $"}}),
        "spec.limits.trialBudget.usd",
    ),
    "sweep budget without prices": (lambda s: s["spec"].update(budget={"usd": "5"}), "budget.usd needs models[].prices"),
    "sweep budget of nothing": (lambda s: s["spec"].update(budget={}), "give usd, tokens or both"),
    "label of ours": (
        lambda s: s["spec"].update(pods={"labels": {"kueue.x-k8s.io/queue-name": "mine"}}),
        "are the operator's: use queueName",
    ),
    "annotation of ours": (
        lambda s: s["spec"].update(pods={"annotations": {"realcli.dev/spec-digest": "x"}}),
        "annotations of realcli.dev are the operator's",
    ),
    "toleration of nothing": (lambda s: s["spec"].update(pods={"tolerations": [{"value": "x"}]}), "needs operator: Exists"),
    "label that is none": (lambda s: s["spec"].update(pods={"labels": {"team": "a b"}}), "spec.pods.labels.team"),
    "a volume": (lambda s: s["spec"].update(pods={"volumes": []}), 'unknown field "spec.pods.volumes"'),
    "hold for ever": (lambda s: s["spec"].update(limits={"spoolHold": "8760h"}), "a limit has to be from 1s to 720h"),
    "worded by nobody": (lambda s: s["spec"].update(simulatedUser={"mode": "Model"}), "mode: Model needs simulatedUser.model"),
    "worded over no API": (
        lambda s: s["spec"].update(simulatedUser={"mode": "Model", "model": USER | {"endpoints": {}}}),
        "the simulated user's model needs endpoints.anthropic or endpoints.chat",
    ),
    "prefix with dots": (lambda s: s["spec"]["storage"].update(prefix="../x"), "spec.storage.prefix"),
    "prefix with a hole": (lambda s: s["spec"]["storage"].update(prefix="a//b"), "spec.storage.prefix"),
    "not a duration": (lambda s: s["spec"].update(limits={"setup": "soon"}), "spec.limits.setup"),
    "no time": (lambda s: s["spec"].update(limits={"exec": {"deadline": "0s"}}), "a limit has to be from 1s to 720h"),
    "no time to be scheduled": (lambda s: s["spec"].update(limits={"pending": "5ms"}), "a limit has to be from 1s to 720h"),
    "a year": (lambda s: s["spec"].update(limits={"collab": {"deadline": "8760h"}}), "a limit has to be from 1s to 720h"),
    "an age": (lambda s: s["spec"].update(limits={"verify": "99999999999h"}), "spec.limits.verify"),
    "no repeats": (lambda s: s["spec"].update(repeats=0), "greater than or equal to 1"),
    "source without path": (lambda s: s["spec"]["benchmark"].update(source="s3://evals"), "spec.benchmark.source"),
    "unknown field": (lambda s: s["spec"].update(tasks=["a"]), 'unknown field "spec.tasks"'),
    "unknown nested field": (lambda s: s["spec"]["storage"].update(buckte="x"), 'unknown field "spec.storage.buckte"'),
}


@pytest.mark.parametrize("name", CASES)
async def test_what_is_wrong_is_refused_with_a_message(admin: Any, name: str) -> None:
    change, message = CASES[name]
    with pytest.raises(Invalid) as refused:
        await admin.send("POST", SWEEPS + DRY, smallest(change))
    assert message in refused.value.message


async def test_what_is_unusual_is_accepted(admin: Any) -> None:
    def change(sweep: dict[str, Any]) -> None:
        model(sweep)["endpoints"]["anthropic"]["apiKey"]["secretRef"]["name"] = "a.secret-may-have-a-long-name" * 8
        sweep["spec"].update(limits={"setup": "1h30m0.5s", "verify": "720h"}, retry={"backoff": "0s"})

    await admin.send("POST", SWEEPS + DRY, smallest(change))
    for prefix in ("", "realcli", "/a/b.c_d-e/", "team/v1"):
        await admin.send("POST", SWEEPS + DRY, smallest(lambda s, p=prefix: s["spec"]["storage"].update(prefix=p)))
    url = "https://gateway.example/v1/anthropic"
    await admin.send("POST", SWEEPS + DRY, smallest(lambda s: model(s)["endpoints"]["anthropic"].update(url=url)))
    worded = {"mode": "Model", "model": USER}
    made = await admin.send("POST", SWEEPS + DRY, smallest(lambda s: s["spec"].update(simulatedUser=worded)))
    assert made["spec"]["simulatedUser"]["model"]["temperature"] == "0"


async def test_plain_http_is_for_services_of_the_cluster(admin: Any) -> None:
    def change(sweep: dict[str, Any]) -> None:
        model(sweep)["endpoints"]["anthropic"].update(url="http://litellm.llm:4000", insecureHttp="InCluster")

    await admin.send("POST", SWEEPS + DRY, smallest(change))


CHANGES: dict[str, dict[str, Any]] = {
    "benchmark": {"benchmark": {"digest": DIGEST}},
    "agents": {"agents": [{"name": "claude-code", "version": "2.1.141"}]},
    "models": {"models": []},
    "modes": {"modes": ["EXEC"]},
    "repeats": {"repeats": 2},
    "limits": {"limits": {"turns": 5}},
    "retry": {"retry": {"backoff": "1s"}},
    "storage": {"storage": {"prefix": "x"}},
    "queueName": {"queueName": "other"},
    "pods": {"pods": {"nodeSelector": {"pool": "other"}}},
}


async def test_the_spec_is_immutable_but_for_some_fields(admin: Any) -> None:
    await admin.send("POST", SWEEPS, smallest(lambda s: s["metadata"].update(name="fixed")))
    path = f"{SWEEPS}/fixed"
    try:
        await admin.merge(path, {"spec": {"suspend": True, "parallelism": 3, "budget": {"tokens": 5}}})
        await admin.merge(path, {"spec": {"budget": None}})
        for field, change in CHANGES.items():
            with pytest.raises(Invalid) as refused:
                await admin.merge(path, {"spec": change})
            assert f"spec.{field}" in refused.value.message
            if field != "models":
                assert IMMUTABLE in refused.value.message
    finally:
        await admin.send("DELETE", path)


async def test_a_sweep_of_another_s_runs_fits_on_five_lines(admin: Any) -> None:
    made = await admin.send("POST", SWEEPS + DRY, smallest(again(phases=["Verify", "Judge"])))
    assert (made["spec"]["agents"], made["spec"]["models"]) == ([], [])
    assert made["spec"]["from"] == {"sweep": "earlier", "phases": ["Verify", "Judge"]}
    await admin.send("POST", SWEEPS + DRY, smallest(again({"uri": "s3://evals/sweeps/one/first-1", "lockDigest": DIGEST})))


async def test_what_a_sweep_is_made_from_never_changes_and_a_confirmation_may(admin: Any) -> None:
    def named(name: str, change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        return smallest(lambda s: (change(s), s["metadata"].update(name=name)))

    await admin.send("POST", SWEEPS, named("made-again", again()))
    await admin.send("POST", SWEEPS, named("made-once", lambda s: None))
    paths = [f"{SWEEPS}/made-again", f"{SWEEPS}/made-once"]
    changes: list[tuple[str, dict[str, Any]]] = [
        (paths[0], {"from": {"sweep": "second"}}),
        (paths[0], {"from": {"phases": ["Verify", "Judge"]}}),
        (paths[1], {"from": {"sweep": "first", "phases": ["Judge"]}}),
    ]
    try:
        for path, change in changes:
            with pytest.raises(Invalid) as refused:
                await admin.merge(path, {"spec": change})
            assert IMMUTABLE in refused.value.message, change
        for path in paths:
            made = await admin.merge(path, {"spec": {"confirm": DIGEST}})
            assert made["spec"]["confirm"] == DIGEST
            await admin.merge(path, {"spec": {"confirm": None}})
    finally:
        for path in paths:
            await admin.send("DELETE", path)


async def test_invalid_repeats_are_renewed_step_by_step_and_never_back(admin: Any) -> None:
    await admin.send("POST", SWEEPS, smallest(lambda s: s["metadata"].update(name="again")))
    path = f"{SWEEPS}/again"
    try:
        for number in (1, 1, 3):
            changed = await admin.merge(path, {"spec": {"retryInvalid": number, "allowIncomplete": number > 1}})
            assert (changed["spec"]["retryInvalid"], changed["spec"]["allowIncomplete"]) == (number, number > 1)
        await admin.merge(path, {"spec": {"allowIncomplete": False}})
        for back in (2, None):
            with pytest.raises(Invalid, match="retryInvalid only goes up"):
                await admin.merge(path, {"spec": {"retryInvalid": back}})
    finally:
        await admin.send("DELETE", path)


async def test_what_is_cancelled_stays_so(admin: Any) -> None:
    await admin.send("POST", SWEEPS, smallest(lambda s: s["metadata"].update(name="over")))
    path = f"{SWEEPS}/over"
    try:
        await admin.merge(path, {"spec": {"cancel": True}})
        with pytest.raises(Invalid, match="cancel is final"):
            await admin.merge(path, {"spec": {"cancel": False}})
    finally:
        await admin.send("DELETE", path)


async def test_of_a_model_the_concurrency_alone_may_change(admin: Any) -> None:
    await admin.send("POST", SWEEPS, smallest(lambda s: s["metadata"].update(name="concurrent")))
    path = f"{SWEEPS}/concurrent"

    async def change(**values: Any) -> Any:
        made = await admin.send("GET", path)
        return await admin.merge(path, {"spec": {"models": [model(made) | values]}})

    try:
        assert model(await change(maxConcurrentTrials=40))["maxConcurrentTrials"] == 40
        await change(maxConcurrentTrials=None)
        await change(maxConcurrentTrials=3)
        price = {"inputPerMillion": "1", "outputPerMillion": "1"}
        chat = {"chat": {"url": "https://x/v1", "apiKey": {"secretRef": {"name": "x", "key": "k"}}}}
        refusals: list[dict[str, Any]] = [
            {"model": "other"}, {"name": "other"}, {"acceptedIds": ["x"]}, {"prices": price}, {"contextTokens": 20000},
            {"endpoints": {**model(smallest())["endpoints"], **chat}},
        ]  # fmt: skip
        for refused in refusals:
            with pytest.raises(Invalid) as error:
                await change(**refused)
            assert IMMUTABLE in error.value.message, refused
        more = [model(smallest()), model(smallest()) | {"name": "second"}]
        with pytest.raises(Invalid) as error:
            await admin.merge(path, {"spec": {"models": more}})
        assert IMMUTABLE in error.value.message
        with pytest.raises(Invalid, match="maxConcurrentTrials"):
            await change(maxConcurrentTrials=0)
    finally:
        await admin.send("DELETE", path)


async def test_a_trial_shows_that_it_is_pending_and_never_changes(admin: Any) -> None:
    made = await admin.send("POST", TRIALS + "?fieldValidation=Strict", trial())
    path = f"{TRIALS}/first-00000"
    try:
        assert made["status"] == {"phase": "Pending"}
        selected = await admin.send("GET", f"{TRIALS}?fieldSelector=status.phase%3DPending,spec.sweep%3Dfirst,spec.mode%3DEXEC")
        assert [item["metadata"]["name"] for item in selected["items"]] == ["first-00000"]
        assert (await admin.send("GET", f"{TRIALS}?fieldSelector=status.phase%3DSealed"))["items"] == []
        with pytest.raises(Invalid, match="spec of a Trial is immutable"):
            await admin.merge(path, {"spec": {"repeat": 2}})
    finally:
        await admin.send("DELETE", path)


async def test_columns_are_those_of_the_documentation(admin: Any) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    sweep = await admin.send("GET", f"{crds}/benchmarksweeps.realcli.dev")
    trials = await admin.send("GET", f"{crds}/trials.realcli.dev")

    def columns(crd: Any) -> list[str]:
        return [c["name"] for c in crd["spec"]["versions"][0]["additionalPrinterColumns"] if not c.get("priority")]

    assert columns(sweep) == ["State", "Ready", "Trials", "Valid", "Invalid", "Cost", "R-EXEC", "R-COLLAB", "S", "J", "Age"]
    assert columns(trials) == ["Task", "Mode", "Repeat", "Attempt", "Phase", "Reason", "Reward", "Turns", "Age"]
    assert sweep["status"]["acceptedNames"]["shortNames"] == ["sweep", "sweeps", "sw"]
    assert trials["status"]["acceptedNames"]["shortNames"] == ["tr"]
    for crd in (sweep, trials):
        conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
        assert conditions["NamesAccepted"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"


def example_sweeps() -> list[Any]:
    files = sorted((ROOT / "examples").glob("*.yaml"))
    documents = [(file, document) for file in files for document in yaml.safe_load_all(file.read_text())]
    return [pytest.param(d, id=f.name) for f, d in documents if d and d["kind"] == "BenchmarkSweep"]


@pytest.mark.parametrize("sweep", example_sweeps())
async def test_examples_are_accepted(admin: Any, sweep: dict[str, Any]) -> None:
    sweep["metadata"]["namespace"] = "two"
    await admin.send("POST", SWEEPS + DRY, sweep)
