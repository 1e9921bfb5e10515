"""A gRPC service that ends its calls as a test says, one after the other."""

from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

METHOD = "/shop.Cart/Add"
OPERATION = "shop.Cart/Add"


class Service(grpc.GenericRpcHandler):
    def __init__(self) -> None:
        self.codes: list[grpc.StatusCode] = []
        """The codes to end with; OK when they have run out."""
        self.response = b"done"
        self.requests: list[bytes] = []
        self._server = grpc.server(futures.ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers([self])
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self) -> None:
        self._server.stop(None).wait()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        if details.method.endswith("/List"):
            return grpc.unary_stream_rpc_method_handler(self._list)
        return grpc.unary_unary_rpc_method_handler(self._answer)

    def _answer(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self.requests.append(request)
        if self.codes:
            context.set_trailing_metadata((("attempt", str(len(self.requests))),))
            context.abort(self.codes.pop(0), f"attempt {len(self.requests)}")
        context.send_initial_metadata((("attempt", str(len(self.requests))),))
        return self.response

    def _list(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        self.requests.append(request)
        yield b"first"
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.stop()


def method(channel: grpc.Channel) -> Any:
    return channel.unary_unary(METHOD)
