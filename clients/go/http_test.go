package retryd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// repeating is a client whose retryd repeats a first attempt, at once.
func repeating(t *testing.T, change func(*Settings)) (*Client, *fake) {
	retryd := &fake{decide: func(_ context.Context, question *retrydv1.RetryContext) (*retrydv1.Decision, error) {
		if question.GetAttemptsMade() == 1 && question.GetBodyReplayable() {
			return &retrydv1.Decision{Verdict: retrydv1.Verdict_VERDICT_RETRY, Delay: durationpb.New(time.Millisecond)}, nil
		}
		return &retrydv1.Decision{Verdict: retrydv1.Verdict_VERDICT_DO_NOT_RETRY}, nil
	}}
	retryd.serve(t, "")
	return newClient(t, retryd.address, change), retryd
}

func TestTheSameRequestIsSentOverTheSameConnection(t *testing.T) {
	client, _ := repeating(t, nil)
	var bodies []string
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Method+" "+r.Header.Get("x-own")+" "+string(body))
		w.WriteHeader(503)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 10_000))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("x-own", "header")
	before := request.Body
	response, err := client.Transport(&http.Transport{}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || len(body) != 10_000 {
		t.Errorf("%d bytes of the last answer, %v", len(body), err)
	}
	if len(bodies) != 2 || bodies[0] != bodies[1] || bodies[0] != "PATCH header body" {
		t.Errorf("sent %q", bodies)
	}
	if connections.Load() != 1 {
		t.Errorf("%d connections: the first answer was not read to its end", connections.Load())
	}
	if request.Body != before {
		t.Error("the caller's request was changed")
	}
}

func TestAFailedAnswerThatNeverEndsDoesNotHoldTheNextAttempt(t *testing.T) {
	client, _ := repeating(t, nil)
	var attempts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if attempts.Add(1) == 1 {
			w.WriteHeader(503)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	response, err := (&http.Client{Transport: client.Transport(&http.Transport{})}).Get(server.URL)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response, err)
	}
	response.Body.Close()
}

func TestAnAttemptsTimeEndsWithItsHeaders(t *testing.T) {
	client, _ := repeating(t, func(s *Settings) { s.AttemptTimeout = 300 * time.Millisecond })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		time.Sleep(400 * time.Millisecond)
		_, _ = io.WriteString(w, "late")
	}))
	defer server.Close()
	response, err := (&http.Client{Transport: client.Transport(&http.Transport{})}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "late" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestASwitchOfProtocolsStaysWritable(t *testing.T) {
	client, _ := repeating(t, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(conn, line)
	}))
	defer server.Close()
	request, err := http.NewRequest(http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Connection", "upgrade")
	request.Header.Set("Upgrade", "echo")
	response, err := client.Transport(&http.Transport{}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.WriteString(response.Body.(io.Writer), "echo\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); line != "echo\n" {
		t.Errorf("%q, %v", line, err)
	}
}

func TestABodyThatCannotBeHadAgainAfterAll(t *testing.T) {
	client, retryd := repeating(t, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }))
	defer server.Close()
	request, err := http.NewRequest(http.MethodPut, server.URL, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	request.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
	response, err := client.Transport(&http.Transport{}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "no\n" {
		t.Errorf("%q, %v", body, err)
	}
	eventually(t, "the grant is given back", func() bool {
		_, _, releases := retryd.heard()
		return len(releases) == 1 && releases[0].GetDecided().GetAttemptsMade() == 1
	})
}

// What retryd would be asked about a request that ends without an answer.
func describeOverHTTP(t *testing.T, transport http.RoundTripper, url string) *failure {
	t.Helper()
	client := newClient(t, testbed.Retryd["asked"], nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	attempt := client.Transport(transport).(*roundTripper).attempt(request, nil)
	if attempt.failed == nil {
		t.Fatal("no failure")
	}
	return attempt.failed
}

func TestWhatNetHTTPProves(t *testing.T) {
	stranger := httptest.NewTLSServer(nil)
	defer stranger.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	refusing := func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
	}
	for _, c := range []struct {
		name      string
		transport http.RoundTripper
		url       string
		category  retrydv1.FailureCategory
		evidence  retrydv1.Evidence
	}{
		{"a certificate of nobody", &http.Transport{}, stranger.URL,
			retrydv1.FailureCategory_FAILURE_CATEGORY_CERTIFICATE_REJECTED, retrydv1.Evidence_EVIDENCE_NOT_SENT},
		{"no TLS on the other side", &http.Transport{}, strings.Replace(plain.URL, "http:", "https:", 1),
			retrydv1.FailureCategory_FAILURE_CATEGORY_TLS_HANDSHAKE, retrydv1.Evidence_EVIDENCE_NOT_SENT},
		{"no headers in time", &http.Transport{ResponseHeaderTimeout: 50 * time.Millisecond}, slow.URL,
			retrydv1.FailureCategory_FAILURE_CATEGORY_ATTEMPT_TIMEOUT, retrydv1.Evidence_EVIDENCE_MAYBE_PROCESSED},
		{"no request", &http.Transport{}, "ftp://127.0.0.1",
			retrydv1.FailureCategory_FAILURE_CATEGORY_REQUEST_REJECTED, retrydv1.Evidence_EVIDENCE_MAYBE_PROCESSED},
		{"a layer that tells nothing of connections", roundTripperFunc(refusing), plain.URL,
			retrydv1.FailureCategory_FAILURE_CATEGORY_REQUEST_REJECTED, retrydv1.Evidence_EVIDENCE_MAYBE_PROCESSED},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := describeOverHTTP(t, c.transport, c.url)
			if f.what.GetCategory() != c.category || f.evidence != c.evidence {
				t.Errorf("%v %v", f.what, f.evidence)
			}
		})
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestAnAnswerThatComesTooLateIsNone(t *testing.T) {
	client := newClient(t, testbed.Retryd["asked"], func(s *Settings) { s.AttemptTimeout = 20 * time.Millisecond })
	body := &closedBody{Reader: strings.NewReader("late")}
	deaf := roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		<-request.Context().Done()
		return &http.Response{StatusCode: 200, Body: body}, nil
	})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1", nil)
	response, err := client.Transport(deaf).RoundTrip(request)
	if response != nil || !errors.Is(err, context.DeadlineExceeded) || !body.closed {
		t.Errorf("%v, %v", response, err)
	}
}

type closedBody struct {
	io.Reader
	closed bool
}

func (b *closedBody) Close() error {
	b.closed = true
	return nil
}

// As many a stand-in of a test answers; net/http takes it for an empty body.
func TestAnAnswerWithoutABody(t *testing.T) {
	client, _ := repeating(t, nil)
	statuses := []int{503, 204}
	bodiless := roundTripperFunc(func(*http.Request) (*http.Response, error) {
		status := statuses[0]
		statuses = statuses[1:]
		return &http.Response{StatusCode: status}, nil
	})
	response, err := (&http.Client{Transport: client.Transport(bodiless)}).Get("http://127.0.0.1")
	if err != nil || response.StatusCode != 204 {
		t.Fatal(response, err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestARequestWithoutAMethodIsAGet(t *testing.T) {
	client := newClient(t, testbed.Retryd["asked"], nil)
	empty := roundTripperFunc(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 204}, nil })
	request := &http.Request{URL: &url.URL{Scheme: "http", Host: "service:8080"}}
	if _, err := client.Transport(empty).RoundTrip(request); err != nil {
		t.Fatal(err)
	}
	if counted := client.usage.take(name{client.settings.Tenant, "GET service"}); counted.requests != 1 {
		t.Error(counted)
	}
}

func TestSeveralRetryAftersAreOneThatCannotBeRead(t *testing.T) {
	f := describeResponse(&http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"1", "3600"}}})
	if _, readable := longestHint(f.hint); readable || f.hint.GetRetryAfterHeader() != "1,3600" {
		t.Error(f.hint)
	}
}
