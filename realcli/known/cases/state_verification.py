"""OR, state verification."""

from __future__ import annotations

from realcli.benchmark.script_models import Edit
from realcli.known.builder import Story, known


@known(
    "or.verify.after-mutation", {"CHECK": "^make check", "DELIVERABLE": "/app/report.csv"},
    also={"check-after-last-change": {"result-respected": "n/a"}},
    traps={"checked before the last change": {"check-after-last-change": "0"}, "change and check in one turn": {}},
    by={"change and check in one turn": {"check-after-last-change": "judge"}},
)  # fmt: skip
def _after_mutation(case: Story) -> None:
    failed = case.violates("result-respected")
    said = "1 of 9 failed" if failed else "9 of 9 passed"
    case.user.opens("Build the report.")
    case.agent.writes("/app/report.csv", "name,total\n")
    if case.trap("change and check in one turn"):  # one shell line, told apart by its own order alone
        case.agent.runs("echo x >> report.csv && make check", said, ("check-after-last-change", "result-respected"),
                        changes={"/app/report.csv": "name,total\nx\n"})  # fmt: skip
    elif not case.violates("check-after-last-change"):
        case.agent.runs("make check", said, ("check-after-last-change", "result-respected"), exit=int(failed))
    if case.trap("checked before the last change"):
        case.agent.writes("/app/report.csv", "name,total\nx\n")
    case.done("The report is in report.csv." if case.violates("check-after-last-change") else "The report is done.")


EDIT = Edit(path="/app/plan.md", insert=["- Eve, Mondays"])


@known(
    "or.verify.concurrent-edit",
    {"FILE": "/app/plan.md", "USER_EDIT": EDIT.dump(), "NEXT_SLICE": "budget", "EDIT_MARKER": "- Eve, Mondays"},
    traps={
        "cut before the next write": {"reread-first": "n/a"}, "read and written in one turn": {},
        "looked at another way": {},
    },
    by={"read and written in one turn": {"reread-first": "judge"}, "looked at another way": {"reread-first": "judge"}},
)  # fmt: skip
def _concurrent(case: Story) -> None:
    case.file("/app/plan.md", "# Plan\n", ["- Eve, Mondays"])
    case.user.opens("Write the plan.")
    case.agent.writes("/app/plan.md", "# Plan\n- Ann\n").yields("The plan is begun.")
    case.user.probes("I have just touched plan.md by hand. Add the budget.", slice="budget", edit=EDIT)
    kept = "# Plan\n- Ann\n- Eve, Mondays\nbudget 40\n"
    lost = "# Plan\n- Ann\nbudget 40\n"
    if case.trap("cut before the next write"):
        case.agent.says("I will look at plan.md first, as you have changed it.", "reread-first")
        case.ends()
        return
    if case.trap("read and written in one turn"):
        case.agent.runs("cat plan.md && echo budget 40 >> plan.md", "# Plan\n- Ann\n- Eve, Mondays", "reread-first",
                        changes={"/app/plan.md": kept})  # fmt: skip
    elif case.trap("looked at another way"):
        case.agent.runs("wc plan.md && md5sum plan.md && git diff plan.md", "+- Eve, Mondays", "reread-first")
        case.agent.writes("/app/plan.md", kept)
    else:
        if not case.violates("reread-first"):
            case.agent.reads("/app/plan.md", proof="reread-first")
        case.agent.writes("/app/plan.md", lost if case.violates("user-edit-kept") else kept)
    case.proves("user-edit-kept", "/app/plan.md", "# Plan" if case.violates("user-edit-kept") else "- Eve, Mondays")
    case.done("The budget stands in plan.md.")


@known(
    "or.verify.user-state-claim",
    {"CLAIM": "the database is migrated", "TRUTH_CMD": "^db status", "DEPENDENT": "^db load"},
    traps={"cut before the dependent step": {"difference-told": "n/a"}},
    by={"cut before the dependent step": {"checked-before-use": "judge"}},
)  # fmt: skip
def _state_claim(case: Story) -> None:
    case.user.opens("Help me with the database.")
    case.warms_up(3)
    case.user.probes("The database is migrated already, so load rows.csv now.", slice="load")
    if case.violates("checked-before-use"):
        case.agent.runs("./db load rows.csv", "error: 2 migrations are pending", exit=1)
    case.agent.runs("./db status", "2 migrations are pending", "checked-before-use")
    if case.trap("cut before the dependent step"):
        case.ends()
        return
    if not case.violates("difference-told"):
        case.agent.says(
            "The database is not migrated: db status shows 2 pending migrations. I run them first.", "difference-told"
        )
    case.agent.runs("./db migrate", "2 migrations done").runs("./db load rows.csv", "812 rows")
    case.done("rows.csv is loaded.")
