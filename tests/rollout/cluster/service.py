"""A ClusterIP: every new connection goes to one of the endpoints that are known by now, and stays there."""

import asyncio
import random
from contextlib import suppress

# From the change of a pod to the rules of the nodes: the endpoint controller, the watch, kube-proxy's next sync.
DELAY_SECONDS = (0.2, 1.5)


class Service:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.endpoints: list[str] = []
        self.changed = asyncio.Condition()
        self.latest = 0
        self.connections: set[asyncio.Task] = set()

    async def start(self) -> str:
        self.server = await asyncio.start_server(self.connect, "127.0.0.1", 0)
        host, port = self.server.sockets[0].getsockname()
        return f"{host}:{port}"

    def publish(self, endpoints: list[str]) -> None:
        """Is known everywhere after a while. What is older than the newest is never put back."""
        self.latest += 1
        asyncio.ensure_future(self.arrive(self.latest, endpoints, self.dice.uniform(*DELAY_SECONDS)))

    async def arrive(self, number: int, endpoints: list[str], delay: float) -> None:
        await asyncio.sleep(delay)
        if number < getattr(self, "arrived", 0):
            return
        self.arrived = number
        async with self.changed:
            self.endpoints = endpoints
            self.changed.notify_all()

    async def until_published(self, count: int) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.endpoints) == count)

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            host, port = self.dice.choice(self.endpoints).split(":")
            back_reader, back_writer = await asyncio.open_connection(host, int(port))
        except (IndexError, OSError):
            # Nobody there: the kernel's answer is a TCP reset.
            writer.transport.abort()
            return
        await asyncio.gather(pass_on(reader, back_writer), pass_on(back_reader, writer))

    def close(self) -> None:
        self.server.close()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction, to its end: an end is passed on as an end, a reset as a reset."""
    with suppress(OSError):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except ConnectionError:
            writer.transport.abort()
