package retryd

import (
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// name is whose usage is counted, and of what.
type name struct{ tenant, operation string }

const (
	tenantBytesMax    = 128
	operationBytesMax = 256
	// namesMax is how many names are kept. Calls under further ones are not counted.
	namesMax = 10_000
	// countMax is the most that retryd takes as one count.
	countMax = 1_000_000_000
)

// usage counts what happened, until retryd has heard of it. The zero value is ready.
type usage struct {
	mu      sync.Mutex
	tallies map[name]tally
}

// tally is what happened under one name since the counting began.
type tally struct {
	since             time.Time
	requests          uint64
	firstTrySuccesses uint64
	retriedSuccesses  uint64
	// Of the retried ones, by the class of the last failure.
	transient, throttling, timeout uint64
}

// isName tells whether retryd takes the text as a tenant or an operation.
func isName(text string, bytesMax int) bool {
	return 0 < len(text) && len(text) <= bytesMax && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// isKnowable tells whether retryd takes the name. One that it refuses could spoil a whole report.
func (n name) isKnowable() bool {
	return isName(n.tenant, tenantBytesMax) && isName(n.operation, operationBytesMax)
}

// started counts a call.
func (u *usage) started(n name) { u.add(n, tally{since: time.Now(), requests: 1}) }

// succeeded counts a success of the first try.
func (u *usage) succeeded(n name) { u.add(n, tally{since: time.Now(), firstTrySuccesses: 1}) }

// succeededLater counts a success of a later try, after a last failure of the class.
func (u *usage) succeededLater(n name, class retrydv1.FailureClass) {
	t := tally{since: time.Now(), retriedSuccesses: 1}
	switch class {
	case retrydv1.FailureClass_FAILURE_CLASS_TRANSIENT:
		t.transient = 1
	case retrydv1.FailureClass_FAILURE_CLASS_THROTTLING:
		t.throttling = 1
	case retrydv1.FailureClass_FAILURE_CLASS_TIMEOUT:
		t.timeout = 1
	}
	u.add(n, t)
}

// take hands out what was counted under the name. Its fate is then up to the taker: what retryd has
// counted and what nobody knows about is dropped, what retryd has surely not counted is put back by keep.
func (u *usage) take(n name) tally {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.tallies[n]
	delete(u.tallies, n)
	return t
}

// takeAll hands out everything, like take.
func (u *usage) takeAll() map[name]tally {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.tallies
	u.tallies = nil
	return all
}

// keep puts back what was taken.
func (u *usage) keep(n name, t tally) {
	if t != (tally{}) {
		u.add(n, t)
	}
}

func (u *usage) add(n name, t tally) {
	u.mu.Lock()
	defer u.mu.Unlock()
	have, known := u.tallies[n]
	if !known && (namesMax <= len(u.tallies) || !n.isKnowable()) {
		return
	}
	if u.tallies == nil {
		u.tallies = map[name]tally{}
	}
	u.tallies[n] = have.plus(t)
}

// plus adds two tallies, unless retryd would refuse the sum: then the new one is dropped.
func (t tally) plus(new tally) tally {
	if t.since.IsZero() {
		return new
	}
	sum := tally{
		since:             t.since,
		requests:          t.requests + new.requests,
		firstTrySuccesses: t.firstTrySuccesses + new.firstTrySuccesses,
		retriedSuccesses:  t.retriedSuccesses + new.retriedSuccesses,
		transient:         t.transient + new.transient,
		throttling:        t.throttling + new.throttling,
		timeout:           t.timeout + new.timeout,
	}
	if max(sum.requests, sum.firstTrySuccesses, sum.retriedSuccesses) > countMax {
		return t
	}
	if new.since.Before(t.since) {
		sum.since = new.since
	}
	return sum
}

// message is the tally as it is told; nil if nothing was counted.
func (t tally) message() *retrydv1.Usage {
	if t == (tally{}) {
		return nil
	}
	return &retrydv1.Usage{
		Requests:          t.requests,
		FirstTrySuccesses: t.firstTrySuccesses,
		RetriedSuccesses:  t.retriedSuccesses,
		RetriedTransient:  t.transient,
		RetriedThrottling: t.throttling,
		RetriedTimeout:    t.timeout,
		// Zero would be refused.
		Period: durationpb.New(max(time.Since(t.since), time.Millisecond)),
	}
}
