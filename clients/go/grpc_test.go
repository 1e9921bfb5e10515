package retryd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// askedOver makes a call that fails, and returns what retryd is asked about its first attempt.
func askedOver(t *testing.T, target, script string, options ...grpc.DialOption) *retrydv1.RetryContext {
	t.Helper()
	asked := make(chan *retrydv1.RetryContext, 1)
	retryd := &fake{decide: func(_ context.Context, question *retrydv1.RetryContext) (*retrydv1.Decision, error) {
		asked <- question
		return &retrydv1.Decision{Verdict: retrydv1.Verdict_VERDICT_DO_NOT_RETRY}, nil
	}}
	retryd.serve(t, "")
	client := newClient(t, retryd.address, nil)
	conn, err := grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithChainUnaryInterceptor(client.UnaryInterceptor()),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-play", newRun("grpc"), "x-script", script)
	if err := conn.Invoke(ctx, method, wrapperspb.String(""), &wrapperspb.StringValue{}); err == nil {
		t.Fatal("the call succeeded")
	}
	return <-asked
}

func wantFailure(t *testing.T, asked *retrydv1.RetryContext, category retrydv1.FailureCategory, evidence retrydv1.Evidence) {
	t.Helper()
	if asked.GetFailure().GetCategory() != category || asked.GetEvidence() != evidence {
		t.Errorf("%v %v, expected %v %v", asked.GetFailure().GetCategory(), asked.GetEvidence(), category, evidence)
	}
}

// A server, or a proxy, may say whatever this kit reads out of the library's own texts.
func TestTheTextOfAServerProvesNothing(t *testing.T) {
	for _, text := range []string{
		"stream terminated by RST_STREAM with error code: REFUSED_STREAM",
		"the connection is draining",
		"the stream is rejected because server is draining the connection",
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`,
		"name resolver error: produced zero addresses",
		"error reading from server: EOF",
	} {
		for _, headersFirst := range []bool{false, true} {
			script, err := json.Marshal([]any{map[string]any{"grpc": 14, "message": text, "headers_first": headersFirst}})
			if err != nil {
				t.Fatal(err)
			}
			asked := askedOver(t, testbed.GRPC["faulty"], string(script))
			evidence := retrydv1.Evidence_EVIDENCE_UNSPECIFIED
			if headersFirst {
				evidence = retrydv1.Evidence_EVIDENCE_MAYBE_PROCESSED
			}
			wantFailure(t, asked, retrydv1.FailureCategory_FAILURE_CATEGORY_STATUS, evidence)
		}
	}
}

// RESOURCE_EXHAUSTED reads as a refusal where nothing else is known. Here the service has done its work.
func TestAnAnswerThatIsTooLargeIsNoRefusal(t *testing.T) {
	asked := askedOver(t, testbed.GRPC["faulty"], `[{"ok": true}]`, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1)))
	if asked.GetFailure().GetGrpcCode() != uint32(codes.ResourceExhausted) {
		t.Error(asked.GetFailure())
	}
	wantFailure(t, asked, retrydv1.FailureCategory_FAILURE_CATEGORY_STATUS, retrydv1.Evidence_EVIDENCE_MAYBE_PROCESSED)
}

func TestAnEmptyKeyIsNone(t *testing.T) {
	for key, sent := range map[string]bool{"": false, "k1": true} {
		if sendsMetadata(metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", key), "Idempotency-Key") != sent {
			t.Errorf("key %q", key)
		}
	}
}

// What retryd would refuse must not end the question.
func TestAHintThatCannotBeToldIsNone(t *testing.T) {
	made, err := status.New(codes.Unavailable, "").WithDetails(&errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: 1, Nanos: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if hint := (&grpcProbe{}).hint(made); hint != nil {
		t.Error(hint)
	}
	hint := (&grpcProbe{trailer: metadata.Pairs("grpc-retry-pushback-ms", "\xff")}).hint(made)
	if _, err := proto.Marshal(hint); err != nil || !forbids(hint) {
		t.Errorf("%v, %v", hint, err)
	}
}

// Nor does the text of an interceptor, which knows no better whether something was sent.
func TestTheErrorOfAnInterceptorProvesNothing(t *testing.T) {
	const text = `connection error: desc = "made up"`
	for name, beneath := range map[string]grpc.UnaryClientInterceptor{
		"without an attempt": func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
			return status.Error(codes.Unavailable, text)
		},
		"in place of the attempt's": func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			_ = invoke(ctx, method, request, reply, conn, options...)
			return status.Error(codes.Unavailable, text)
		},
		"of the second of two attempts": func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			_ = invoke(ctx, method, request, reply, conn, options...)
			return invoke(ctx, method, request, reply, conn, options...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := askedOver(t, testbed.GRPC["closed"], "[]", grpc.WithChainUnaryInterceptor(beneath))
			wantFailure(t, asked, retrydv1.FailureCategory_FAILURE_CATEGORY_STATUS, retrydv1.Evidence_EVIDENCE_UNSPECIFIED)
		})
	}
}

func TestAServerThatCannotBeTrustedOverGRPC(t *testing.T) {
	stranger := httptest.NewUnstartedServer(nil)
	stranger.EnableHTTP2 = true
	stranger.StartTLS()
	defer stranger.Close()
	secure := grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{}))
	asked := askedOver(t, stranger.Listener.Addr().String(), "[]", secure)
	wantFailure(t, asked, retrydv1.FailureCategory_FAILURE_CATEGORY_CERTIFICATE_REJECTED, retrydv1.Evidence_EVIDENCE_NOT_SENT)

	asked = askedOver(t, testbed.GRPC["faulty"], "[]", secure)
	wantFailure(t, asked, retrydv1.FailureCategory_FAILURE_CATEGORY_TLS_HANDSHAKE, retrydv1.Evidence_EVIDENCE_NOT_SENT)
}

func TestAMessageThatIsTooLargeForTheCaller(t *testing.T) {
	asked := askedOver(t, testbed.GRPC["faulty"], "[]", grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1)), grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, _, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			return invoke(ctx, method, wrapperspb.String("too large"), reply, conn, options...)
		}))
	wantFailure(t, asked, retrydv1.FailureCategory_FAILURE_CATEGORY_MESSAGE_TOO_LARGE, retrydv1.Evidence_EVIDENCE_MAYBE_PROCESSED)
}

// A server of many addresses is balanced by other code, with other texts.
func TestRoundRobinTellsOfAConnectionRefused(t *testing.T) {
	asked := askedOver(t, testbed.GRPC["closed"], "[]", grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
	wantFailure(t, asked, retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECT, retrydv1.Evidence_EVIDENCE_NOT_SENT)
}

// An attempt whose time is over while it waits for a connection was not sent.
func TestAnAttemptThatNeverGotAConnection(t *testing.T) {
	var seen grpcProbe
	caller := t.Context()
	ctx, cancel := context.WithTimeout(caller, 50*time.Millisecond)
	defer cancel()
	conn, err := grpc.NewClient(testbed.GRPC["closed"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Invoke(ctx, method, wrapperspb.String(""), &wrapperspb.StringValue{}, append(seen.options(), grpc.WaitForReady(true))...)
	f := seen.describe(caller, ctx, err)
	if f.what.GetCategory() != retrydv1.FailureCategory_FAILURE_CATEGORY_ATTEMPT_TIMEOUT || f.evidence != retrydv1.Evidence_EVIDENCE_NOT_SENT {
		t.Errorf("%v %v of %v", f.what, f.evidence, err)
	}
}

func TestSeveralPushbacksAreOneThatCannotBeRead(t *testing.T) {
	probe := grpcProbe{trailer: metadata.Pairs("grpc-retry-pushback-ms", "1", "grpc-retry-pushback-ms", "2")}
	hint := probe.hint(status.New(codes.Unavailable, ""))
	if hint.GetGrpcRetryPushbackMs() != "1,2" || !forbids(hint) {
		t.Error(hint)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	client := newClient(t, testbed.Retryd["asked"], func(s *Settings) { s.Operations = map[string]Operation{"op": {Declared: true}} })
	failed := make(chan error)
	const calls = 20
	for i := range calls {
		go func() {
			ctx := With(t.Context(), Call{Operation: "op"})
			headers := map[string]string{"x-play": fmt.Sprintf("%s-%d", client.settings.Tenant, i), "x-script": `[{"grpc": 14}, {"ok": true}]`}
			end, attempts := callOverGRPC(t, ctx, client, "faulty", headers, false)
			if end != "ok" || attempts != 2 {
				failed <- fmt.Errorf("%s after %d attempts", end, attempts)
			}
			failed <- nil
		}()
	}
	var all error
	for range calls {
		all = errors.Join(all, <-failed)
	}
	if all != nil {
		t.Error(all)
	}
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if usage := seen(t, client.settings.Tenant).Usage; usage["requests"] != fmt.Sprint(calls) || usage["retriedTransient"] != fmt.Sprint(calls) {
		t.Errorf("usage %v", usage)
	}
}
