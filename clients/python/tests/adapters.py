"""Calls of a scenario through each adapter."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import requests
from google.protobuf.wrappers_pb2 import StringValue
from requests.adapters import HTTPAdapter

import retryd
from retryd.http_adapter import RetryAdapter

from .testbed import Testbed

METHOD = "/payments.v1.Payments/Charge"
OPERATION = "payments.v1.Payments/Charge"
PATH = "/payments/4711"
LEASE_SECONDS = 20
# With a real retryd, so that a busy machine changes nothing.
ASK_TIMEOUT_MS = 5000


@dataclass
class Run:
    """What came of a scenario."""

    outcome: Any
    attempts: int
    took_ms: float
    seen: dict[str, Any] = field(default_factory=dict)


class Counter(grpc.UnaryUnaryClientInterceptor):
    """Beneath the kit."""

    def __init__(self) -> None:
        self.attempts = 0

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> grpc.Call:
        self.attempts += 1
        return continuation(details, request)


class CountingAdapter(HTTPAdapter):
    """Takes the place of `requests`' own beneath the kit."""

    attempts = 0

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        self.attempts += 1
        return super().send(*args, **kwargs)


def play(testbed: Testbed, adapter: str, name: str, case: dict[str, Any]) -> Run:
    """`adapter` is "call" or "future" of grpcio, or "requests"."""
    send = send_http if adapter == "requests" else send_grpc
    with client_of(testbed, adapter, name, case) as client, overrides(adapter, case):
        began = time.monotonic()
        outcome, attempts = send(testbed, client, adapter, name, case)
        took_ms = (time.monotonic() - began) * 1000
    return Run(outcome, attempts, took_ms, testbed.play(name))


@contextlib.contextmanager
def client_of(testbed: Testbed, adapter: str, name: str, case: dict[str, Any]) -> Iterator[retryd.Client]:
    said = case.get("call", {})
    at = case.get("retryd", "asked")
    ask_timeout_ms = said.get("ask_timeout_ms", ASK_TIMEOUT_MS if at == "asked" else 20)
    own_rules_ms = said.get("own_rules_ms")
    attempt_timeout_ms = said.get("attempt_timeout_ms")
    lease = said.get("lease", 0)
    operation = said.get("operation", OPERATION) or (OPERATION if adapter != "requests" else "POST 127.0.0.1")
    known = retryd.Operation(declared=said.get("declared", False), key_header=said.get("key_header"), lease=lease)
    with retryd.Client(
        target=testbed.addresses["retryd"][at],
        tenant=name,
        ask_timeout=ask_timeout_ms / 1000,
        attempt_timeout=attempt_timeout_ms and attempt_timeout_ms / 1000,
        fallback=said.get("fallback", True),
        operations={operation: known},
        own_rules=own_rules_ms and (lambda _context, _decision: own_rules_ms / 1000),
    ) as client:
        if said.get("draining"):
            client.drain()
        if lease:
            take_ahead(client, retryd.usage.Key(name, operation), lease)
        yield client


def take_ahead(client: retryd.Client, key: retryd.usage.Key, wanted: int) -> None:
    leases = client._advisor._leases
    leases.refill(key, wanted)
    end = time.monotonic() + LEASE_SECONDS
    while leases.available(key) < wanted:
        assert time.monotonic() < end, "no lease was granted"
        time.sleep(0.01)


def overrides(adapter: str, case: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
    said = case.get("call", {})
    operation = said.get("operation", OPERATION if adapter == "requests" else None)
    timeout = said["timeout_ms"] / 1000 if adapter == "requests" and "timeout_ms" in said else None
    return retryd.call(operation=operation, timeout=timeout)


def headers_of(name: str, case: dict[str, Any]) -> dict[str, str]:
    headers = {"x-play": name, "x-script": json.dumps(case["script"])}
    if "key" in case.get("call", {}):
        headers["idempotency-key"] = case["call"]["key"]
    return headers


def send_grpc(
    testbed: Testbed, client: retryd.Client, adapter: str, name: str, case: dict[str, Any]
) -> tuple[Any, int]:
    said = case.get("call", {})
    counter = Counter()
    with grpc.insecure_channel(testbed.addresses["grpc"][case.get("target", "faulty")]) as bare:
        channel = grpc.intercept_channel(bare, client.interceptor(), counter)
        method = channel.unary_unary(METHOD, StringValue.SerializeToString, StringValue.FromString)
        timeout = said["timeout_ms"] / 1000 if "timeout_ms" in said else None
        arguments = {"timeout": timeout, "metadata": tuple(headers_of(name, case).items())}
        try:
            if adapter == "call":
                answer = method(StringValue(value="pay"), **arguments)
            else:
                future = method.future(StringValue(value="pay"), **arguments)
                if "cancel_after_ms" in said:
                    threading.Timer(said["cancel_after_ms"] / 1000, future.cancel).start()
                answer = future.result()
            outcome = "ok" if answer.value == "done" else answer
        except grpc.FutureCancelledError:
            outcome = "cancelled"
        except grpc.RpcError as error:
            outcome = {"grpc": error.code().value[0]}
    return outcome, counter.attempts


def counting(client: retryd.Client) -> Any:
    """The kit's adapter, with `CountingAdapter` between it and the library's own."""
    return type("Counted", (RetryAdapter, CountingAdapter), {})(client._advisor)


def send_http(
    testbed: Testbed, client: retryd.Client, _adapter: str, name: str, case: dict[str, Any]
) -> tuple[Any, int]:
    said = case.get("call", {})
    adapter = counting(client)
    body = iter([b"pay"]) if said.get("body") == "stream" else b"pay"
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", adapter)
        url = testbed.addresses["http"][case.get("target", "faulty")] + PATH
        try:
            response = session.post(url, data=body, headers=headers_of(name, case))
            outcome = "ok" if response.status_code < 400 else {"http": response.status_code}
        except requests.RequestException as error:
            outcome = error
    return outcome, adapter.attempts
