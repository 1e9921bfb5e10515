package retryd

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// fake stands in for retryd where a test has to say what it answers.
type fake struct {
	retrydv1.UnimplementedRetryServiceServer
	retrydv1.UnimplementedBudgetServiceServer

	address string
	stop    func()

	decide  func(context.Context, *retrydv1.RetryContext) (*retrydv1.Decision, error)
	report  func(*retrydv1.ReportUsageRequest) (*retrydv1.ReportUsageResponse, error)
	acquire func(*retrydv1.AcquireRetriesRequest) *retrydv1.AcquireRetriesResponse

	mu       sync.Mutex
	reports  []*retrydv1.ReportUsageRequest
	acquires []*retrydv1.AcquireRetriesRequest
	releases []*retrydv1.ReleaseRetriesRequest
}

// serve starts the fake on the address, or on a free port if that is empty.
func (f *fake) serve(t *testing.T, address string) {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	retrydv1.RegisterRetryServiceServer(server, f)
	retrydv1.RegisterBudgetServiceServer(server, f)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	f.address = listener.Addr().String()
	f.stop = func() {
		server.Stop()
		<-served
	}
	t.Cleanup(func() { f.stop() })
}

func (f *fake) Decide(ctx context.Context, question *retrydv1.RetryContext) (*retrydv1.Decision, error) {
	if f.decide == nil {
		return &retrydv1.Decision{Verdict: retrydv1.Verdict_VERDICT_DO_NOT_RETRY}, nil
	}
	return f.decide(ctx, question)
}

func (f *fake) ReportUsage(_ context.Context, request *retrydv1.ReportUsageRequest) (*retrydv1.ReportUsageResponse, error) {
	f.mu.Lock()
	f.reports = append(f.reports, request)
	f.mu.Unlock()
	if f.report == nil {
		return &retrydv1.ReportUsageResponse{}, nil
	}
	return f.report(request)
}

func (f *fake) AcquireRetries(_ context.Context, request *retrydv1.AcquireRetriesRequest) (*retrydv1.AcquireRetriesResponse, error) {
	f.mu.Lock()
	f.acquires = append(f.acquires, request)
	f.mu.Unlock()
	return f.acquire(request), nil
}

func (f *fake) ReleaseRetries(_ context.Context, request *retrydv1.ReleaseRetriesRequest) (*retrydv1.ReleaseRetriesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.releases = append(f.releases, request)
	return &retrydv1.ReleaseRetriesResponse{Released: request.GetUnused()}, nil
}

// heard is what reached the fake so far.
func (f *fake) heard() (reports []*retrydv1.ReportUsageRequest, acquires []*retrydv1.AcquireRetriesRequest, releases []*retrydv1.ReleaseRetriesRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reports, f.acquires, f.releases
}

// newClient makes a client of the retryd at the address, which the test closes or the end of it.
func newClient(t *testing.T, address string, change func(*Settings)) *Client {
	t.Helper()
	settings := Settings{Target: address, Tenant: newRun("unit"), AskTimeout: 5 * time.Second}
	if change != nil {
		change(&settings)
	}
	client, err := New(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

// isQuiet tells whether nothing runs beside the calls but what always does.
func (c *Client) isQuiet() bool {
	c.background.mu.Lock()
	defer c.background.mu.Unlock()
	return c.background.running == 2
}

// failedConnect is what a call is brought to again with when its server is not there.
func failedConnect() *failure {
	return &failure{
		what:     &retrydv1.Failure{Category: retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECT},
		evidence: retrydv1.Evidence_EVIDENCE_NOT_SENT,
	}
}
