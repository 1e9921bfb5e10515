package retryd

import (
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

const (
	// unaskedBackoffMs is the longest random wait before a retry that retryd was not asked about.
	unaskedBackoffMs = 100
	// unaskedMargin is what must be left of the deadline after the wait.
	unaskedMargin = 50 * time.Millisecond
)

// unasked is the one retry of a call that needs no decision: of a first attempt that the server has
// surely not worked on. It tells how long to wait. The failure has been counted by the throttle.
func unasked(failed *retrydv1.RetryContext, throttle *throttle) (wait time.Duration, retry bool) {
	switch failed.GetFailure().GetCategory() {
	case retrydv1.FailureCategory_FAILURE_CATEGORY_NAME_RESOLUTION,
		retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECT,
		retrydv1.FailureCategory_FAILURE_CATEGORY_STREAM_REFUSED:
	default:
		return 0, false
	}
	hint, readable := longestHint(failed.GetHint())
	if failed.GetAttemptsMade() != 1 ||
		!failed.GetBodyReplayable() || failed.GetFirstByteDelivered() || failed.GetRuntimeDraining() ||
		forbids(failed.GetHint()) || !readable || !throttle.grants() {
		return 0, false
	}
	wait = max(hint, time.Duration(1+rand.IntN(unaskedBackoffMs))*time.Millisecond)
	if failed.RemainingDeadline != nil && failed.GetRemainingDeadline().AsDuration()-unaskedMargin <= wait {
		return 0, false
	}
	return wait, true
}

// leavesUsAlone tells whether a question that ended so leaves the caller to its own devices: nobody
// is there, or nobody answered in time. Any other error says that the question is wrong.
func leavesUsAlone(ended codes.Code) bool {
	return ended == codes.Unavailable || ended == codes.DeadlineExceeded
}

// counts tells whether a throttle counts the failure: a policy repeats it by default, or the server
// forbids to.
func counts(failed *retrydv1.RetryContext) bool {
	if forbids(failed.GetHint()) {
		return true
	}
	switch failed.GetFailure().GetCategory() {
	case retrydv1.FailureCategory_FAILURE_CATEGORY_NAME_RESOLUTION,
		retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECT,
		retrydv1.FailureCategory_FAILURE_CATEGORY_TLS_HANDSHAKE,
		retrydv1.FailureCategory_FAILURE_CATEGORY_STREAM_REFUSED,
		retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECTION_RESET,
		retrydv1.FailureCategory_FAILURE_CATEGORY_ATTEMPT_TIMEOUT:
		return true
	case retrydv1.FailureCategory_FAILURE_CATEGORY_STATUS:
		return countsStatus(failed)
	default:
		return false
	}
}

func countsStatus(failed *retrydv1.RetryContext) bool {
	switch codes.Code(failed.GetFailure().GetGrpcCode()) {
	case codes.Unavailable:
		return true
	case codes.ResourceExhausted:
		// Without a hint the same code means that the message is too large, or a quota gone.
		hint := failed.GetHint()
		return hint.GetRetryAfter() != nil || hint.GetGrpcRetryPushbackMs() != "" || hint.GetRetryAfterHeader() != ""
	}
	return slices.Contains([]uint32{408, 421, 425, 429, 500, 502, 503, 504}, failed.GetFailure().GetHttpStatus())
}
