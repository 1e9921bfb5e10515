"""Plays cases of tests/vectors over a connection, by the rules of its README."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo

from retryd.details import unpack
from retryd.v1 import retryd_pb2 as pb
from retryd.v1.retryd_pb2_grpc import BudgetServiceStub, RetryServiceStub

from .compare import differences
from .testbed import REPOSITORY

Json = dict[str, Any]

CALL_SECONDS = 20
TERMS = {"repeat", "granted", "as", "expect", "error"}
ACTIONS = {"ask", "report", "reports", "acquire", "release", "budget", "list"}
CASE_KEYS = {
    *("name", "source", "needs", "alone", "clock", "draw", "operation"),
    *("steps", "before", "context", "contexts", "expect", "error"),
}


@dataclass
class File:
    name: str
    policy: str
    base: Json
    cases: list[Json]

    def revision(self) -> str:
        return hashlib.sha256(self.policy.encode()).hexdigest()[:12]


def load_all() -> list[File]:
    paths = sorted((REPOSITORY / "tests/vectors").glob("*.json"))
    assert paths, "no vectors"
    return [load(path.stem, json.loads(path.read_text())) for path in paths]


def load(name: str, json_: Json) -> File:
    assert json_.keys() <= {"about", "policy", "base", "cases"}, f"{name}: unknown keys"
    assert json_["cases"], f"{name}: no cases"
    for case in json_["cases"]:
        assert case.keys() <= CASE_KEYS, f"{name}: `{case['name']}` has unknown keys"
    return File(name, "\n".join(json_["policy"]) + "\n", json_.get("base", {}), json_["cases"])


@dataclass
class Sequence:
    """One play of a case."""

    file: File
    case: Json
    tenant: str
    steps: list[Json]
    named: dict[str, str] = field(default_factory=dict)

    def play(self, channel: grpc.Channel) -> list[str]:
        """Everything that differs."""
        player = Player(self, RetryServiceStub(channel), BudgetServiceStub(channel))
        return [f"step {place}: {it}" for place, step in enumerate(self.steps) for it in player.step(step)]


def portable(file: File) -> Iterator[Sequence]:
    for place, case in enumerate(file.cases):
        if case.get("needs"):
            continue
        for turn, steps in enumerate(plays(case)):
            yield Sequence(file, case, f"{file.name}-{place}-{turn}", steps)


def plays(case: Json) -> list[list[Json]]:
    if "steps" in case:
        return [case["steps"]]
    terms = {key: case[key] for key in ("expect", "error") if key in case}
    contexts = [case["context"]] if "context" in case else case["contexts"]
    return [[*case.get("before", []), {"ask": context, **terms}] for context in contexts]


class Player:
    def __init__(self, sequence: Sequence, retries: RetryServiceStub, budgets: BudgetServiceStub) -> None:
        self.sequence = sequence
        self.methods = {
            "ask": (retries.Decide, pb.RetryContext),
            "report": (budgets.ReportUsage, pb.ReportUsageRequest),
            "reports": (budgets.ReportUsage, pb.ReportUsageRequest),
            "acquire": (budgets.AcquireRetries, pb.AcquireRetriesRequest),
            "release": (budgets.ReleaseRetries, pb.ReleaseRetriesRequest),
            "budget": (budgets.GetBudget, pb.GetBudgetRequest),
            "list": (budgets.ListBudgets, pb.ListBudgetsRequest),
        }

    def step(self, step: Json) -> Iterator[str]:
        (action,) = step.keys() - TERMS
        assert action in ACTIONS, f"`{action}` is nothing that can be done over a connection"
        calls = step[action] if isinstance(step[action], list) else [step[action]]
        granted = 0
        for _ in range(step.get("repeat", 1)):
            for call in calls:
                answer = self.call(action, call)
                if isinstance(answer, pb.Decision):
                    granted += answer.verdict == pb.VERDICT_RETRY
                for difference in self.judge(action, step, call, answer):
                    yield f"{difference} (call {call})"
        if step.get("granted", granted) != granted:
            yield f"granted {granted}, expected {step['granted']}"

    def call(self, action: str, call: Json) -> Message | grpc.RpcError:
        method, kind = self.methods[action]
        try:
            answer = method(request_of(kind, self.filled(action, call)), timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            return error
        if action == "report":
            (answer,) = answer.results
        return answer

    def filled(self, action: str, call: Json) -> Json:
        names = {"tenant": self.sequence.tenant, "operation": self.sequence.case.get("operation", "op")}
        match action:
            case "ask":
                return given({**names, **self.sequence.file.base, **call})
            case "report":
                return {"usage": [given({**names, **call})]}
            case "reports":
                return {**call, "usage": [given({**names, **entry}) for entry in call["usage"]]}
            case "list":
                return self.with_named(given(call), "pageToken")
            case _:
                return self.with_named(given({**names, **call}), "lease")

    def with_named(self, call: Json, key: str) -> Json:
        match call.get(key):
            case {"as": label}:
                return {**call, key: self.sequence.named[label]}
        return call

    def judge(self, action: str, step: Json, call: Json, answer: Message | grpc.RpcError) -> Iterator[str]:
        if isinstance(answer, grpc.RpcError):
            if "error" in step:
                yield from refusal_differs(answer, step["error"])
            else:
                yield f"ended with {answer.code()}: {answer.details()}"
            return
        if "error" in step:
            yield f"no error, but {answer}"
        got = MessageToDict(answer)
        yield from differences(step.get("expect", {}), got)
        if "as" in step:
            self.sequence.named[step["as"]] = answer.next_page_token if action == "list" else answer.lease
        for law, holds in self.laws(action, step, call, answer):
            if not holds:
                yield f"broken: {law}; got {got}"

    def laws(self, action: str, step: Json, call: Json, answer: Message) -> Iterator[tuple[str, bool]]:
        shadow = step.get("expect", {}).get("shadow", False)
        match action:
            case "ask":
                explain = {**self.sequence.file.base, **call}.get("explain", False)
                yield from decision_laws(answer, bool(explain), shadow, self.sequence.file.revision())
            case "report":
                yield "refused only where that is expected", "expect" in step or not answer.HasField("refusal")
            case "reports":
                refused = any(result.HasField("refusal") for result in answer.results)
                yield "refused only where that is expected", "expect" in step or not refused
            case "acquire":
                yield "no more is granted than was wanted", answer.granted <= call["wanted"]
                yield "a lease comes with retries", (answer.granted == 0) == (answer.lease == "")
                valid_ns = answer.valid_for.ToNanoseconds()
                yield "valid for 1 s to 10 s", 10**9 <= valid_ns <= 10**10
                yield "shadow where that is expected", answer.shadow == shadow
            case "release":
                yield "no more is released than was unused", answer.released <= call["unused"]


def decision_laws(decision: pb.Decision, explain: bool, shadow: bool, revision: str) -> Iterator[tuple[str, bool]]:
    retries = decision.verdict == pb.VERDICT_RETRY
    delay_ns = decision.delay.ToNanoseconds()
    objections = [step.objected for step in decision.steps]
    yield "the verdict is one of the two", decision.verdict in (pb.VERDICT_RETRY, pb.VERDICT_DO_NOT_RETRY)
    yield "the reason is told", decision.reason != pb.REASON_UNSPECIFIED
    yield "RETRY and RETRYABLE come together", retries == (decision.reason == pb.REASON_RETRYABLE)
    yield "RETRY has a delay of whole milliseconds", not retries or (delay_ns >= 10**6 and delay_ns % 10**6 == 0)
    yield "only RETRY has a delay", retries == decision.HasField("delay")
    yield "only RETRY has a source", retries == (decision.delay_source != pb.DELAY_SOURCE_UNSPECIFIED)
    yield "the class is told", decision.failure_class != pb.FAILURE_CLASS_UNSPECIFIED
    yield "the policy is told", decision.policy != ""
    yield "the revision is the file's", decision.policy_revision == revision
    yield "shadow where that is expected", decision.shadow == shadow
    yield "nothing is degraded", not decision.degraded
    yield "detail comes with explain", explain == (decision.detail != "")
    yield "steps come with explain", explain == bool(decision.steps)
    yield "every step saw something", all(step.saw for step in decision.steps)
    if decision.steps:
        yield "the last step is the reason", decision.steps[-1].rule == decision.reason
        yield "only the last step of a refusal objected", objections == [False] * (len(objections) - 1) + [not retries]


def refusal_differs(error: grpc.RpcError, expect: Json) -> list[str]:
    info, bad, found = ErrorInfo(), BadRequest(), []
    unpack(error, info)
    unpack(error, bad)
    paths = sorted(violation.field for violation in bad.field_violations)
    for what, got, wanted in (
        ("code", error.code().name, expect["code"]),
        ("domain", info.domain, "retryd"),
        ("reason", info.reason, expect["reason"]),
        ("violations", paths, sorted(expect["violations"])),
    ):
        if got != wanted:
            found.append(f"{what} {got!r}, expected {wanted!r}")
    texts = [error.details() or "", *(violation.description for violation in bad.field_violations)]
    if any(is_control(character) for text in texts for character in text):
        found.append("a control character of the question came back")
    return found


def is_control(character: str) -> bool:
    return ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0


def given(call: Json) -> Json:
    return {key: value for key, value in call.items() if value is not None}


def request_of(kind: type[Message], json_: Json) -> Message:
    """Durations out of range are no proto-JSON: they are set on the message itself."""
    rest, durations = split(json_)
    message = ParseDict(rest, kind())
    for path, parts in durations:
        assert parts.keys() <= {"seconds", "nanos"}, f"unknown key in {parts}"
        target = message
        for step in path:
            target = target[step] if isinstance(step, int) else getattr(target, step)
        target.SetInParent()
        target.seconds, target.nanos = int(parts.get("seconds", 0)), int(parts.get("nanos", 0))
    return message


DURATIONS = {"remainingDeadline": "remaining_deadline", "retryAfter": "retry_after", "period": "period"}


def split(value: Any, path: tuple[str | int, ...] = ()) -> tuple[Any, list[tuple[Any, Json]]]:
    """What proto-JSON can say, and the durations that it cannot."""
    found: list[tuple[Any, Json]] = []
    if isinstance(value, list):
        pairs: Any = list(enumerate(value))
    elif isinstance(value, dict):
        pairs = list(value.items())
    else:
        return value, found
    kept = {}
    for key, part in pairs:
        if key in DURATIONS and isinstance(part, dict):
            found.append(((*path, DURATIONS[key]), part))
            continue
        kept[key], deeper = split(part, (*path, key))
        found.extend(deeper)
    return (list(kept.values()) if isinstance(value, list) else kept), found
