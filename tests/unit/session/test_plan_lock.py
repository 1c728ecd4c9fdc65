"""From a sweep to its lock and plan: sorted factors, resolved limits, refusals that name field and remedy."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.agents import Agent
from realcli.api.base import sha256_digest
from realcli.api.plan import Deviation, Lock, plan_of
from realcli_session.plan.lock import ConfigurationRefused, PlanRequest, _configuration, build_lock, with_answers

DIGEST = sha256_digest(b"index")
DEVIATION = Deviation(program="claude-code", setting="DISABLE_AUTOUPDATER", value="1", reason="pinned version")


def lock(request: PlanRequest, index: Any, deviations: list[Deviation] = [DEVIATION]) -> Lock:  # noqa: B006
    return build_lock(request, index, DIGEST, lambda _: deviations, "realcli/0.1.0", "2026-01-01T00:00:00Z")


def models(*names: str) -> list[dict[str, Any]]:
    endpoint = {"url": "https://api.example", "apiKey": {"secretRef": {"name": "a", "key": "k"}}}
    return [{"name": n, "model": f"id-{n}", "endpoints": {"anthropic": endpoint}} for n in names]


def test_factors_are_sorted_and_the_plan_counts_them(build: Any) -> None:
    request = build.request(
        agents=[{"name": "z", "program": "claude-code"}, {"name": "claude-code"}],
        models=models("m2", "m1"),
        modes=["EXEC", "COLLAB"],
    )
    made = lock(request, build.index(build.task("beta"), build.task("alpha")))
    plan = plan_of(made, "root", sha256_digest(b"lock"))
    assert [t.name for t in plan.tasks] == ["alpha", "beta"]
    assert [c.name for c in plan.configurations] == ["claude-code.m1", "claude-code.m2", "z.m1", "z.m2"]
    assert plan.modes == ["COLLAB", "EXEC"]
    assert plan.size == 2 * 3 * 4 * 2
    assert plan.coordinates(0)[1:] == ("alpha", 1, "claude-code.m1", "COLLAB")


@pytest.mark.parametrize(("task", "sweep", "expected"), [(60.0, "30m", 60.0), (7200.0, "30m", 1800.0)])
def test_the_verifiers_limit_is_the_smaller_one(build: Any, task: float, sweep: str, expected: float) -> None:
    request = build.request(limits={"verify": sweep})
    assert lock(request, build.index(build.task(verifier_seconds=task))).tasks[0].verifier_seconds == expected


def test_deviations_stand_in_the_lock_and_in_the_key(build: Any) -> None:
    with_one, without = lock(build.request(), build.index()), lock(build.request(), build.index(), [])
    assert with_one.deviations == [DEVIATION]
    assert with_one.configurations[0].key != without.configurations[0].key


@pytest.mark.parametrize(("program", "reads"), [("terminus-2", True), ("claude-code", False)])
def test_a_models_context_stands_in_the_key_of_who_reads_it(build: Any, program: str, reads: bool) -> None:
    plain = build.request().spec.models[0]
    endpoints = plain.endpoints.model_copy(update={"chat": plain.endpoints.anthropic})
    keys = set()
    for tokens in (None, 128_000, 200_000):
        model = plain.model_copy(update={"context_tokens": tokens, "endpoints": endpoints})
        agent = Agent(name="a", program=program)
        keys.add(_configuration(agent, model, [], None, "", {}).key)
    assert len(keys) == (3 if reads else 1)


def test_what_a_program_consists_of_stands_in_the_key(build: Any) -> None:
    def key(parts: dict[str, str]) -> str:
        args = (build.request(), build.index(), DIGEST, lambda _: [], "realcli/0.1.0", "2026-01-01T00:00:00Z")
        return build_lock(*args, parts=lambda _: parts).configurations[0].key

    assert len({key({}), key({"templates": "sha256:1"}), key({"templates": "sha256:2"})}) == 3


@pytest.mark.parametrize(
    "change",
    [{"models": models("other")}, {"agents": [{"name": "claude-code", "version": "2.1.141"}]}],
    ids=["model", "version"],
)
def test_the_key_covers_what_is_measured(build: Any, change: dict[str, Any]) -> None:
    request = build.request(**change)
    agents = {"claude-code/2.1.140": "a", "claude-code/2.1.141": "b"}
    images = request.platform.images.model_copy(update={"agents": agents})
    request = request.model_copy(update={"platform": request.platform.model_copy(update={"images": images})})
    changed = lock(request, build.index()).configurations[0].key
    assert changed != lock(build.request(), build.index()).configurations[0].key


def http(url: str, **fields: Any) -> dict[str, Any]:
    endpoint = {"url": url, "apiKey": {"secretRef": {"name": "a", "key": "k"}}, **fields}
    return {"models": [{"name": "m", "model": "id", "endpoints": {"anthropic": endpoint}}]}


REFUSALS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no image of the version": (
        {"agents": [{"name": "claude-code", "version": "9.9.9"}]},
        {},
        r"spec\.agents\[claude-code\]\.version: the operator has no image of claude-code 9\.9\.9; it has claude-code/2\.1\.140",
    ),
    "two configurations of one name": (
        {
            "agents": [{"name": "claude-code"}, {"name": "claude-code.x", "program": "claude-code"}],
            "models": models("x.y", "y"),
        },
        {},
        r"spec\.agents, spec\.models: 'claude-code\.x\.y' is the name of more than one configuration \(claude-code with x\.y, "
        r"claude-code\.x with y\); call",
    ),
    "an unknown program": ({"agents": [{"name": "mine"}]}, {}, r"spec\.agents\[mine\]\.program: 'mine' is no agent program"),
    "an image without a libc": ({}, {"libc": "none"}, r"cannot be started in the image of task alpha \(libc: none\)"),
    "an image with a libc the program is not built for": ({}, {"libc": "musl"}, r"\(libc: musl\); it needs glibc"),
    "no endpoint of the agent's API": (
        {"models": [{"name": "m", "model": "id", "endpoints": {}}]},
        {},
        r"spec\.models\[m\]\.endpoints\.anthropic is missing; agent claude-code",
    ),
    "http without leave": (http("http://litellm.llm.svc:4000"), {}, r"endpoints\.anthropic\.url: .*insecureHttp"),
    "http to the outside": (http("http://api.example.com", insecureHttp="InCluster"), {}, r"not a Service of this cluster"),
    "an Anthropic endpoint with /v1": (http("https://api.example.com/v1/"), {}, r"url: .* ends with /v1"),
    "an API no endpoint speaks": (
        {"agents": [{"name": "claude-code"}, {"name": "codex"}]},
        {},
        r"spec\.models\[sonnet\]\.endpoints\.responses is missing; agent codex speaks no other API",
    ),
    "a sweep's budget without prices": (
        {"budget": {"usd": "5"}},
        {},
        r"spec\.models\[sonnet\]\.prices is missing; budget\.usd needs prices",
    ),
    "a budget without prices": (
        {"limits": {"trialBudget": {"usd": "5"}}},
        {},
        r"spec\.models\[sonnet\]\.prices is missing; limits\.trialBudget",
    ),
    "a user without a model": ({"simulatedUser": {"mode": "Model"}}, {}, r"spec\.simulatedUser\.model is missing"),
    "a user that speaks another API": (
        {"simulatedUser": {"mode": "Model", "model": {"model": "u", "endpoints": {"responses": http("https://x")["models"][0][
            "endpoints"]["anthropic"]}}}},
        {},
        r"simulatedUser\.model\.endpoints: neither chat nor anthropic",
    ),
    "a permission mode the program lacks": (
        {"agents": [{"name": "terminus-2", "permissions": "Ask"}]},
        {},
        r"spec\.agents\[terminus-2\]\.permissions: terminus-2 knows Bypass, not Ask",
    ),
    "an option the program lacks": (
        {"agents": [{"name": "terminus-2", "options": {"effort": "high"}}]},
        {},
        r"spec\.agents\[terminus-2\]\.options\.effort",
    ),
    "an agent twice": ({"agents": [{"name": "claude-code"}, {"name": "claude-code"}]}, {}, r"'claude-code' stands twice"),
    "a mode twice": ({"modes": ["EXEC", "EXEC"]}, {}, r"spec\.modes: 'EXEC' stands twice"),
    "more trials than ordinals": (
        {"repeats": 100, "models": models(*(f"m{i}" for i in range(50))), "agents": [
            {"name": f"a{i}", "program": "claude-code"} for i in range(50)
        ]},
        {},
        r"500000 trials; at most 100000",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_field_and_remedy(build: Any, name: str) -> None:
    sweep, task, expected = REFUSALS[name]
    with pytest.raises(ConfigurationRefused, match=expected):
        lock(build.request(**sweep), build.index(build.task(**task)))


def test_every_problem_is_said_at_once(build: Any) -> None:
    request = build.request(agents=[{"name": "claude-code", "version": "9"}], **http("http://x.example"))
    with pytest.raises(ConfigurationRefused) as refused:
        lock(request, build.index())
    assert len(str(refused.value).splitlines()) == 2


def test_http_in_the_cluster_is_allowed_when_asked_for(build: Any) -> None:
    assert lock(build.request(**http("http://model.demo.svc:80", insecureHttp="InCluster")), build.index()).configurations


def test_the_id_that_answered_stands_in_the_lock(build: Any) -> None:
    made = lock(build.request(models=models("m", "n")), build.index())
    told = with_answers(made, {("m", "anthropic"): "id-m-20260101", ("n", "anthropic"): None})
    assert [c.resolved_model for c in told.configurations] == ["id-m-20260101", None]
    said = [warning for warning in told.warnings if warning not in made.warnings]
    assert said[0].startswith("models[m].endpoints.anthropic: asked for id-m, answers as id-m-20260101")
    assert said[1].startswith("models[n].endpoints.anthropic: its answers name no model")
    assert with_answers(made, {("m", "anthropic"): "id-m", ("n", "anthropic"): "id-n"}).warnings == made.warnings


def test_what_a_task_needs_of_its_pod_stands_in_the_lock(build: Any) -> None:
    task = build.task(needs_setuid=True, mock_hosts=["packages.example"], trust="system")
    (made,) = lock(build.request(), build.index(task)).tasks
    assert (made.needs_setuid, made.mock_hosts, made.trust) == (True, ["packages.example"], "system")


PRICES = {"inputPerMillion": "1", "outputPerMillion": "2"}


def judge(**model: Any) -> dict[str, Any]:
    endpoint = {"url": "https://judge.example", "apiKey": {"secretRef": {"name": "j", "key": "k"}}}
    return {"model": "id-of-nobody", "endpoints": {"anthropic": endpoint}} | model


def test_a_sweep_without_a_judge_says_what_that_means(build: Any) -> None:
    assert any("no judge model" in warning for warning in lock(build.request(), build.index()).warnings)
    assert not any("judge" in warning for warning in lock(build.request(judge={"model": judge()}), build.index()).warnings)


def test_a_judge_of_the_family_is_told(build: Any) -> None:
    request = build.request(
        models=[m | {"model": "claude-opus-4-8"} for m in models("m")], judge={"model": judge(model="claude-x")}
    )
    told = [warning for warning in lock(request, build.index()).warnings if "own family" in warning]
    assert told == ["judge: claude-x judges models[m] of its own family (Anthropic), and may be kinder to it"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"budget": {"usd": "5"}}, "spec.judge.budget without spec.judge.model"),
        ({"model": judge(), "budget": {"usd": "5"}}, "spec.judge.budget.usd needs spec.judge.model.prices"),
        ({"model": judge(prices=PRICES), "budget": {}}, "give either usd or tokens"),
        ({"model": judge(endpoints={})}, "spec.judge.model.endpoints is empty"),
        ({"model": judge(endpoints={"chat": judge()["endpoints"]["anthropic"] | {"url": "http://judge.example"}})},
         "spec.judge.model.endpoints.chat.url"),
    ],
)  # fmt: skip
def test_what_a_judge_lacks_is_refused(build: Any, given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationRefused, match=expected.replace(".", r"\.")):
        lock(build.request(judge=given), build.index())


def test_the_id_the_judge_answers_with_and_the_tasks_kinds_stand_in_the_lock(build: Any) -> None:
    made = with_answers(lock(build.request(judge={"model": judge()}), build.index()), {}, "judge-2026")
    assert made.judge_model == "judge-2026"
    unnamed = with_answers(lock(build.request(judge={"model": judge()}), build.index()), {}, "")
    assert unnamed.judge_model == ""
    assert "spec.judge.model: its answers name no model; whether it stays the same cannot be seen" in unnamed.warnings
    assert all(task.category and task.information_structure for task in made.tasks)
