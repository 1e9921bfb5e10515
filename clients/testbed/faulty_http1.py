"""A faulty HTTP/1.1 service."""

import asyncio
import socket
import struct

from aiohttp import web

from .control import serve
from .plays import Plays
from .script import next_step

# Until what was sent has reached the client: a TCP reset throws away what the client has not read.
ARRIVAL_SECONDS = 0.05
FOR_EVER_SECONDS = 3600


async def start(plays: Plays) -> str:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        return await answer(request, next_step(plays, headers))

    return "http://" + await serve(web.ServerRunner(web.Server(handle, access_log=None)))


async def answer(request: web.BaseRequest, step: dict) -> web.StreamResponse:
    await asyncio.sleep(step.get("after_ms", 0) / 1000)
    match step:
        case {"ok": True}:
            return web.Response(text="done")
        case {"http": status}:
            return web.Response(status=status, headers=step.get("headers", {}), text=f"status {status}")
        case {"close": where}:
            response = web.StreamResponse(headers={"content-length": "1000"})
            if where != "before_headers":
                await response.prepare(request)
            if where == "mid_body":
                await response.write(b"some of it")
            await asyncio.sleep(ARRIVAL_SECONDS)
            cut(request.transport)
            return response
        case {"garbage": True}:
            if request.transport:
                request.transport.write(b"this is not HTTP\r\n\r\n")
                request.transport.close()
            return web.Response()
        case {"hang": True}:
            await asyncio.sleep(FOR_EVER_SECONDS)
    return web.Response(status=501, text=f"no such step over HTTP/1.1: {step}")


def cut(transport: asyncio.Transport | None) -> None:
    """Ends the connection by a TCP reset."""
    if transport is None:
        return
    linger = struct.pack("ii", 1, 0)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    transport.abort()
