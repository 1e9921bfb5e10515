package retryd

import (
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

const (
	// unaskedBackoff is the longest random wait before a retry that retryd was not asked about.
	unaskedBackoff = 100 * time.Millisecond
	// unaskedMargin is what must be left of the deadline after the wait.
	unaskedMargin = 50 * time.Millisecond
)

// unasked is the one retry of a call that needs no decision: of a first attempt that the server has
// surely not worked on. It tells how long to wait.
func unasked(failed *retrydv1.RetryContext, throttle *throttle) (wait time.Duration, retry bool) {
	switch failed.GetFailure().GetCategory() {
	case retrydv1.FailureCategory_FAILURE_CATEGORY_NAME_RESOLUTION,
		retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECT,
		retrydv1.FailureCategory_FAILURE_CATEGORY_STREAM_REFUSED:
	default:
		return 0, false
	}
	if failed.GetAttemptsMade() != 1 || !failed.GetBodyReplayable() || failed.GetFirstByteDelivered() ||
		failed.GetRuntimeDraining() || forbids(failed.GetHint()) || !throttle.grants() {
		return 0, false
	}
	hint, _ := longest(failed.GetHint())
	wait = max(hint, time.Millisecond+rand.N(unaskedBackoff))
	if failed.RemainingDeadline != nil && failed.GetRemainingDeadline().AsDuration()-unaskedMargin <= wait {
		return 0, false
	}
	return wait, true
}

// counts tells whether a throttle counts the failure: whether a policy repeats it by default.
func counts(failed *retrydv1.RetryContext) bool {
	switch failed.GetFailure().GetCategory() {
	case retrydv1.FailureCategory_FAILURE_CATEGORY_NAME_RESOLUTION,
		retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECT,
		retrydv1.FailureCategory_FAILURE_CATEGORY_TLS_HANDSHAKE,
		retrydv1.FailureCategory_FAILURE_CATEGORY_STREAM_REFUSED,
		retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECTION_RESET,
		retrydv1.FailureCategory_FAILURE_CATEGORY_ATTEMPT_TIMEOUT:
		return true
	case retrydv1.FailureCategory_FAILURE_CATEGORY_UNSPECIFIED,
		retrydv1.FailureCategory_FAILURE_CATEGORY_STATUS:
	default:
		return false
	}
	if slices.Contains([]uint32{408, 421, 425, 429, 500, 502, 503, 504}, failed.GetFailure().GetHttpStatus()) {
		return true
	}
	switch codes.Code(failed.GetFailure().GetGrpcCode()) {
	case codes.Unavailable:
		return true
	case codes.ResourceExhausted:
		_, hinted := longest(failed.GetHint())
		return hinted
	}
	return false
}
