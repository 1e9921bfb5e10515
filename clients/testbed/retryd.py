"""Where retryd should be: a way through to a real one that notes what passes, and stand-ins for a bad day."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from .plays import Plays, now_ms

sys.path.append(str(Path(__file__).parents[2] / "proto"))
contract = grpc.protos("retryd/v1/retryd.proto")

# As long as nobody's question may wait.
SLOW_SECONDS = 2.0
UNKNOWN_VERDICT = 99

Answer = Awaitable[bytes]
Decide = Callable[[bytes, grpc.aio.ServicerContext], Answer]


class Fronts:
    """One server for each way in which a question can end. All else is passed on."""

    def __init__(self, plays: Plays) -> None:
        self.plays = plays
        self.servers: list[grpc.aio.Server] = []

    async def start(self, real: str) -> dict[str, str]:
        """Tells the address of each."""
        self.channel = grpc.aio.insecure_channel(real, options=[("grpc.enable_retries", 0)])
        pushback = (("grpc-retry-pushback-ms", "-1"),)
        ways = {
            "asked": self.pass_on_question,
            "slow": slow,
            "unknown": unknown,
            "overloaded": refuse(grpc.StatusCode.UNAVAILABLE, "OVERLOADED", pushback),
            "unavailable": refuse(grpc.StatusCode.UNAVAILABLE, ""),
            "malformed": refuse(grpc.StatusCode.INVALID_ARGUMENT, "CONTEXT_INVALID"),
            "foreign": refuse(grpc.StatusCode.PERMISSION_DENIED, "TENANT_FOREIGN"),
            "refusing": refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, ""),
        }
        return {name: await self.serve(decide) for name, decide in ways.items()}

    async def serve(self, decide: Decide) -> str:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers([Front(self, decide)])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        self.servers.append(server)
        return f"127.0.0.1:{port}"

    async def stop(self) -> None:
        for server in self.servers:
            await server.stop(grace=None)

    async def pass_on_question(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return await self.pass_on("/retryd.v1.RetryService/Decide", request, context)

    async def pass_on(self, method: str, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        call = self.channel.unary_unary(method)(request, timeout=context.time_remaining())
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            metadata = error.trailing_metadata() or ()
            await context.abort(error.code(), error.details() or "", tuple(metadata))
            raise


class Front(grpc.GenericRpcHandler):
    """Notes what comes in, as bytes, and what goes out."""

    def __init__(self, fronts: Fronts, decide: Decide) -> None:
        self.fronts = fronts
        self.decide = decide
        self.noted = {
            "/retryd.v1.RetryService/Decide": self.question,
            "/retryd.v1.BudgetService/ReportUsage": self.report,
            "/retryd.v1.BudgetService/AcquireRetries": self.acquire,
            "/retryd.v1.BudgetService/ReleaseRetries": self.release,
        }

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        handle = self.noted.get(details.method)
        return handle and grpc.unary_unary_rpc_method_handler(handle)

    async def question(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        question = contract.RetryContext.FromString(request)
        play = self.fronts.plays[question.tenant]
        noted = {"at_ms": now_ms(), "context": MessageToDict(question)}
        play.questions.append(noted)
        answer = await self.decide(request, context)
        noted["decision"] = MessageToDict(contract.Decision.FromString(answer))
        play.earn(question.usage)
        return answer

    async def report(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        answer = await self.fronts.pass_on("/retryd.v1.BudgetService/ReportUsage", request, context)
        results = contract.ReportUsageResponse.FromString(answer).results
        for entry, result in zip(contract.ReportUsageRequest.FromString(request).usage, results, strict=True):
            if not result.HasField("refusal"):
                self.fronts.plays[entry.tenant].earn(entry.usage)
        return answer

    async def acquire(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        answer = await self.fronts.pass_on("/retryd.v1.BudgetService/AcquireRetries", request, context)
        asked = contract.AcquireRetriesRequest.FromString(request)
        granted = MessageToDict(contract.AcquireRetriesResponse.FromString(answer))
        self.fronts.plays[asked.tenant].acquires.append({"request": MessageToDict(asked), "response": granted})
        return answer

    async def release(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        answer = await self.fronts.pass_on("/retryd.v1.BudgetService/ReleaseRetries", request, context)
        asked = contract.ReleaseRetriesRequest.FromString(request)
        released = MessageToDict(contract.ReleaseRetriesResponse.FromString(answer))
        self.fronts.plays[asked.tenant].releases.append({"request": MessageToDict(asked), "response": released})
        return answer


async def slow(_request: bytes, _context: grpc.aio.ServicerContext) -> bytes:
    await asyncio.sleep(SLOW_SECONDS)
    return decision(contract.VERDICT_RETRY)


async def unknown(_request: bytes, _context: grpc.aio.ServicerContext) -> bytes:
    return decision(UNKNOWN_VERDICT)


def decision(verdict: int) -> bytes:
    """As permissive as can be: whoever believes it repeats at once."""
    delay = Duration(nanos=1_000_000)
    return contract.Decision(
        verdict=verdict, reason=contract.REASON_RETRYABLE, delay=delay, policy="stand-in"
    ).SerializeToString()


def refuse(code: grpc.StatusCode, reason: str, metadata: tuple = ()) -> Decide:
    """Ends every question with `code`; with a `reason` as retryd itself does it, else as something on the way would."""
    if reason:
        metadata += (("grpc-status-details-bin", error_info(code, reason)),)

    async def decide(_request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await context.abort(code, "a stand-in", metadata)
        raise AssertionError("aborted")

    return decide


def error_info(code: grpc.StatusCode, reason: str) -> bytes:
    detail = Any()
    detail.Pack(ErrorInfo(domain="retryd", reason=reason))
    return Status(code=code.value[0], message="a stand-in", details=[detail]).SerializeToString()
