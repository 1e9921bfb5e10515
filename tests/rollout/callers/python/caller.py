"""Calls Decide at a fixed rate until standard input ends: `caller.py [--wait-for-ready] ADDRESS RATE`.

Prints `calling` when it has had its first answer, and a tally at the end.
"""

import json
import sys
import threading
import time
from pathlib import Path

import grpc

sys.path.append(str(Path(__file__).parents[4] / "proto"))
contract, services = grpc.protos_and_services("retryd/v1/retryd.proto")

DEADLINE_SECONDS = 30


def main(wait_for_ready: bool, address: str, rate: float) -> None:
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    question = contract.RetryContext(
        tenant="rollout",
        operation="python",
        attempts_made=1,
        body_replayable=True,
        failure=contract.Failure(grpc_code=8),
    )
    with grpc.insecure_channel(address) as channel:
        decide = services.RetryServiceStub(channel).Decide
        decide(question, timeout=DEADLINE_SECONDS)
        print("calling", flush=True)
        calls, due = [], time.monotonic()
        while not ended.is_set():
            calls.append(Call(decide.future(question, timeout=DEADLINE_SECONDS, wait_for_ready=wait_for_ready)))
            due += 1 / rate
            ended.wait(max(0, due - time.monotonic()))
        failed = [call.failure() for call in calls if call.future.exception()]
    print(json.dumps({"calls": len(calls), "failed": failed}))


class Call:
    def __init__(self, future: grpc.Future) -> None:
        self.began_ms = now_ms()
        self.future = future
        # An exception only ends the wait for the answer, so that it may come a moment before this.
        self.ended = threading.Event()
        future.add_done_callback(self.end)

    def end(self, _future: grpc.Future) -> None:
        self.ended_ms = now_ms()
        self.ended.set()

    def failure(self) -> dict:
        self.ended.wait()
        text = f"{self.future.code().name}: {self.future.details()}"
        return {"text": text, "began_ms": self.began_ms, "ended_ms": self.ended_ms}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    *options, where, calls_per_second = sys.argv[1:]
    main("--wait-for-ready" in options, where, float(calls_per_second))
