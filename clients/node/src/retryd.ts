import {
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
  create,
  fromBinary,
  toBinary,
} from "@bufbuild/protobuf";
import { type ChannelCredentials, Client, Metadata, type ServiceError } from "@grpc/grpc-js";
import { ErrorInfoSchema } from "../gen/google/rpc/details_pb.js";
import { detailOf } from "./details.js";

/** A connection to retryd: calls the unary methods of its generated services. */
export class Retryd {
  readonly #client: Client;

  /** Connects at once: the first question could not wait for it. */
  constructor(target: string, credentials: ChannelCredentials) {
    this.#client = new Client(target, credentials, {
      // A question is asked once, so there are no retries of any kind.
      "grpc.enable_retries": 0,
      "grpc.service_config_disable_resolution": 1,
      // Behind a name of several addresses, every retryd gets its share.
      "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
      // By default a retryd that comes back is noticed only after up to two minutes.
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 1000,
    });
    this.#client.getChannel().getConnectivityState(true);
  }

  /** Rejects with grpc-js's ServiceError. */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    timeoutMs: number,
  ): Promise<MessageShape<O>> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest<MessageShape<I>, MessageShape<O>>(
        `/${method.parent.typeName}/${method.name}`,
        (message) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, bytes),
        create(method.input, request),
        new Metadata(),
        { deadline: Date.now() + timeoutMs },
        (error, answer) => (error ? reject(error) : resolve(answer!)),
      );
    });
  }

  close(): void {
    this.#client.close();
  }
}

/** Whether retryd itself said no, so that nothing was counted or charged. */
export function isRefusal(error: ServiceError): boolean {
  return detailOf(error.metadata, ErrorInfoSchema)?.domain === "retryd";
}
