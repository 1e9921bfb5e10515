import { type DescMethodUnary, create, fromBinary, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import {
  BudgetService,
  type Decision,
  DecisionSchema,
  type ReleaseRetriesRequest,
  ReleaseRetriesResponseSchema,
  type ReportUsageRequest,
  ReportUsageResponseSchema,
  RetryService,
} from "../gen/retryd/v1/retryd_pb.js";

/** A retryd that answers RETRY when the test says so. */
export class FakeRetryd {
  readonly released: ReleaseRetriesRequest[] = [];
  /** With which code a report is refused, by operation. */
  readonly refusals = new Map<string, grpc.status>();
  readonly #server = new grpc.Server();
  readonly #delay: bigint;
  readonly #waiting: (() => void)[] = [];
  #asked = () => {};

  /** The next question has come. */
  readonly asked = new Promise<void>((resolve) => (this.#asked = resolve));

  constructor(delaySeconds = 60n) {
    this.#delay = delaySeconds;
  }

  async start(): Promise<string> {
    const methods = {
      decide: definition(RetryService.method.decide),
      releaseRetries: definition(BudgetService.method.releaseRetries),
      reportUsage: definition(BudgetService.method.reportUsage),
    };
    this.#server.addService(methods, {
      decide: (_call: unknown, answer: grpc.sendUnaryData<Decision>) => {
        const decision = create(DecisionSchema, {
          verdict: 1,
          reason: 1,
          delay: { seconds: this.#delay },
        });
        this.#waiting.push(() => answer(null, decision));
        this.#asked();
      },
      releaseRetries: (
        { request }: grpc.ServerUnaryCall<ReleaseRetriesRequest, unknown>,
        answer: grpc.sendUnaryData<unknown>,
      ) => {
        this.released.push(request);
        answer(null, create(ReleaseRetriesResponseSchema, { released: 1 }));
      },
      reportUsage: (
        { request }: grpc.ServerUnaryCall<ReportUsageRequest, unknown>,
        answer: grpc.sendUnaryData<unknown>,
      ) => {
        const results = request.usage.map(({ operation }) => {
          const grpcCode = this.refusals.get(operation);
          return grpcCode === undefined
            ? {}
            : { outcome: { case: "refusal" as const, value: { grpcCode } } };
        });
        answer(null, create(ReportUsageResponseSchema, { results }));
      },
    });
    const insecure = grpc.ServerCredentials.createInsecure();
    const port = await new Promise((resolve, reject) =>
      this.#server.bindAsync("127.0.0.1:0", insecure, (error, port) =>
        error ? reject(error) : resolve(port),
      ),
    );
    return `127.0.0.1:${port}`;
  }

  /** Answers everything that was asked so far. */
  answer(): void {
    this.#waiting.splice(0).forEach((answer) => answer());
  }

  stop(): void {
    this.#server.forceShutdown();
  }
}

function definition(method: DescMethodUnary): grpc.MethodDefinition<any, any> {
  const { input, output } = method;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message) => Buffer.from(toBinary(input, message)),
    requestDeserialize: (bytes) => fromBinary(input, bytes),
    responseSerialize: (message) => Buffer.from(toBinary(output, message)),
    responseDeserialize: (bytes) => fromBinary(output, bytes),
  };
}
