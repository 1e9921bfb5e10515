"""Starts the testbed, prints one line of JSON about it, and ends with its standard input."""

import argparse
import asyncio
import json
import socket
import sys
from pathlib import Path

from . import control, faulty_http1, faulty_http2
from .plays import Plays
from .processes import Processes
from .retryd import Fronts

POLICY = Path(__file__).with_name("policy.yaml")
# More than 253 bytes: no resolver looks it up, so that it fails at once and without a network. Each label is legal.
UNRESOLVABLE = ".".join(["x" * 63] * 4) + ".invalid"


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m testbed", description=__doc__)
    parser.add_argument("--retryd", required=True, help="the binary")
    arguments = parser.parse_args()

    plays = Plays()
    processes = Processes(arguments.retryd)
    fronts = Fronts(plays)
    try:
        closed = Closed()
        real = await processes.start(POLICY.read_text())
        addresses = {
            "control": await control.start(plays, processes),
            "retryd": {**await fronts.start(real), "stopped": closed.address},
            "grpc": {
                "faulty": await faulty_http2.start(plays),
                "closed": closed.address,
                "unresolvable": f"{UNRESOLVABLE}:50051",
            },
            "http": {
                "faulty": await faulty_http1.start(plays),
                "closed": f"http://{closed.address}",
                "unresolvable": f"http://{UNRESOLVABLE}",
            },
        }
        print(json.dumps(addresses), flush=True)
        await until_stdin_ends()
    finally:
        await fronts.stop()
        processes.stop()


class Closed:
    """A port where nobody listens, kept from everybody else by a socket that is bound and no more."""

    def __init__(self) -> None:
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"


async def until_stdin_ends() -> None:
    """Also when whoever started us was killed: then nothing is left behind."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


if __name__ == "__main__":
    asyncio.run(main())
