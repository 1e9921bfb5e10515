package retryd

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

const (
	// discardMax is how much of a failed answer is read so that its connection can be used again.
	discardMax = 64 << 10
	// discardTimeout is how long that may take. The next attempt waits for it, and the answer has had the
	// time of the question and of the wait to arrive.
	discardTimeout = 10 * time.Millisecond
)

// Transport repeats requests that fail, with a status of 400 and above or without an answer, if
// retryd says so. next carries out each attempt; nil means [http.DefaultTransport].
//
// A request can be repeated if it has no body, or one with GetBody, which [http.NewRequest] sets for
// buffers. An answer belongs to the application from its headers on: a body that breaks off is not
// repeated. net/http itself repeats a request without a body, or with the header Idempotency-Key, when a
// kept connection turns out to be dead; what was sent then is never told as not sent.
func (c *Client) Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &roundTripper{client: c, next: next}
}

type roundTripper struct {
	client *Client
	next   http.RoundTripper
}

func (t *roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	call := t.client.begin(request.Context(), request.URL.Host, cmp.Or(request.Method, http.MethodGet)+" "+request.URL.Hostname())
	call.bodyReplayable = request.Body == nil || request.Body == http.NoBody || request.GetBody != nil
	call.keySent = call.rules.KeyHeader != "" && request.Header.Get(call.rules.KeyHeader) != ""
	for body := request.Body; ; {
		call.send()
		attempt := t.attempt(request, body)
		if attempt.failed == nil {
			call.succeeded()
			return attempt.response, nil
		}
		if !call.again(request.Context(), attempt.failed) {
			return attempt.response, attempt.err
		}
		if request.Body != nil && request.GetBody != nil {
			var err error
			if body, err = request.GetBody(); err != nil {
				call.unsent()
				return attempt.response, attempt.err
			}
		}
		attempt.discard()
	}
}

// httpAttempt is an attempt that has ended: with an answer or an error, and perhaps as a failure.
type httpAttempt struct {
	response *http.Response
	err      error
	failed   *failure
	cancel   context.CancelCauseFunc
}

func (t *roundTripper) attempt(request *http.Request, body io.ReadCloser) *httpAttempt {
	caller := request.Context()
	ctx, cancel := context.WithCancelCause(caller)
	a := &httpAttempt{cancel: cancel}
	var seen httpProbe
	sent := request.WithContext(httptrace.WithClientTrace(ctx, seen.trace()))
	sent.Body = body

	inTime := t.client.limit(cancel)
	a.response, a.err = t.next.RoundTrip(sent)
	if !inTime() && a.err == nil {
		a.discard()
		a.response, a.err = nil, context.DeadlineExceeded
	}
	if a.err != nil {
		a.failed = seen.describe(caller, ctx, a.err)
		cancel(nil)
		return a
	}
	if a.response.StatusCode >= http.StatusBadRequest {
		a.failed = describeResponse(a.response)
	}
	switch {
	case a.response.Body == nil:
		// Of a layer that is no [http.Transport]; net/http takes it for an empty one.
		cancel(nil)
	case a.response.StatusCode != http.StatusSwitchingProtocols:
		// The context has to live as long as the body. After a switch of protocols that is the connection,
		// which must stay writable.
		a.response.Body = &cancelBody{a.response.Body, cancel}
	}
	return a
}

// limit starts the time of an attempt. The function that it returns ends it, and tells whether
// it was not yet over.
func (c *Client) limit(cancel context.CancelCauseFunc) (inTime func() bool) {
	if c.settings.AttemptTimeout == 0 {
		return func() bool { return true }
	}
	return time.AfterFunc(c.settings.AttemptTimeout, func() { cancel(context.DeadlineExceeded) }).Stop
}

// discard ends an answer that nobody will read.
func (a *httpAttempt) discard() {
	if a.response == nil || a.response.Body == nil {
		return
	}
	timer := time.AfterFunc(discardTimeout, func() { a.cancel(nil) })
	defer timer.Stop()
	// What cannot be read costs the connection, and nothing else.
	_, _ = io.CopyN(io.Discard, a.response.Body, discardMax)
	_ = a.response.Body.Close()
}

type cancelBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *cancelBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
