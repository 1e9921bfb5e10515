"""Rolls retryd, and crashes it, under clients that call all the time; fails if one of their calls does."""

import argparse
import asyncio
import random
import shlex
import sys

from .callers import RATE, Caller, Tally
from .deployment import Deployment
from .pod import Tools
from .service import Service

REPLICAS = 3
# How many calls of a client can be in flight on one pod, at the rate of the callers: those of 100 ms.
IN_FLIGHT_MAX = RATE // 10
CALM_SECONDS = 1


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    parser.add_argument("--retryd", required=True)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--crashes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("callers", nargs="+", metavar="NAME=COMMAND")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")

    service = Service(random.Random(arguments.seed))
    deployment = Deployment(Tools(arguments.retryd, arguments.probe), service, REPLICAS)
    address = await service.start()
    commands = [parsed(caller) for caller in arguments.callers]
    try:
        await deployment.start()
        fail_fast = [Caller(client, command, wait_for_ready=False) for client, command in commands]
        rolled = await under_calls(fail_fast, address, deployment.restart, arguments.restarts)
        # A pod that is dead stays listed for a while: to reach another one, a caller has to wait for it.
        waiting = [Caller(client, command, wait_for_ready=True) for client, command in commands]
        crashed = await under_calls(waiting, address, deployment.crash, arguments.crashes)
    finally:
        await deployment.stop()
    show(f"{arguments.restarts} rolling restarts of {REPLICAS} pods", rolled)
    show(f"{arguments.crashes} times, each of {REPLICAS} pods killed", crashed)
    if any(tally.failures for tally in rolled):
        sys.exit("a rolling restart failed calls")
    if any(tally.failures > IN_FLIGHT_MAX * REPLICAS * arguments.crashes for tally in crashed):
        sys.exit("a crash failed more calls than were in flight")


def parsed(caller: str) -> tuple[str, list[str]]:
    client, command = caller.split("=", 1)
    return client, shlex.split(command)


async def under_calls(callers: list[Caller], address: str, happen, times: int) -> list[Tally]:
    await asyncio.gather(*(caller.start(address) for caller in callers))
    for _ in range(times):
        await asyncio.sleep(CALM_SECONDS)
        await happen()
    await asyncio.sleep(CALM_SECONDS)
    return await asyncio.gather(*(caller.end() for caller in callers))


def show(what: str, tallies: list[Tally]) -> None:
    print(f"\n{what}\n{'client':<12} {'calls':>8} {'failed':>8}")
    for tally in tallies:
        told = "; ".join(f"{count} x {text}" for text, count in tally.failed.items())
        print(f"{tally.client:<12} {tally.calls:>8} {tally.failures:>8}  {told}")


if __name__ == "__main__":
    asyncio.run(main())
