package retryd

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// The server's word goes to retryd as it came. It is read here only for retries that retryd is not
// asked about.

// forbids tells whether the pushback says "do not retry", which is all that is no plain number (gRFC A6).
func forbids(hint *retrydv1.ServerHint) bool {
	if hint == nil || hint.GrpcRetryPushbackMs == nil {
		return false
	}
	_, readable := readPushback(hint.GetGrpcRetryPushbackMs())
	return !readable
}

// longestHint is the longest wait that the server asked for, in whole milliseconds, and 0 if it asked
// for none. ok is false if it asked for a wait that only retryd can read.
func longestHint(hint *retrydv1.ServerHint) (wait time.Duration, ok bool) {
	if header := strings.Trim(hint.GetRetryAfterHeader(), " \t"); header != "" {
		if wait, ok = readSeconds(header); !ok {
			return 0, false
		}
	}
	if pushback, readable := readPushback(hint.GetGrpcRetryPushbackMs()); readable {
		wait = max(wait, pushback)
	}
	if retryAfter := hint.GetRetryAfter().AsDuration(); retryAfter > wait {
		wait = retryAfter
		if rest := wait % time.Millisecond; rest != 0 {
			wait += time.Millisecond - rest
		}
	}
	return wait, true
}

// headerText is a header as it is told: several values are none that can be read, and a message carries
// no bytes that are no text.
func headerText(values []string) *string {
	text := strings.ToValidUTF8(strings.Join(values, ","), "?")
	return &text
}

func readPushback(text string) (time.Duration, bool) {
	ms, err := strconv.ParseInt(text, 10, 32)
	// ParseInt takes signs and leading zeros, too.
	if err != nil || ms < 0 || strconv.FormatInt(ms, 10) != text {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// readSeconds reads a Retry-After that is a number. One too large stands for the longest wait.
func readSeconds(text string) (time.Duration, bool) {
	if strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds > int64(math.MaxInt64/time.Second) {
		return math.MaxInt64, true
	}
	return time.Duration(seconds) * time.Second, true
}
