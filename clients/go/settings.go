package retryd

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// Settings of a [Client]. Only Target and Tenant are required.
type Settings struct {
	// Target is the address of retryd, such as "dns:///retryd:50051".
	Target string
	// Tenant says whose retry budget pays, unless a call says otherwise: 1 to 128 bytes.
	Tenant string
	// AskTimeout is the longest wait for a decision: 1 ms to 10 s, 0 means 20 ms. At most a tenth of
	// what remains of the caller's deadline is used of it.
	AskTimeout time.Duration
	// AttemptTimeout ends one attempt; the call's own deadline still holds. 0 means none. Over HTTP it
	// holds until the response headers have come.
	AttemptTimeout time.Duration
	// DisableFallback turns off the one retry that needs no retryd.
	DisableFallback bool
	// ReportEvery is the time between reports of usage: 100 ms to 10 s, 0 means 5 s.
	ReportEvery time.Duration
	// Operations says what is known about each operation, by its name.
	Operations map[string]Operation
	// OwnRules says how a call goes on whose policy only observes (Decision.shadow): send the next
	// attempt after the delay, or not. Without it such a call is not repeated. It must not keep or
	// change its arguments.
	OwnRules func(failed *retrydv1.RetryContext, decision *retrydv1.Decision) (delay time.Duration, retry bool)
	// DialOptions of the channel to retryd. Without credentials among them it is plaintext.
	DialOptions []grpc.DialOption
	// Logger hears of mistakes in what is asked. nil means [slog.Default].
	Logger *slog.Logger
}

// Operation is what its owner knows about an operation.
type Operation struct {
	// Declared: the operation may be repeated by its contract.
	Declared bool
	// KeyHeader is the request header with the idempotency key that the operation honours, if any.
	KeyHeader string
	// Lease is how many retries are taken ahead: 0 (none) to 1000.
	Lease uint32
}

const (
	askTimeoutDefault  = 20 * time.Millisecond
	askTimeoutMin      = time.Millisecond
	askTimeoutMax      = 10 * time.Second
	reportEveryDefault = 5 * time.Second
	reportEveryMin     = 100 * time.Millisecond
	reportEveryMax     = 10 * time.Second
	leaseMax           = 1000
)

// filled returns the settings with every default in its place, or everything that is wrong with them.
func (s Settings) filled() (Settings, error) {
	if s.AskTimeout == 0 {
		s.AskTimeout = askTimeoutDefault
	}
	if s.ReportEvery == 0 {
		s.ReportEvery = reportEveryDefault
	}
	s.Operations = maps.Clone(s.Operations)
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	var wrong []string
	check := func(holds bool, format string, args ...any) {
		if !holds {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	check(s.Target != "", "`Target` is required")
	check(s.Tenant != "", "`Tenant` is required")
	check(s.Tenant == "" || isName(s.Tenant, tenantBytesMax),
		"`Tenant` is no text of 1 to %d bytes without control characters: %q", tenantBytesMax, s.Tenant)
	check(askTimeoutMin <= s.AskTimeout && s.AskTimeout <= askTimeoutMax,
		"`AskTimeout` is %v, not %v to %v", s.AskTimeout, askTimeoutMin, askTimeoutMax)
	check(0 <= s.AttemptTimeout, "`AttemptTimeout` is negative: %v", s.AttemptTimeout)
	check(reportEveryMin <= s.ReportEvery && s.ReportEvery <= reportEveryMax,
		"`ReportEvery` is %v, not %v to %v", s.ReportEvery, reportEveryMin, reportEveryMax)
	for _, name := range slices.Sorted(maps.Keys(s.Operations)) {
		operation := s.Operations[name]
		check(isName(name, operationBytesMax),
			"an operation's name is no text of 1 to %d bytes without control characters: %q", operationBytesMax, name)
		check(operation.Lease <= leaseMax, "`Lease` of %q is %d, not 0 to %d", name, operation.Lease, leaseMax)
	}
	if wrong != nil {
		return s, errors.New("retryd: " + strings.Join(wrong, "; "))
	}
	return s, nil
}
