"""python -m realcli_provider --port 8080 [--script FILE]: PROVIDER_API_KEY is the key that requests have to bring."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from aiohttp import web

from realcli_provider.choose import policy
from realcli_provider.script import ScriptError, read_script
from realcli_provider.server import Provider

DEMO = Path(__file__).parent / "demo.yaml"


def main() -> int:
    """Serve until stopped. 2: something to correct is on stderr."""
    parser = argparse.ArgumentParser(prog="realcli_provider", description="A scripted model provider that speaks three wires.")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--script", type=Path, default=DEMO, help="what to answer (docs/provider-script.md); default: the demo's")
    parser.add_argument("--control", action="store_true", help="serve /control (tests only)")
    options = parser.parse_args()
    key = os.environ.get("PROVIDER_API_KEY", "")
    if not key:
        print("provider: PROVIDER_API_KEY is not set; set it to the key that requests have to bring", file=sys.stderr)
        return 2
    try:
        script = read_script(options.script)
        for rule in script.rules:
            if rule.policy is not None:
                policy(rule.policy)
    except ScriptError as error:
        print(f"provider: {error}", file=sys.stderr)
        return 2
    print(f"provider: listening on {options.host}:{options.port}", flush=True)
    provider = Provider(key, script, options.control)
    web.run_app(provider.app, host=options.host, port=options.port, print=None, access_log=None, reuse_address=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
