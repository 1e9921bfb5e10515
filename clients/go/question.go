package retryd

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// failure is what the library knows about one failed attempt.
type failure struct {
	what     *retrydv1.Failure
	evidence retrydv1.Evidence
	hint     *retrydv1.ServerHint
}

// describe is the question about a failed attempt.
func (k *call) describe(f *failure) *retrydv1.RetryContext {
	if k.id == "" {
		k.id = newUUID()
	}
	return &retrydv1.RetryContext{
		Tenant:          k.name.tenant,
		Operation:       k.name.operation,
		AttemptsMade:    k.attemptsMade,
		BodyReplayable:  k.bodyReplayable,
		RuntimeDraining: k.client.draining.Load(),
		Idempotency: &retrydv1.Idempotency{
			Declared:      k.rules.Declared,
			KeyRegistered: k.rules.KeyHeader != "",
			KeySent:       k.keySent,
		},
		Failure:  f.what,
		Evidence: f.evidence,
		Hint:     f.hint,
		CallId:   k.id,
	}
}

// remind sets what now remains of the deadline of ctx.
func remind(ctx context.Context, question *retrydv1.RetryContext) {
	if deadline, ok := ctx.Deadline(); ok {
		question.RemainingDeadline = durationpb.New(time.Until(deadline))
	}
}

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
