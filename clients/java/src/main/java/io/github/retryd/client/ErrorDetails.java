package io.github.retryd.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.rpc.ErrorInfo;
import com.google.rpc.Status;
import io.grpc.Metadata;
import java.util.Optional;

/** What an error carries beside its status (google.rpc.Status). Whatever cannot be read is not there. */
final class ErrorDetails {
  private static final Metadata.Key<byte[]> STATUS =
      Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);

  /** The first detail of a type. */
  static <T extends Message> Optional<T> find(Metadata trailers, Class<T> type) {
    byte[] status = trailers == null ? null : trailers.get(STATUS);
    if (status == null) {
      return Optional.empty();
    }
    try {
      for (Any detail : Status.parseFrom(status).getDetailsList()) {
        if (detail.is(type)) {
          return Optional.of(detail.unpack(type));
        }
      }
    } catch (InvalidProtocolBufferException unreadable) {
      return Optional.empty();
    }
    return Optional.empty();
  }

  /** Whether retryd itself made the error, and has therefore counted nothing. */
  static boolean isOfRetryd(Metadata trailers) {
    return find(trailers, ErrorInfo.class).filter(info -> info.getDomain().equals("retryd")).isPresent();
  }

  private ErrorDetails() {}
}
