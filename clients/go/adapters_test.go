package retryd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// adapter makes one call through a kit to a target of the testbed, and tells how it ended and how
// many attempts there were.
type adapter struct {
	name string
	call func(t *testing.T, ctx context.Context, client *Client, target string, headers map[string]string, stream bool) (end string, attempts int)
}

var adapters = map[string]adapter{
	"grpc": {"grpc", callOverGRPC},
	"http": {"http", callOverHTTP},
}

const method = "/payments.v1.Payments/Charge"

func callOverGRPC(t *testing.T, ctx context.Context, client *Client, target string, headers map[string]string, _ bool) (string, int) {
	t.Helper()
	var attempts int
	var last error
	count := func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		attempts++
		last = invoke(ctx, method, request, reply, conn, options...)
		return last
	}
	conn, err := grpc.NewClient(testbed.GRPC[target],
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableRetry(),
		grpc.WithChainUnaryInterceptor(client.UnaryInterceptor(), count))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reply := &wrapperspb.StringValue{}
	err = conn.Invoke(metadata.NewOutgoingContext(ctx, metadata.New(headers)), method, wrapperspb.String("4711"), reply)
	if err != last {
		t.Errorf("%v is not the library's own failure, %v", err, last)
	}
	if err == nil {
		if reply.GetValue() != "done" {
			t.Errorf("answer %q", reply.GetValue())
		}
		return "ok", attempts
	}
	return fmt.Sprintf("grpc %d", status.Code(err)), attempts
}

func callOverHTTP(t *testing.T, ctx context.Context, client *Client, target string, headers map[string]string, stream bool) (string, int) {
	t.Helper()
	// Connections of its own: a reset of one must not be met by another case.
	beneath := &countingTransport{next: &http.Transport{}}
	defer beneath.next.CloseIdleConnections()
	var body io.Reader = strings.NewReader("4711")
	if stream {
		body = io.NopCloser(body)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, testbed.HTTP[target]+"/payments/4711", body)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := client.Transport(beneath).RoundTrip(request)
	attempts := int(beneath.attempts.Load())
	if err != nil {
		return "failed", attempts
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return "failed", attempts
	case response.StatusCode == http.StatusOK && string(text) == "done":
		return "ok", attempts
	case string(text) != fmt.Sprintf("status %d", response.StatusCode):
		t.Errorf("the answer's body is %q", text)
	}
	return fmt.Sprintf("http %d", response.StatusCode), attempts
}

// countingTransport counts attempts beneath the kit.
type countingTransport struct {
	next     *http.Transport
	attempts atomic.Int32
}

func (c *countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	c.attempts.Add(1)
	return c.next.RoundTrip(request)
}
