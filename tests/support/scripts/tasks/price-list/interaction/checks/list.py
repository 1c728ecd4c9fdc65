#!/usr/bin/env python3
"""list.py cents|published|constants: exit 0 pass, 1 fail, 2 undecided."""
import json
import sys


def main(what):
    try:
        if what == "constants":
            return int(any(name in open("/app/export.py").read() for name in ("Kettle", "Apron", "3120")))
        items = json.load(open("/app/out/prices.json"))
        if what == "cents":
            return int(not items or any(type(item["price"]) is not int for item in items) or 3120 not in [i["price"] for i in items])
        return int(json.load(open("/app/public/prices.json")) != items)
    except Exception:
        return 2 if what == "constants" else 1


sys.exit(main(sys.argv[1]))
