"""Checks of site-settings: what stands in the two files, read as the script that starts the site would read them."""

import configparser
import csv
import json
import os
import sys
from pathlib import Path

LOGS = Path("/logs/verifier")
INI = "/app/site.ini"
SUMMARY = "/app/summary.json"
LIMIT = 1 << 20

KEPT = {
    ("site", "root"): "/srv/site/public",
    ("site", "index"): "index.html",
    ("cache", "max_age"): "300",
    ("cache", "private"): "yes",
    ("log", "file"): "/var/log/site.log",
}
COMMENTS = [
    "# Settings of the site. Read at start; the operations team edits this file by hand as well.",
    "# Filled in when the site is put on a host.",
    "# Seconds. Measured with the old host; do not raise without asking.",
]


def read(path):
    """A text file of the result: a plain file of sensible size, never a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as source:
        data = source.read(LIMIT + 1)
    assert len(data) <= LIMIT, f"{path} is larger than {LIMIT} bytes"
    return data.decode("utf-8")


def settings():
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(read(INI))
    return parser


def summary():
    found = json.loads(read(SUMMARY))
    assert isinstance(found, dict), "the summary is no JSON object"
    return found


def instance():
    return json.loads(Path("/tests/run.json").read_text())["instanceId"]


def services():
    with open("/app/data/services.csv") as source:
        return list(csv.DictReader(line for line in source if not line.startswith("#")))


def check_site_values():
    """Requirements 1 and 2."""
    port = next(service["port"] for service in services() if service["name"] == "gateway")
    found = settings()["site"]
    assert found["instance"] == instance(), f"[site] instance is {found['instance']!r}, not the id of this host"
    assert found["listen"] == port, f"[site] listen is {found['listen']!r}, the gateway has {port}"


def check_log_level():
    """Requirement 5."""
    level = settings()["log"]["level"]
    assert level == "warning", f"[log] level is {level!r}"


def check_rest_kept():
    """Requirement 6. Lines somebody added are no matter."""
    parser, lines = settings(), [line.strip() for line in read(INI).splitlines()]
    for (section, name), value in KEPT.items():
        found = parser.get(section, name, fallback=None)
        assert found == value, f"[{section}] {name} is {found!r}, it was {value!r}"
    for comment in COMMENTS:
        assert comment in lines, f"the comment {comment!r} is gone"


def check_summary_instance():
    """Requirement 3."""
    found = summary().get("instance")
    assert found == instance(), f"instance is {found!r}, not the id of this host"


def check_summary_services():
    """Requirement 4."""
    running = sorted(service["name"] for service in services() if service["state"] == "on")
    found = summary()
    assert found.get("running") == running, f"running is {found.get('running')!r}, expected {running!r}"
    count = found.get("services")
    assert count == len(services()) and type(count) is int, f"services is {count!r}, expected {len(services())}"


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
