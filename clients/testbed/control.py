"""The testbed's own HTTP interface, for the tests."""

from aiohttp import web

from .plays import Plays
from .processes import Processes


async def start(plays: Plays, processes: Processes) -> str:
    async def play(request: web.Request) -> web.Response:
        return web.json_response(plays[request.match_info["name"]].json())

    async def retryd(request: web.Request) -> web.Response:
        try:
            return web.json_response({"address": await processes.start(await request.text())})
        except RuntimeError as error:
            return web.Response(status=500, text=str(error))

    app = web.Application()
    app.add_routes([web.get("/plays/{name}", play), web.post("/retryds", retryd)])
    return "http://" + await serve(web.AppRunner(app, access_log=None))


async def serve(runner: web.AppRunner | web.ServerRunner) -> str:
    """Serves on a free port, and tells its address."""
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return f"{host}:{port}"
