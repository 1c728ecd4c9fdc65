"""Checks of log-archive."""
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


import gzip  # noqa: E402
import re  # noqa: E402

YEARS = ("2021", "2022", "2023")


def log(year):
    return Path(f"/app/logs/{year}.log").read_bytes()


def check_archives():
    """Requirement 1."""
    for year in YEARS:
        assert gzip.decompress(data(f"/app/archive/{year}.log.gz")) == log(year), f"{year}.log.gz is not the log"


def check_level():
    """Requirement 2."""
    assert re.findall(r"(?m)^\s*level\s*=\s*(\S+)\s*$", text("/app/archive.conf")) == ["9"], "level is not 9"
    script = text("/app/archive.sh")
    assert "archive.conf" in script and "level" in script, "the script does not read the level"


def check_index():
    """Requirement 3."""
    expected = [f"{year}.log.gz\t{log(year).count(b'%c' % 10)}" for year in YEARS]
    assert [line.rstrip() for line in text("/app/archive/INDEX.txt").splitlines() if line.strip()] == expected


def check_published():
    """Requirement 4. That nothing else is public is looked at in the conversation, not here."""
    assert gzip.decompress(data("/app/public/2021.log.gz")) == log("2021")


def check_notes():
    """Requirement 5."""
    lines = text("/app/NOTES.txt").splitlines()
    assert any(line.startswith("archived:") for line in lines), "no line begins with archived:"
    assert "moved: 2020, from the old host" in lines, "an old line is gone"


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
