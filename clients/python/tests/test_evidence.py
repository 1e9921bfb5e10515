"""What each library makes of each failure, against evidence.json."""

import json
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from .adapters import play
from .testbed import Testbed, scenarios

EVIDENCE = json.loads((Path(__file__).parents[1] / "evidence.json").read_text())
LIBRARIES = {"call": ("grpcio", "grpc"), "future": ("grpcio", "grpc"), "requests": ("requests", "http")}


def parameters() -> list[Any]:
    """A caller that waits cannot cancel; one that has a future can."""
    return [
        pytest.param(adapter, place, failure, id=f"{adapter}: {failure['name']}")
        for adapter, (library, over) in LIBRARIES.items()
        for place, failure in enumerate(scenarios("failures")["failures"])
        if over in failure["over"] and "absent" not in EVIDENCE[library][failure["name"]]
        if adapter == "future" or "cancel_after_ms" not in failure.get("call", {})
    ]


@pytest.mark.parametrize(("adapter", "place", "failure"), parameters())
def test_failure(testbed: Testbed, adapter: str, place: int, failure: dict[str, Any]) -> None:
    run = play(testbed, adapter, f"python-evidence-{adapter}-{place}", failure)
    context = run.seen["questions"][0]["context"]
    told = context["failure"]
    statuses = [f"{name} {told[key]}" for name, key in (("http", "httpStatus"), ("grpc", "grpcCode")) if key in told]
    row = EVIDENCE[LIBRARIES[adapter][0]][failure["name"]]
    assert told["category"].removeprefix("FAILURE_CATEGORY_") == row["category"]
    assert context.get("evidence", "EVIDENCE_-").removeprefix("EVIDENCE_") == (row.get("evidence") or "-")
    assert statuses == ([row["status"]] if row.get("status") else [])


@pytest.mark.parametrize("library", ["grpcio", "requests"])
def test_every_failure_has_a_row(library: str) -> None:
    over = "grpc" if library == "grpcio" else "http"
    assert [it["name"] for it in scenarios("failures")["failures"] if over in it["over"]] == list(EVIDENCE[library])


def test_grpcio_does_not_tell_its_own_status_from_a_servers(testbed: Testbed) -> None:
    """Why the rows of grpcio prove so little. Where this fails, grpcio has begun to tell, and the kit can say more."""
    own = failure_of(testbed.addresses["grpc"]["closed"])
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers([Repeating(own)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        sent = failure_of(f"127.0.0.1:{port}")
    finally:
        server.stop(None)
    assert fields(own) == fields(sent)


class Repeating(grpc.GenericRpcHandler):
    """Passes an error of its upstream on, as many a server does."""

    def __init__(self, error: grpc.RpcError) -> None:
        self.error = error

    def service(self, _details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        return grpc.unary_unary_rpc_method_handler(
            lambda _request, context: context.abort(self.error.code(), self.error.details())
        )


def failure_of(address: str) -> grpc.RpcError:
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/a.Service/Method")(b"", timeout=20)
    return raised.value


def fields(error: grpc.RpcError) -> tuple[Any, ...]:
    metadata = error.initial_metadata(), error.trailing_metadata()
    return type(error), error.code(), error.details(), error.debug_error_string(), metadata
