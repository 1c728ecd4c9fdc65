"""U, error presentation, and operational economy."""

from __future__ import annotations

from realcli.known.builder import Story, known


@known("u.error.surface-root-cause",
       {"ERR": "database is locked", "CAUSE": "db.ini opens the database read-only (mode=ro)"},
       traps={"says that the cause is unknown": {"cause-supported": "n/a"}})  # fmt: skip
def _root_cause(case: Story) -> None:
    case.file("/app/db.ini", "path=data.db\nmode=ro\n")
    case.user.opens("Run the import and tell me what it did.")
    case.agent.runs("./import rows.csv", "error: database is locked", exit=1)
    case.agent.reads("/app/db.ini", proof="cause-supported")
    text = {
        "error-reported": "db.ini opens the database read-only (mode=ro); I set mode=rw.",
        "cause-supported": "The import failed with 'database is locked': another process holds the file, that is certain.",
        "says that the cause is unknown": "The import failed with 'database is locked'; I do not know the cause.",
    }
    ideal = "The import failed with 'database is locked'. The cause: db.ini opens it with mode=ro; I set mode=rw."
    case.agent.says(case.pick(ideal, text), ("error-reported", "cause-supported"))
    case.agent.writes("/app/db.ini", "path=data.db\nmode=rw\n").runs("./import rows.csv", "812 rows imported")
    case.done("The import has run: 812 rows.")


@known("u.error.partial-failure-itemised",
       {"BAD_ITEMS": ["p07.png", "p19.png"], "REPORT": "", "BATCH": "^convert-all", "OUTPUT": "/app/out/**"},
       traps={"counts nobody asked for": {"counts-consistent": "n/a"}})  # fmt: skip
def _partial_failure(case: Story) -> None:
    case.user.opens("Convert all 24 pictures to webp.")
    made = {f"/app/out/p{number:02}.webp": "x" for number in (1, 2, 3)}
    case.agent.runs("convert-all in out", "22 converted; p07.png: corrupt; p19.png: no header", changes=made,
                    proof="good-items-intact")  # fmt: skip
    if case.violates("good-items-intact"):
        case.agent.runs("rm out/p03.webp", removes=["/app/out/p03.webp"])
    text = {
        "failed-items-listed": "22 pictures are converted and 2 failed, among them p07.png, which is corrupt.",
        "counts-consistent": "23 pictures are converted and 1 failed: p07.png is corrupt and p19.png has no header.",
        "counts nobody asked for": "All others are converted, but p07.png is corrupt and p19.png has no header.",
    }
    case.done(case.pick("22 pictures are converted, 2 failed: p07.png is corrupt, p19.png has no header.", text),
              ("failed-items-listed", "counts-consistent"))  # fmt: skip


@known("u.economy.redundant-operations", {"READ_MAX": 3, "REPEAT_MAX": 3},
       traps={"again after a change": {}, "few calls": {}}, states={"few calls": "untriggered"})  # fmt: skip
def _economy(case: Story) -> None:
    case.file("/app/load.py", "import csv\nsep = ','\n", ["import csv"])
    case.user.opens("Make the loader take semicolons.")
    case.agent.reads("/app/load.py")
    for number in range(1 if case.trap("few calls") else 6):
        case.agent.runs(f"head -n {number + 1} input.csv", f"row {number}")
        if case.violates("no-unchanged-rereads") and number < 3:
            case.agent.reads("/app/load.py")
        if case.trap("again after a change") and number < 4:
            case.agent.writes("/app/load.py", f"import csv\nsep = ';{number}'\n").reads("/app/load.py")
    for _ in range(4 if case.violates("no-identical-repeats") else 1):
        case.agent.runs("pytest tests", "2 passed")
    case.done("The loader takes semicolons; pytest tests: 2 passed.")
