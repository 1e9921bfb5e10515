"""Rolls retryd, and crashes it, under clients that call all the time; fails if one of their calls does."""

import argparse
import asyncio
import random
import shlex
import sys
from collections import Counter

from .callers import Caller, Tally
from .deployment import Deployment
from .pod import Tools
from .service import Service

REPLICAS = 3
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
    address = service.start()
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
    if any(tally.failed for tally in rolled):
        sys.exit("a rolling restart failed calls")
    beyond = [failure for tally in crashed for failure in tally.beyond_flight(deployment.kills_ms)]
    if arguments.crashes and beyond:
        sys.exit(f"a crash failed calls that were not in flight: {beyond}")


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
        texts = Counter(failure.text for failure in tally.failed)
        told = "; ".join(f"{count} x {text}" for text, count in texts.items())
        print(f"{tally.client:<12} {tally.calls:>8} {len(tally.failed):>8}  {told}")


if __name__ == "__main__":
    asyncio.run(main())
