"""The clients: one program for each, which calls at a fixed rate until its standard input ends."""

import asyncio
import json
from dataclasses import dataclass

PIPE = asyncio.subprocess.PIPE
RATE = 50
# From the first call that fails with its connection until all of a client knows that the connection is gone.
AWARE_MS = 250


@dataclass
class Failure:
    """By the clock of the machine."""

    text: str
    began_ms: int
    ended_ms: int


@dataclass
class Tally:
    client: str
    calls: int
    failed: list[Failure]

    def beyond_flight(self, kills_ms: list[int]) -> list[Failure]:
        """Failures of calls that were not in flight when a pod was killed.

        A client knows that its connection is gone soon after the first call on it has failed. What it begins later,
        until the next kill, was not in flight.
        """
        beyond = []
        for kill, until in zip(kills_ms, [*kills_ms[1:], float("inf")], strict=True):
            of_this = [failure for failure in self.failed if kill <= failure.ended_ms < until]
            known = min((failure.ended_ms for failure in of_this), default=until) + AWARE_MS
            beyond += [failure for failure in of_this if known < failure.began_ms]
        return beyond + [failure for failure in self.failed if failure.ended_ms < kills_ms[0]]


class Caller:
    def __init__(self, client: str, command: list[str], wait_for_ready: bool) -> None:
        self.client = client
        self.command = [*command, *(["--wait-for-ready"] if wait_for_ready else [])]

    async def start(self, address: str) -> None:
        """Returns when it has had its first answer."""
        self.process = await asyncio.create_subprocess_exec(
            *[*self.command, address, str(RATE)], stdin=PIPE, stdout=PIPE
        )
        line = await self.process.stdout.readline()
        if line.strip() != b"calling":
            raise RuntimeError(f"the caller {self.client} does not call: {line!r}")

    async def end(self) -> Tally:
        self.process.stdin.close()
        told = json.loads(await self.process.stdout.read())
        if await self.process.wait() != 0:
            raise RuntimeError(f"the caller {self.client} ended with {self.process.returncode}")
        return Tally(self.client, told["calls"], [Failure(**failure) for failure in told["failed"]])
