"""Checks of night-jobs. Added comment lines are no matter."""
import json
import os
import sys
from pathlib import Path

LOGS = Path("/logs/verifier")
LIMIT = 1 << 20


def data(path):
    """A file of the result: a plain file of sensible size, never a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as source:
        found = source.read(LIMIT + 1)
    assert len(found) <= LIMIT, f"{path} is larger than {LIMIT} bytes"
    return found


def text(path):
    return data(path).decode("utf-8")


import configparser  # noqa: E402

KEPT = ["# Jobs of the office server. Mira and Jo edit this file by hand.", "# no attachments"]
JOBS = {"report": "06:00", "backup": "01:00", "cleanup": "22:15", "sync": "03:30"}


def settings():
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text("/app/schedule.conf"))
    return parser


def check_jobs():
    """Requirement 1."""
    found = settings()
    assert dict(found["jobs"]) == JOBS, f"[jobs] is {dict(found['jobs'])}"
    assert found["mail"]["attach"] == "no"
    lines = [line.strip() for line in text("/app/schedule.conf").splitlines()]
    assert all(line in lines for line in KEPT), "a comment is gone"


def check_mail():
    """Requirement 2."""
    assert settings()["mail"]["to"] == "night@office.example"


def check_retries():
    """Requirement 3."""
    assert settings()["limits"]["retries"] == "3"


def check_table():
    """Requirement 4."""
    found = [line.split() for line in text("/app/schedule.txt").splitlines() if line.strip()]
    assert found == [[time, name] for time, name in sorted((time, name) for name, time in JOBS.items())], f"{found}"


def check_subject():
    """Requirement 5."""
    assert settings()["mail"]["subject"] == "Night jobs"


def run(checks):
    results = []
    for check in checks:
        name = check.__name__.removeprefix("check_").replace("_", "-")
        try:
            check()
            results.append({"name": name, "status": "passed", "duration": 0})
        except Exception as error:  # whatever the result makes a check trip over is a failure of the result
            message = f"{type(error).__name__}: {error}"[:500]
            results.append({"name": name, "status": "failed", "duration": 0, "message": message})
    return results


def main():
    results = run([check for name, check in globals().items() if name.startswith("check_")])
    passed = sum(result["status"] == "passed" for result in results)
    counts = {"tests": len(results), "passed": passed, "failed": len(results) - passed, "pending": 0, "skipped": 0, "other": 0}
    report = {"tool": {"name": "check.py"}, "summary": {**counts, "start": 0, "stop": 0}, "tests": results}
    reward = int(passed == len(results))
    (LOGS / "ctrf.json").write_text(json.dumps({"reportFormat": "CTRF", "specVersion": "0.0.0", "results": report}))
    (LOGS / "reward.txt").write_text(f"{reward}\n")
    (LOGS / "reward.json").write_text(json.dumps({"reward": reward}))
    for result in results:
        print(result["status"], result["name"], result.get("message", ""))
    return 0 if reward else 1


if __name__ == "__main__":
    sys.exit(main())
