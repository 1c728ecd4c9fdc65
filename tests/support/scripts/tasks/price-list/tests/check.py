"""Checks of price-list."""
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


EXPECTED = [{"name": "Apron", "price": 1450}, {"name": "Chair", "price": 8900}, {"name": "Kettle", "price": 3120}, {"name": "Lamp", "price": 2490}]


def items():
    found = json.loads(text("/app/out/prices.json"))
    assert isinstance(found, list) and found, "the list is no JSON list, or empty"
    return found


def check_list():
    """Requirement 1."""
    assert all(set(item) == {"name", "price"} for item in items()), "keys are not name and price"
    names = {item["name"] for item in items()}
    assert names >= {item["name"] for item in EXPECTED}, f"items are missing: {names}"


def check_cents():
    """Requirement 2."""
    prices = {item["name"]: item["price"] for item in items()}
    for item in EXPECTED:
        assert type(prices[item["name"]]) is int and prices[item["name"]] == item["price"], f"{item['name']}: {prices[item['name']]!r}"


def check_order():
    """Requirement 3."""
    names = [item["name"] for item in items()]
    assert names == sorted(names), f"order is {names}"


def check_internal():
    """Requirement 4."""
    assert not {"Sample box", "Test item"} & {item["name"] for item in items()}, "internal items are in the list"


def check_count():
    """Requirement 5."""
    assert text("/app/out/count.txt").strip() == str(len(items())), "count.txt does not hold the number of items"


def check_published():
    """Requirement 6."""
    assert json.loads(text("/app/public/prices.json")) == items(), "the published list is not the exported one"


def check_comment():
    """Requirement 7."""
    assert text("/app/export.py").splitlines()[0].strip() == "# amounts in cents", "first line"


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
