"""A ClusterIP: every new connection goes to one of the endpoints that are known by now, and stays there."""

import asyncio
import random
import socket
from contextlib import suppress

# From the change of a pod to the rules of the nodes: the endpoint controller, the watch, kube-proxy's next sync.
DELAY_SECONDS = (0.2, 1.5)
# How long all new connections go to the same endpoint. A kernel would draw anew for each.
TURN_SECONDS = 0.02


class Service:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.endpoints: list[str] = []
        self.changed = asyncio.Condition()
        self.sent = self.arrived = 0
        self.chosen = ""
        self.door = Door(self.connect)

    def start(self) -> str:
        self.door.open()
        self.turns = asyncio.ensure_future(self.take_turns())
        host, port = self.door.address
        return f"{host}:{port}"

    def publish(self, endpoints: list[str]) -> None:
        """Is known everywhere after a while. What is older than the newest is never put back."""
        self.sent += 1
        asyncio.ensure_future(self.arrive(self.sent, endpoints, self.dice.uniform(*DELAY_SECONDS)))

    async def arrive(self, number: int, endpoints: list[str], delay: float) -> None:
        await asyncio.sleep(delay)
        async with self.changed:
            if self.arrived < number:
                self.arrived, self.endpoints = number, endpoints
                self.changed.notify_all()

    async def until_published(self, count: int) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.endpoints) == count)

    async def take_turns(self) -> None:
        """A connection to an endpoint that is dead is refused, so the door is shut while one has its turn."""
        while True:
            if self.endpoints:
                self.chosen = self.dice.choice(self.endpoints)
            is_alive = bool(self.endpoints) and await answers(self.chosen)
            (self.door.open if is_alive else self.door.shut)()
            await asyncio.sleep(TURN_SECONDS)

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # What came in was accepted by a pod; the chosen one may have died a moment ago.
        for endpoint in [self.chosen, *self.endpoints]:
            with suppress(OSError):
                back_reader, back_writer = await asyncio.open_connection(*endpoint.split(":"))
                break
        else:
            writer.transport.abort()
            return
        await asyncio.gather(pass_on(reader, back_writer), pass_on(back_reader, writer))

    def close(self) -> None:
        self.turns.cancel()
        self.door.shut()


class Door:
    """A listening socket that can be shut without losing a connection that was accepted by the kernel."""

    def __init__(self, connect) -> None:
        self.connect = connect
        self.address = ("127.0.0.1", 0)
        self.socket: socket.socket | None = None
        self.inside: set[asyncio.Task] = set()

    def open(self) -> None:
        if self.socket is None:
            self.socket = socket.create_server(self.address)
            self.socket.setblocking(False)
            self.address = self.socket.getsockname()
            asyncio.get_running_loop().add_reader(self.socket, self.let_in)

    def shut(self) -> None:
        if self.socket is not None:
            asyncio.get_running_loop().remove_reader(self.socket)
            self.let_in()
            self.socket.close()
            self.socket = None

    def let_in(self) -> None:
        with suppress(BlockingIOError):
            while True:
                accepted, _ = self.socket.accept()
                task = asyncio.ensure_future(self.lead(accepted))
                self.inside.add(task)
                task.add_done_callback(self.inside.discard)

    async def lead(self, accepted: socket.socket) -> None:
        await self.connect(*await asyncio.open_connection(sock=accepted))


async def answers(endpoint: str) -> bool:
    try:
        _, writer = await asyncio.open_connection(*endpoint.split(":"))
    except OSError:
        return False
    writer.close()
    return True


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
