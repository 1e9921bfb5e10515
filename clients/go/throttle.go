package retryd

import "sync"

const (
	// Tokens are kept in tenths: a failure takes one token, a success gives a tenth.
	throttleMax     = 10 * 10
	throttleFailure = 10
	throttleSuccess = 1
	// targetsMax is how many targets have a throttle of their own. Further ones share one.
	targetsMax = 1000
)

// throttle stops the retries that nobody allowed where most calls fail (gRFC A6).
type throttle struct {
	mu     sync.Mutex
	tokens int
}

func newThrottle() *throttle { return &throttle{tokens: throttleMax} }

func (t *throttle) failure() { t.add(-throttleFailure) }

func (t *throttle) success() { t.add(throttleSuccess) }

// grants tells whether a retry may be sent now. It takes nothing.
func (t *throttle) grants() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return 2*t.tokens > throttleMax
}

func (t *throttle) add(tokens int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tokens = min(max(t.tokens+tokens, 0), throttleMax)
}

// throttles holds the throttle of each target that is called. The zero value is ready.
type throttles struct {
	mu       sync.Mutex
	byTarget map[string]*throttle
	others   *throttle
}

func (t *throttles) of(target string) *throttle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byTarget[target]; known != nil {
		return known
	}
	if t.byTarget == nil {
		t.byTarget, t.others = map[string]*throttle{}, newThrottle()
	}
	if targetsMax <= len(t.byTarget) {
		return t.others
	}
	t.byTarget[target] = newThrottle()
	return t.byTarget[target]
}
