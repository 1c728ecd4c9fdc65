"""A pass-through in front of the S3 server that holds chosen uploads back. Runs in a pod; python3 with aiohttp.

usage: proxy.py UPSTREAM PORT REGEX: a PUT whose path matches REGEX is never forwarded nor answered; GET /_held lists them.
"""

import asyncio
import re
import sys

from aiohttp import ClientSession, TCPConnector, web

UPSTREAM, PORT, HOLD = sys.argv[1], int(sys.argv[2]), re.compile(sys.argv[3])
held: list[str] = []


async def show(request: web.Request) -> web.Response:
    return web.json_response(held)


async def forward(request: web.Request) -> web.Response:
    body = await request.read()
    if request.method == "PUT" and HOLD.search(request.path):
        held.append(request.path)
        await asyncio.Event().wait()
    # the signature covers Host and path, so both go on as they came
    headers = {name: value for name, value in request.headers.items() if name.lower() not in ("transfer-encoding", "expect")}
    session: ClientSession = request.app["session"]
    url = UPSTREAM + request.raw_path
    async with session.request(request.method, url, headers=headers, data=body, skip_auto_headers=("User-Agent",)) as answer:
        content = await answer.read()
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
    app.router.add_get("/_held", show)
    app.router.add_route("*", "/{path:.*}", forward)
    return app


web.run_app(main(), port=PORT, print=None)
