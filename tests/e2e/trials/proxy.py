"""A pass-through that holds chosen requests back. Runs in a pod; python3 with aiohttp.

usage: proxy.py UPSTREAM PORT METHOD REGEX [FREE]: of the requests with METHOD whose path matches REGEX the first FREE (0) are
forwarded, further ones neither forwarded nor answered. POST /_release ends that: what is held is answered with 503 and never
forwarded, what comes later is. GET /_seen: of requests that match {"held": [path, ...], "passed": [sha256 of the body, ...],
"keys": {sha256 of x-api-key: how many passed}}.
"""

import asyncio
import hashlib
import re
import sys
from collections import Counter

from aiohttp import ClientSession, TCPConnector, web

UPSTREAM, PORT, METHOD, MATCHING = sys.argv[1], int(sys.argv[2]), sys.argv[3], re.compile(sys.argv[4])
FREE = int(sys.argv[5]) if len(sys.argv) > 5 else 0
held: list[str] = []
passed: list[str] = []
keys: Counter[str] = Counter()
admitted = 0
released = asyncio.Event()


async def show(request: web.Request) -> web.Response:
    return web.json_response({"held": held, "passed": passed, "keys": keys})


async def release(request: web.Request) -> web.Response:
    released.set()
    return web.json_response({})


async def forward(request: web.Request) -> web.Response:
    global admitted
    body = await request.read()
    matching = request.method == METHOD and MATCHING.search(request.path) is not None
    if matching and admitted >= FREE and not released.is_set():
        held.append(request.path)
        await released.wait()
        return web.Response(status=503, text="was held back")
    admitted += matching
    # the signature covers Host and path, so both go on as they came
    headers = {name: value for name, value in request.headers.items() if name.lower() not in ("transfer-encoding", "expect")}
    session: ClientSession = request.app["session"]
    url = UPSTREAM + request.raw_path
    async with session.request(request.method, url, headers=headers, data=body, skip_auto_headers=("User-Agent",)) as answer:
        content = await answer.read()
        if matching:
            passed.append(hashlib.sha256(body).hexdigest())
            keys[hashlib.sha256(request.headers.get("x-api-key", "").encode()).hexdigest()] += 1
        kept = {
            n: v for n, v in answer.headers.items() if n.lower() not in ("transfer-encoding", "connection", "content-encoding")
        }
        if request.method == "HEAD":
            return web.Response(status=answer.status, headers=kept)
        kept.pop("Content-Length", None)
        return web.Response(status=answer.status, headers=kept, body=content)


async def main() -> web.Application:
    app = web.Application(client_max_size=1 << 30)
    app["session"] = ClientSession(connector=TCPConnector(limit=0), auto_decompress=False)
    app.router.add_get("/_seen", show)
    app.router.add_post("/_release", release)
    app.router.add_route("*", "/{path:.*}", forward)
    return app


web.run_app(main(), port=PORT, print=None)
