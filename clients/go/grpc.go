package retryd

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// UnaryInterceptor repeats unary calls that fail, if retryd says so.
//
// Retries of gRPC's own must be off on the channel ([grpc.WithDisableRetry]); its transparent ones may
// stay. Let it be the first interceptor of a chain, so that the others see every attempt.
func (c *Client) UnaryInterceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		call := c.begin(ctx, conn.Target(), strings.TrimPrefix(method, "/"))
		call.bodyReplayable = true
		call.keySent = sendsMetadata(ctx, call.rules.KeyHeader)
		for {
			call.send()
			failed, err := c.invoke(ctx, options, func(ctx context.Context, options []grpc.CallOption) error {
				return invoke(ctx, method, request, reply, conn, options...)
			})
			if failed == nil {
				call.succeeded()
				return nil
			}
			if !call.again(ctx, failed) {
				return err
			}
		}
	}
}

// invoke makes one attempt, and describes its failure.
func (c *Client) invoke(caller context.Context, options []grpc.CallOption, attempt func(context.Context, []grpc.CallOption) error) (*failure, error) {
	ctx, cancel := caller, context.CancelFunc(func() {})
	if 0 < c.settings.AttemptTimeout {
		ctx, cancel = context.WithTimeout(caller, c.settings.AttemptTimeout)
	}
	defer cancel()
	var seen grpcProbe
	err := attempt(ctx, append(options[:len(options):len(options)], seen.options()...))
	if err == nil {
		return nil, nil
	}
	return seen.describe(caller, ctx, err), err
}

func sendsMetadata(ctx context.Context, key string) bool {
	sent, _ := metadata.FromOutgoingContext(ctx)
	// An empty value is no key to any server.
	return key != "" && strings.Join(sent.Get(key), "") != ""
}
