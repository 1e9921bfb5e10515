package retryd

import (
	"context"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// grpcProbe sees what grpc-go knows about one attempt.
type grpcProbe struct {
	// Set once a stream was opened. gRPC opens no other one after an attempt to open one failed.
	peer peer.Peer
	// What the server sent. Anything that gRPC takes for an answer carries a content-type at least.
	header, trailer metadata.MD
	// How the attempt ended, and how often gRPC said so: never, if somebody else ended it.
	ended error
	ends  int
}

func (p *grpcProbe) options() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.Peer(&p.peer),
		grpc.Header(&p.header),
		grpc.Trailer(&p.trailer),
		grpc.OnFinish(func(err error) { p.ended, p.ends = err, p.ends+1 }),
	}
}

// describe tells what is known about the attempt that ended with err. ctx is the attempt's.
func (p *grpcProbe) describe(caller, ctx context.Context, err error) *failure {
	said := status.Convert(err)
	// An interceptor may have made the error, or more than one attempt. Then nothing is known.
	watched := p.ends == 1 && p.ended == err
	opened := p.peer.Addr != nil
	begun := len(p.header) != 0
	answered := begun || len(p.trailer) != 0
	f := &failure{
		what: &retrydv1.Failure{
			Category: retrydv1.FailureCategory_FAILURE_CATEGORY_STATUS,
			Status:   &retrydv1.Failure_GrpcCode{GrpcCode: uint32(said.Code())},
		},
		hint: p.hint(said),
	}
	if watched && begun {
		// Whoever makes the status now, the server has begun its answer: even a code that a policy takes for
		// a refusal is none, such as RESOURCE_EXHAUSTED for an answer that is too large.
		f.evidence = retrydv1.Evidence_EVIDENCE_MAYBE_PROCESSED
	}
	if !watched || answered {
		return f
	}
	// From here on the status is the library's own work: the server has said nothing that it could rest on.
	f.evidence = retrydv1.Evidence_EVIDENCE_MAYBE_PROCESSED
	switch {
	case !opened:
		f.evidence = retrydv1.Evidence_EVIDENCE_NOT_SENT
	case isRefused(said):
		f.evidence = retrydv1.Evidence_EVIDENCE_REFUSED
	}
	switch {
	case said.Code() == codes.Canceled && caller.Err() == context.Canceled:
		f.what.Category = retrydv1.FailureCategory_FAILURE_CATEGORY_CANCELLED
	case said.Code() == codes.DeadlineExceeded && !isOver(caller) && isOver(ctx):
		f.what.Category = retrydv1.FailureCategory_FAILURE_CATEGORY_ATTEMPT_TIMEOUT
	case opened:
		f.what.Category = categoryOfStream(said)
	default:
		f.what.Category = categoryOfConnection(said)
	}
	return f
}

// categoryOfConnection reads why no stream was opened.
func categoryOfConnection(made *status.Status) retrydv1.FailureCategory {
	const failedDial = `connection error: desc = "transport: Error while dialing: dial tcp: lookup `
	const failedHandshake = `connection error: desc = "transport: authentication handshake failed: `
	text := strings.TrimPrefix(made.Message(), "last connection error: ")
	switch {
	case made.Code() != codes.Unavailable:
		return retrydv1.FailureCategory_FAILURE_CATEGORY_STATUS
	case hasPrefix(text, "name resolver error: ", "last resolver error: ", failedDial):
		return retrydv1.FailureCategory_FAILURE_CATEGORY_NAME_RESOLUTION
	case hasPrefix(text, failedHandshake+"tls: failed to verify certificate: "):
		return retrydv1.FailureCategory_FAILURE_CATEGORY_CERTIFICATE_REJECTED
	case hasPrefix(text, failedHandshake):
		return retrydv1.FailureCategory_FAILURE_CATEGORY_TLS_HANDSHAKE
	case hasPrefix(text, "connection error: "):
		return retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECT
	}
	return retrydv1.FailureCategory_FAILURE_CATEGORY_STATUS
}

// categoryOfStream reads why a stream ended without an answer.
func categoryOfStream(made *status.Status) retrydv1.FailureCategory {
	switch {
	case isRefused(made):
		return retrydv1.FailureCategory_FAILURE_CATEGORY_STREAM_REFUSED
	case hasPrefix(made.Message(), "stream terminated by RST_STREAM with error code: ",
		"error reading from server: ", "connection error: ", "closing transport due to: "):
		return retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECTION_RESET
	case hasPrefix(made.Message(), "trying to send message larger than max "):
		return retrydv1.FailureCategory_FAILURE_CATEGORY_MESSAGE_TOO_LARGE
	}
	return retrydv1.FailureCategory_FAILURE_CATEGORY_STATUS
}

// isRefused tells whether the server has said, in a frame, that it did not work on the stream.
func isRefused(made *status.Status) bool {
	switch made.Message() {
	case "stream terminated by RST_STREAM with error code: REFUSED_STREAM",
		// GOAWAY with a last stream below this one.
		"the connection is draining", "the stream is rejected because server is draining the connection":
		return made.Code() == codes.Unavailable
	}
	return false
}

// hint is the server's word about the next attempt; nil if it said nothing.
func (p *grpcProbe) hint(said *status.Status) *retrydv1.ServerHint {
	var hint retrydv1.ServerHint
	present := false
	if pushback := p.trailer.Get("grpc-retry-pushback-ms"); len(pushback) != 0 {
		hint.GrpcRetryPushbackMs, present = headerText(pushback), true
	}
	for _, detail := range said.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().IsValid() {
			hint.RetryAfter, present = info.GetRetryDelay(), true
		}
	}
	if !present {
		return nil
	}
	return &hint
}

func hasPrefix(text string, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
