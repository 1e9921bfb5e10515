package retryd

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// call is one call, from its first attempt to its last. What carries the attempts drives it:
//
//	for {
//		call.send()
//		if failed := attempt(); failed == nil {
//			call.succeeded()
//			return
//		} else if !call.again(ctx, failed) {
//			return // the failure, as it is
//		}
//	}
type call struct {
	client         *Client
	name           name
	rules          Operation
	keySent        bool
	bodyReplayable bool
	throttle       *throttle

	id           string
	attemptsMade uint32
	// Of the last Decision.
	class retrydv1.FailureClass
	// Gives the last grant back, if there is one.
	giveBack func()
}

// begin starts a call of the operation at the target, under the names that [With] gave it, if any.
func (c *Client) begin(ctx context.Context, target, operation string) *call {
	n := name{tenant: c.settings.Tenant, operation: operation}
	if own, ok := ctx.Value(callKey{}).(Call); ok {
		if own.Tenant != "" {
			n.tenant = own.Tenant
		}
		if own.Operation != "" {
			n.operation = own.Operation
		}
	}
	rules := c.settings.Operations[n.operation]
	c.keepLease(n, rules.Lease)
	return &call{client: c, name: n, rules: rules, throttle: c.throttles.of(target)}
}

// send counts an attempt that is sent now.
func (k *call) send() {
	k.attemptsMade++
	if k.attemptsMade == 1 {
		k.client.usage.started(k.name)
	}
}

// succeeded counts the success that ends the call.
func (k *call) succeeded() {
	k.throttle.success()
	if k.attemptsMade == 1 {
		k.client.usage.succeeded(k.name)
	} else {
		k.client.usage.succeededLater(k.name, k.class)
	}
}

// again tells whether the next attempt is to be sent, after the wait for it. ctx is the caller's.
func (k *call) again(ctx context.Context, f *failure) bool {
	failed := k.describe(f)
	if counts(failed) {
		k.throttle.failure()
	}
	if isOver(ctx) {
		k.client.tell(ctx, failed)
		return false
	}
	wait, retry := k.decide(ctx, failed)
	if !retry {
		return false
	}
	if !sleep(ctx, wait) {
		k.unsent()
		return false
	}
	return true
}

// unsent gives back the retry that was granted last.
func (k *call) unsent() {
	if k.giveBack != nil {
		k.giveBack()
	}
}

// decide tells how long to wait for the next attempt, and whether there is to be one: by the lease, by
// what retryd says, or for want of an answer.
func (k *call) decide(ctx context.Context, failed *retrydv1.RetryContext) (wait time.Duration, retry bool) {
	c := k.client
	k.class, k.giveBack = retrydv1.FailureClass_FAILURE_CLASS_UNSPECIFIED, nil
	if 0 < k.rules.Lease {
		remind(ctx, failed)
		if wait, retry := unasked(failed, k.throttle); retry {
			if putBack, ok := c.leases.spend(k.name); ok {
				k.giveBack = putBack
				return wait, true
			}
		}
	}

	decision, err := c.ask(ctx, failed)
	if err != nil {
		if ctx.Err() != nil {
			// Nobody has heard the answer, which may have been a grant.
			c.release(failed)
		}
		if c.settings.DisableFallback || !leavesUsAlone(status.Code(err)) {
			return 0, false
		}
		remind(ctx, failed)
		return unasked(failed, k.throttle)
	}
	k.class = decision.GetFailureClass()
	if decision.GetShadow() {
		if c.settings.OwnRules == nil {
			return 0, false
		}
		return c.settings.OwnRules(failed, decision)
	}
	if decision.GetVerdict() != retrydv1.Verdict_VERDICT_RETRY {
		return 0, false
	}
	k.giveBack = func() { c.release(failed) }
	return decision.GetDelay().AsDuration(), true
}

// isOver tells whether the caller has given up or its deadline has passed, be it only a moment ago.
func isOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// sleep waits, and tells whether the caller is still there.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return !isOver(ctx)
	}
}
