"""A collector: takes spans by OTLP over gRPC, and writes one line of JSON for each.

usage: collector.py      its first line is the port that it listens on
"""

import json
import threading
from concurrent import futures

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


class Collector(service.TraceServiceServicer):
    def __init__(self):
        self.lock = threading.Lock()

    def Export(self, request, context):
        with self.lock:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        print(json.dumps(written(resource.resource, span)), flush=True)
        return pb.ExportTraceServiceResponse()


def written(resource, span):
    return {
        "name": span.name,
        "kind": Span.SpanKind.Name(span.kind),
        "trace": span.trace_id.hex(),
        "span": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "state": span.trace_state,
        "status": Status.StatusCode.Name(span.status.code),
        "attributes": values(span.attributes),
        "resource": values(resource.attributes),
        "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
        "events": len(span.events),
    }


def values(attributes):
    return {it.key: getattr(it.value, it.value.WhichOneof("value")) for it in attributes}


def main():
    server = grpc.server(futures.ThreadPoolExecutor(4))
    service.add_TraceServiceServicer_to_server(Collector(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
