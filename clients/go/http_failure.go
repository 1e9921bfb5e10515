package retryd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// httpProbe sees what net/http knows about one attempt. Its hooks may still be called when the attempt is over.
type httpProbe struct {
	wanted, got, handshakeFailed atomic.Bool
}

func (p *httpProbe) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { p.wanted.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { p.got.Store(true) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				p.handshakeFailed.Store(true)
			}
		},
	}
}

// describe tells what is known about the attempt that ended with err in place of an answer. ctx is the attempt's.
func (p *httpProbe) describe(caller, ctx context.Context, err error) *failure {
	f := &failure{evidence: retrydv1.Evidence_EVIDENCE_MAYBE_PROCESSED, what: &retrydv1.Failure{}}
	wanted, got := p.wanted.Load(), p.got.Load()
	if wanted && !got {
		// It looked for a connection, and none was ever found to write to.
		f.evidence = retrydv1.Evidence_EVIDENCE_NOT_SENT
	}
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(caller.Err(), context.Canceled):
		f.what.Category = retrydv1.FailureCategory_FAILURE_CATEGORY_CANCELLED
	case isOver(ctx):
		f.what.Category = retrydv1.FailureCategory_FAILURE_CATEGORY_ATTEMPT_TIMEOUT
	case wanted && !got:
		f.what.Category = p.categoryOfConnection(err)
	case errors.As(err, &timeout) && timeout.Timeout():
		f.what.Category = retrydv1.FailureCategory_FAILURE_CATEGORY_ATTEMPT_TIMEOUT
	case got && isUnreadable(err):
		f.what.Category = retrydv1.FailureCategory_FAILURE_CATEGORY_PROTOCOL_VIOLATION
	case got:
		f.what.Category = retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECTION_RESET
	default:
		// Nobody even looked for a connection.
		f.what.Category = retrydv1.FailureCategory_FAILURE_CATEGORY_REQUEST_REJECTED
	}
	return f
}

func (p *httpProbe) categoryOfConnection(err error) retrydv1.FailureCategory {
	var unresolved *net.DNSError
	var rejected *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unresolved):
		return retrydv1.FailureCategory_FAILURE_CATEGORY_NAME_RESOLUTION
	case errors.As(err, &rejected):
		return retrydv1.FailureCategory_FAILURE_CATEGORY_CERTIFICATE_REJECTED
	case p.handshakeFailed.Load():
		return retrydv1.FailureCategory_FAILURE_CATEGORY_TLS_HANDSHAKE
	}
	return retrydv1.FailureCategory_FAILURE_CATEGORY_CONNECT
}

// isUnreadable tells whether what came back was no HTTP. The text is net/http's own, whatever follows it.
func isUnreadable(err error) bool {
	var malformed textproto.ProtocolError
	return errors.As(err, &malformed) ||
		strings.HasPrefix(err.Error(), "net/http: HTTP/1.x transport connection broken: malformed HTTP ")
}

// describeResponse tells what an answer says that is a failure.
func describeResponse(response *http.Response) *failure {
	f := &failure{what: &retrydv1.Failure{
		Category: retrydv1.FailureCategory_FAILURE_CATEGORY_STATUS,
		Status:   &retrydv1.Failure_HttpStatus{HttpStatus: uint32(response.StatusCode)},
	}}
	if said := response.Header.Values("Retry-After"); len(said) != 0 {
		f.hint = &retrydv1.ServerHint{RetryAfterHeader: headerText(said), DateHeader: strings.ToValidUTF8(response.Header.Get("Date"), "?")}
	}
	return f
}
