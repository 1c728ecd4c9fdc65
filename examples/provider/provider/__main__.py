"""python -m provider --port 8080 [--host 0.0.0.0] [--control]: PROVIDER_API_KEY is the key that requests have to bring."""

from __future__ import annotations

import argparse
import os
import sys

from aiohttp import web

from provider.server import Provider


def main() -> int:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(prog="provider", description="A scripted model provider that speaks the Anthropic wire.")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--control", action="store_true", help="serve POST /control (tests only)")
    options = parser.parse_args()
    key = os.environ.get("PROVIDER_API_KEY", "")
    if not key:
        print("provider: PROVIDER_API_KEY is not set; set it to the key that requests have to bring", file=sys.stderr)
        return 2
    print(f"provider: listening on {options.host}:{options.port}", flush=True)
    web.run_app(Provider(key, options.control).app, host=options.host, port=options.port, print=None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
