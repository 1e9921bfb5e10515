"""The examples of the README run as they stand, but for the addresses."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from .fake_retryd import FakeRetryd
from .service import Service
from .testbed import CLIENTS

EXAMPLES = re.findall(r"```python\n(.*?)```", (CLIENTS / "python/README.md").read_text(), re.DOTALL)


@pytest.fixture
def shop() -> Iterator[HTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.server.paths.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.paths = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_both_examples(fake: FakeRetryd, service: Service, shop: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    service.response = b""
    over_grpc, over_http = EXAMPLES
    run(over_grpc, {"dns:///retryd:50051": fake.address, "dns:///payments:50051": service.address})
    run(over_http, {"dns:///retryd:50051": fake.address, "//payments/": f"//127.0.0.1:{shop.server_port}/"})
    assert len(service.requests) == 1
    assert shop.paths == ["/charges"]
    assert {operation: usage.requests for operation, usage in fake.reported().items()} == {
        "payments.v1.Payments/Charge": 1,
        "payments/charge": 1,
    }


def run(example: str, addresses: dict[str, str]) -> None:
    for name, address in addresses.items():
        assert name in example
        example = example.replace(name, address)
    exec(example, {})
