// Package retryd repeats failed calls if, and when, retryd says so: behind a gRPC interceptor
// ([Client.UnaryInterceptor]) and a net/http transport ([Client.Transport]).
package retryd

//go:generate buf generate ../../proto

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// Client asks one retryd. It is safe for concurrent use.
type Client struct {
	settings   Settings
	conn       *grpc.ClientConn
	retries    retrydv1.RetryServiceClient
	budgets    retrydv1.BudgetServiceClient
	usage      usage
	leases     leases
	throttles  throttles
	background *background
	draining   atomic.Bool
	stop       context.CancelFunc
}

// New returns a client of the retryd at settings.Target. It connects in the background.
// The error tells everything that is wrong with the settings.
func New(settings Settings) (*Client, error) {
	settings, err := settings.filled()
	if err != nil {
		return nil, err
	}
	options := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// A question is asked once, whatever the service config of the name says.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		// Behind a name of several addresses, every retryd gets its share.
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		// A retryd that is back is noticed within a second or so, not after two minutes.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithIdleTimeout(0),
	}, settings.DialOptions...)
	conn, err := grpc.NewClient(settings.Target, options...)
	if err != nil {
		return nil, fmt.Errorf("retryd: `Target`: %w", err)
	}

	c := &Client{
		settings: settings,
		conn:     conn,
		retries:  retrydv1.NewRetryServiceClient(conn),
		budgets:  retrydv1.NewBudgetServiceClient(conn),

		background: newBackground(),
	}
	for operation, known := range settings.Operations {
		c.keepLease(name{settings.Tenant, operation}, known.Lease)
	}
	open, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.background.start(func(context.Context) { stayConnected(open, conn) })
	c.background.start(func(ctx context.Context) { c.reportWhile(open, ctx) })
	return c, nil
}

// stayConnected connects at once, and again whenever the connection is lost: a question has no time for it.
func stayConnected(ctx context.Context, conn *grpc.ClientConn) {
	for {
		state := conn.GetState()
		if state == connectivity.Idle {
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// Drain says that this process is shutting down: calls go on, but failures are no longer repeated.
func (c *Client) Drain() { c.draining.Store(true) }

// Close reports the usage that nobody has heard of yet, gives leased retries back and closes the
// connection to retryd. Calls that come later still pass, but are not repeated.
// The error tells what could not be done before ctx ended.
func (c *Client) Close(ctx context.Context) error {
	c.stop()
	err := c.background.close(ctx)
	return errors.Join(err, c.releaseLeases(ctx), c.report(ctx), c.conn.Close())
}

// Call says what differs in one call from what the client assumes. Empty fields change nothing.
type Call struct {
	// Tenant whose budget pays for the call.
	Tenant string
	// Operation that is called. A route or a method, never a path with ids in it: every name has a
	// budget of its own.
	Operation string
}

type callKey struct{}

// With returns a context whose calls are described by call.
func With(ctx context.Context, call Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}
