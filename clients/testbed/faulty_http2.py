"""A faulty gRPC service, down to the frames of HTTP/2."""

import asyncio
import base64
from contextlib import suppress

from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import StringValue
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError

from .faulty_http1 import ARRIVAL_SECONDS, cut
from .plays import Plays
from .script import next_step

GRPC = (":status", "200"), ("content-type", "application/grpc")


async def start(plays: Plays) -> str:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(plays), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    return f"{host}:{port}"


class Connection(asyncio.Protocol):
    def __init__(self, plays: Plays) -> None:
        self.plays = plays
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.headers: dict[int, dict[str, str]] = {}
        self.answers: set[asyncio.Task] = set()

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.h2.initiate_connection()
        self.flush()

    def connection_lost(self, _error: Exception | None) -> None:
        for task in self.answers:
            task.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            events = self.h2.receive_data(data)
        except ProtocolError:
            events = []
            self.transport.close()
        for event in events:
            match event:
                case RequestReceived(stream_id=stream, headers=headers):
                    self.headers[stream] = dict(headers)
                case DataReceived(stream_id=stream, flow_controlled_length=length):
                    self.h2.acknowledge_received_data(length, stream)
                case StreamEnded(stream_id=stream):
                    self.answer_soon(stream, self.headers.pop(stream))
                case StreamReset(stream_id=stream):
                    self.headers.pop(stream, None)
                case ConnectionTerminated():
                    self.transport.close()
        self.flush()

    def answer_soon(self, stream: int, headers: dict[str, str]) -> None:
        step = next_step(self.plays, headers)
        task = asyncio.ensure_future(self.answer(stream, step))
        self.answers.add(task)
        task.add_done_callback(self.answers.discard)

    async def answer(self, stream: int, step: dict) -> None:
        await asyncio.sleep(step.get("after_ms", 0) / 1000)
        # By then the client may have given this stream up.
        with suppress(ProtocolError):
            await self.play(stream, step)
        self.flush()

    async def play(self, stream: int, step: dict) -> None:
        match step:
            case {"ok": True}:
                self.send_headers(stream)
                self.h2.send_data(stream, framed(StringValue(value="done").SerializeToString()))
                self.send_trailers(stream, [("grpc-status", "0")])
            case {"grpc": code}:
                if step.get("headers_first"):
                    self.send_headers(stream)
                    self.send_trailers(stream, trailers(code, step))
                else:
                    self.h2.send_headers(stream, [*GRPC, *trailers(code, step)], end_stream=True)
            case {"http": status}:
                headers = [(":status", str(status)), ("content-type", "text/html"), *step.get("headers", {}).items()]
                self.h2.send_headers(stream, headers, end_stream=True)
            case {"refuse": True}:
                self.h2.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
            case {"reset": where}:
                if where == "after_headers":
                    self.send_headers(stream)
                    await asyncio.sleep(ARRIVAL_SECONDS)
                self.h2.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)
            case {"goaway": where}:
                last = stream if where == "at" else max(0, stream - 2)
                self.h2.close_connection(ErrorCodes.NO_ERROR, last_stream_id=last)
                self.flush()
                await asyncio.sleep(ARRIVAL_SECONDS)
                self.transport.close()
            case {"close": where}:
                if where != "before_headers":
                    self.send_headers(stream)
                await asyncio.sleep(ARRIVAL_SECONDS)
                cut(self.transport)
            case {"garbage": True}:
                self.send_headers(stream)
                self.h2.send_data(stream, framed(b"\xff\xff\xff"))
                self.send_trailers(stream, [("grpc-status", "0")])
            case {"hang": True}:
                pass
            case _:
                said = [("grpc-status", "12"), ("grpc-message", "no such step over HTTP/2")]
                self.h2.send_headers(stream, [*GRPC, *said], end_stream=True)

    def send_headers(self, stream: int) -> None:
        self.h2.send_headers(stream, GRPC)
        self.flush()

    def send_trailers(self, stream: int, said: list[tuple[str, str]]) -> None:
        self.h2.send_headers(stream, said, end_stream=True)

    def flush(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(self.h2.data_to_send())


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def trailers(code: int, step: dict) -> list[tuple[str, str]]:
    # A text that lies about itself: nobody may read evidence out of what a server says.
    said = [("grpc-status", str(code)), ("grpc-message", step.get("message", "connection refused"))]
    if "pushback" in step:
        said.append(("grpc-retry-pushback-ms", step["pushback"]))
    if "retry_info_ms" in step:
        detail = Any()
        detail.Pack(RetryInfo(retry_delay=Duration(nanos=step["retry_info_ms"] * 1_000_000)))
        status = Status(code=code, message="see details", details=[detail]).SerializeToString()
        said.append(("grpc-status-details-bin", base64.b64encode(status).decode().rstrip("=")))
    return said
