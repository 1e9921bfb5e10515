"""Asks retryd whether a failed call may be repeated. The stubs, from the root of the repository: pip install grpcio-tools,
python -m grpc_tools.protoc --proto_path=proto --python_out=examples --grpc_python_out=examples retryd/v1/retryd.proto"""
import sys, grpc
from retryd.v1 import retryd_pb2 as pb, retryd_pb2_grpc as retryd

with grpc.insecure_channel(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051") as channel:
    failure = pb.Failure(category=pb.FAILURE_CATEGORY_STATUS, http_status=429)
    question = pb.RetryContext(tenant="shop-1", operation="payments.v1.Payments/Charge",
                               attempts_made=1, body_replayable=True, failure=failure)
    decision = retryd.RetryServiceStub(channel).Decide(question, timeout=1)
print(pb.Verdict.Name(decision.verdict), pb.Reason.Name(decision.reason), decision.delay.ToMilliseconds(), "ms")
