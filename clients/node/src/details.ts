import { type DescMessage, type MessageShape, fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import type { Metadata } from "@grpc/grpc-js";
import { StatusSchema } from "../gen/google/rpc/details_pb.js";

/** The first detail of this type that came with a status; bytes that cannot be read are none. */
export function detailOf<D extends DescMessage>(
  metadata: Metadata | undefined,
  schema: D,
): MessageShape<D> | undefined {
  const bytes = metadata?.get("grpc-status-details-bin")[0];
  if (!(bytes instanceof Buffer)) {
    return undefined;
  }
  try {
    const { details } = fromBinary(StatusSchema, bytes);
    return details.map((any) => anyUnpack(any, schema)).find((detail) => detail !== undefined);
  } catch {
    return undefined;
  }
}
