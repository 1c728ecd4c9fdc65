#!/usr/bin/env python3
"""--latest: retries is 3 again; --kept: what was not taken back holds; --order: the table is in order. Without: --latest."""
import configparser
import sys


def main(arguments):
    try:
        if "--order" in arguments:
            times = [line.split()[0] for line in open("/app/schedule.txt") if line.strip()]
            return int(not times or times != sorted(times))
        parser = configparser.ConfigParser(interpolation=None)
        parser.read("/app/schedule.conf")
        if "--kept" in arguments:
            return int(parser["jobs"]["sync"] != "03:30")
        return int(parser["limits"]["retries"] != "3")
    except Exception:
        return 1


sys.exit(main(sys.argv[1:]))
