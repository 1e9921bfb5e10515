"""The clients: one program for each, which calls at a fixed rate until its standard input ends."""

import asyncio
import json
from dataclasses import dataclass

PIPE = asyncio.subprocess.PIPE
RATE = 50


@dataclass
class Tally:
    client: str
    calls: int
    failed: dict[str, int]

    @property
    def failures(self) -> int:
        return sum(self.failed.values())


class Caller:
    def __init__(self, client: str, command: list[str], wait_for_ready: bool) -> None:
        self.client = client
        self.command = [*command, *(["--wait-for-ready"] if wait_for_ready else [])]

    async def start(self, address: str) -> None:
        """Returns when it has had its first answer."""
        self.process = await asyncio.create_subprocess_exec(*[*self.command, address, str(RATE)], stdin=PIPE, stdout=PIPE)
        line = await self.process.stdout.readline()
        if line.strip() != b"calling":
            raise RuntimeError(f"the caller {self.client} does not call: {line!r}")

    async def end(self) -> Tally:
        self.process.stdin.close()
        told = json.loads(await self.process.stdout.read())
        if await self.process.wait() != 0:
            raise RuntimeError(f"the caller {self.client} ended with {self.process.returncode}")
        return Tally(self.client, told["calls"], told["failed"])
