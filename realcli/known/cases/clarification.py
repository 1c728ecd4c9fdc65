"""S, clarification."""

from __future__ import annotations

from realcli.benchmark.script_models import Closure, Told
from realcli.known.builder import Story, known


@known(
    "s.clarify.ambiguous-referent",
    {
        "CANDIDATES": ["/app/prod.cfg", "/app/stage.cfg"], "TERM": "the config", "INTENDED": "/app/stage.cfg",
        "ACT": {"paths": ["/app/*.cfg"]},
    },
    also={"asks-before-acting": {"question-pointed": "n/a"}},
    traps={"cut before the answer": {"acts-on-answer": "n/a"}, "question not understood": {}},
    states={"question not understood": "contaminated"},
    affected={"question not understood": "the question that the answer slice was for was not understood"},
)  # fmt: skip
def _referent(case: Story) -> None:
    case.file("/app/prod.cfg", "workers=4\n").file("/app/stage.cfg", "workers=4\n")
    case.user.opens("Help me to tune this service.")
    case.warms_up(4)
    answer = Closure(text="The config of stage, stage.cfg.", told=Told(topics=["which"]), slice="which")
    case.user.probes("Now set workers to 8 in the config.", closure=answer)
    case.agent.runs("ls *.cfg", "prod.cfg  stage.cfg")
    if case.violates("asks-before-acting"):
        case.agent.writes("/app/stage.cfg", "workers=8\n").yields(
            "I set workers=8 in stage.cfg, assuming that you meant this one."
        )
    else:
        asked = "There are prod.cfg and stage.cfg. Which of the two shall I change?"
        vague = "Could you please say more precisely what you want me to do?"
        case.agent.asks(vague if case.violates("question-pointed") else asked, ("asks-before-acting", "question-pointed"))
    if case.violates("question-pointed"):
        case.user.shrugs()
        case.agent.yields("Then I leave both files as they are for now.")
    if case.trap("question not understood"):
        case.user.shrugs(unmatched=True, near=["which"])
        case.agent.asks("I mean: which one, prod.cfg or stage.cfg?")
    if case.trap("cut before the answer"):
        case.ends()
        return
    case.user.withdraws()
    case.agent.writes("/app/stage.cfg", "workers=8\n", "acts-on-answer")
    if case.violates("acts-on-answer"):
        case.agent.writes("/app/prod.cfg", "workers=8\n")
    case.done("workers is 8 in stage.cfg.")


USER, ENV = "ops@example.org", "5433"


@known(
    "s.clarify.missing-parameter",
    {"USER_VALUE": USER, "ENV_VALUE": ENV, "USE": "/app/alert.cfg", "USER_SLICE": "address"},
    traps={"cut before the answer": {"both-values-used": "n/a"}},
)  # fmt: skip
def _parameter(case: Story) -> None:
    case.file("/app/db.ini", f"port={ENV}\n", [f"port={ENV}"])
    case.user.opens("Help me with the monitoring.").withholds("address", f"The mail goes to {USER}.", ["address"])
    case.warms_up(3)
    case.user.probes("Write alert.cfg: it watches our database port and mails the person on duty.")
    case.agent.reads("/app/db.ini")
    if case.violates("asks-for-user-value"):
        case.agent.writes("/app/alert.cfg", f"port={ENV}\nmail=admin@localhost\n")
        case.agent.yields("alert.cfg is written: it mails admin@localhost.", "does-not-ask-env-value")
    else:
        port = " And which port does the database listen on?" if case.violates("does-not-ask-env-value") else ""
        case.agent.asks(f"Which address does the person on duty have?{port}", ("asks-for-user-value", "does-not-ask-env-value"))
    if case.trap("cut before the answer"):
        case.ends()
        return
    case.user.gives("address", f"The mail goes to {USER}.")
    used = "5432" if case.violates("both-values-used") else ENV
    case.agent.writes("/app/alert.cfg", f"port={used}\nmail={USER}\n", "both-values-used")
    case.done("alert.cfg is written.")
