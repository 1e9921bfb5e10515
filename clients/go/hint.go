package retryd

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// The server's word is sent to retryd as it came. It is read here only for retries that retryd is
// not asked about.

// forbids tells whether the pushback says "do not retry": it does unless it is a plain number (gRFC A6).
func forbids(hint *retrydv1.ServerHint) bool {
	if hint == nil || hint.GrpcRetryPushbackMs == nil {
		return false
	}
	_, ok := readPushback(hint.GetGrpcRetryPushbackMs())
	return !ok
}

// longest is the longest wait that the server asked for in any form, and whether it did at all.
func longest(hint *retrydv1.ServerHint) (wait time.Duration, present bool) {
	if hint == nil {
		return 0, false
	}
	note := func(found time.Duration, ok bool) {
		if ok {
			wait, present = max(wait, found), true
		}
	}
	if hint.RetryAfter != nil {
		note(hint.GetRetryAfter().AsDuration(), true)
	}
	if hint.RetryAfterHeader != nil {
		note(readRetryAfter(hint.GetRetryAfterHeader(), hint.GetDateHeader()))
	}
	if hint.GrpcRetryPushbackMs != nil {
		note(readPushback(hint.GetGrpcRetryPushbackMs()))
	}
	return wait, present
}

func readPushback(text string) (time.Duration, bool) {
	ms, err := strconv.ParseInt(text, 10, 32)
	// ParseInt also takes signs and leading zeros.
	if err != nil || ms < 0 || strconv.FormatInt(ms, 10) != text {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// readRetryAfter reads delay-seconds or an HTTP-date, measured from the response's own date if it has one.
func readRetryAfter(text, date string) (time.Duration, bool) {
	text = strings.Trim(text, " \t")
	if text == "" {
		return 0, false
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	from, err := http.ParseTime(date)
	if err != nil {
		from = time.Now()
	}
	return max(until.Sub(from), 0), true
}
