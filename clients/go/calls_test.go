package retryd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// TestCalls plays clients/scenarios/calls.json through both adapters.
func TestCalls(t *testing.T) {
	var file struct {
		About string
		Cases []scenario
	}
	readJSON(t, "clients/scenarios/calls.json", &file)
	played := map[string]int{}
	t.Run("cases", func(t *testing.T) {
		for _, s := range file.Cases {
			for _, over := range s.Over {
				played[over]++
				t.Run(over+"/"+s.Name, func(t *testing.T) {
					t.Parallel()
					s.check(t, s.play(t, adapters[over]))
				})
			}
		}
	})
	fmt.Fprintf(os.Stdout, "calls: %d over grpc, %d over http\n", played["grpc"], played["http"])
}

// scenario is one case; see clients/scenarios/README.md.
type scenario struct {
	Name   string            `json:"name"`
	Over   []string          `json:"over"`
	Retryd string            `json:"retryd"`
	Target string            `json:"target"`
	Call   scenarioCall      `json:"call"`
	Script []json.RawMessage `json:"script"`
	Expect expectation       `json:"expect"`
}

type scenarioCall struct {
	TimeoutMs        int64           `json:"timeout_ms"`
	AttemptTimeoutMs int64           `json:"attempt_timeout_ms"`
	AskTimeoutMs     int64           `json:"ask_timeout_ms"`
	Operation        json.RawMessage `json:"operation"`
	Declared         bool            `json:"declared"`
	KeyHeader        string          `json:"key_header"`
	Key              string          `json:"key"`
	Body             string          `json:"body"`
	Draining         bool            `json:"draining"`
	CancelAfterMs    int64           `json:"cancel_after_ms"`
	OwnRulesMs       *int64          `json:"own_rules_ms"`
	Lease            uint32          `json:"lease"`
	Fallback         *bool           `json:"fallback"`
}

type expectation struct {
	Outcome         any               `json:"outcome"`
	Attempts        *int              `json:"attempts"`
	Arrivals        *int              `json:"arrivals"`
	WaitsMs         []float64         `json:"waits_ms"`
	WithinMs        int64             `json:"within_ms"`
	Headers         map[string]string `json:"headers"`
	Questions       *int              `json:"questions"`
	Reasons         []string          `json:"reasons"`
	Contexts        []any             `json:"contexts"`
	Usage           map[string]any    `json:"usage"`
	ReleasedOfCall  *int              `json:"released_of_call"`
	ReleasedOfLease *int              `json:"released_of_lease"`
}

// outcome is what came of a scenario.
type outcome struct {
	// "ok", or what a status of a gRPC or HTTP answer was.
	end      string
	attempts int
	took     time.Duration
	seen     play
}

// operation is the name that is set for the call; empty if none is.
func (c scenarioCall) operation() string {
	var name string
	switch {
	case c.Operation == nil:
		name = "payments.v1.Payments/Charge"
	case json.Unmarshal(c.Operation, &name) != nil:
		panic("`operation` is a text or null")
	}
	return name
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (s scenario) settings(run string) Settings {
	stands := s.Retryd
	if stands == "" {
		stands = "asked"
	}
	settings := Settings{
		Target:          testbed.Retryd[stands],
		Tenant:          run,
		AskTimeout:      ms(s.Call.AskTimeoutMs),
		AttemptTimeout:  ms(s.Call.AttemptTimeoutMs),
		DisableFallback: s.Call.Fallback != nil && !*s.Call.Fallback,
	}
	if stands == "asked" && settings.AskTimeout == 0 {
		settings.AskTimeout = 5 * time.Second
	}
	if operation := s.Call.operation(); operation != "" {
		settings.Operations = map[string]Operation{
			operation: {Declared: s.Call.Declared, KeyHeader: s.Call.KeyHeader, Lease: s.Call.Lease},
		}
	}
	if s.Call.OwnRulesMs != nil {
		settings.OwnRules = func(*retrydv1.RetryContext, *retrydv1.Decision) (time.Duration, bool) {
			return ms(*s.Call.OwnRulesMs), true
		}
	}
	return settings
}

// play makes the call of a scenario, and closes its client.
func (s scenario) play(t *testing.T, adapter adapter) outcome {
	t.Helper()
	run := newRun(adapter.name)
	client, err := New(s.settings(run))
	if err != nil {
		t.Fatal(err)
	}
	if s.Call.Draining {
		client.Drain()
	}
	if s.Call.Lease != 0 {
		held := name{run, s.Call.operation()}
		eventually(t, "the lease is there", func() bool { return client.leases.left(held) == s.Call.Lease })
	}
	ctx := t.Context()
	if s.Call.TimeoutMs != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, ms(s.Call.TimeoutMs))
		defer cancel()
	}
	if s.Call.CancelAfterMs != 0 {
		given, cancel := context.WithCancel(ctx)
		defer cancel()
		ctx = given
		go func() {
			// A caller that gives up a wait must have come to it, however busy the machine is.
			for len(s.Expect.Reasons) != 0 && !isAnswered(t, run) && given.Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(ms(s.Call.CancelAfterMs))
			cancel()
		}()
	}
	if operation := s.Call.operation(); operation != "" {
		ctx = With(ctx, Call{Operation: operation})
	}
	script, err := json.Marshal(s.Script)
	if err != nil {
		t.Fatal(err)
	}
	headers := map[string]string{"x-play": run, "x-script": string(script)}
	if s.Call.Key != "" {
		headers["idempotency-key"] = s.Call.Key
	}
	target := s.Target
	if target == "" {
		target = "faulty"
	}

	var got outcome
	start := time.Now()
	got.end, got.attempts = adapter.call(t, ctx, client, target, headers, s.Call.Body == "stream")
	got.took = time.Since(start)
	// With no retryd there to hear the last report, an error is as it should be.
	_ = client.Close(t.Context())
	got.seen = seen(t, run)
	return got
}

// isAnswered tells whether the testbed has seen the answer to a question of the run.
func isAnswered(t *testing.T, run string) bool {
	questions := seen(t, run).Questions
	return len(questions) != 0 && questions[0].Decision != nil
}

func (l *leases) left(n name) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := l.byName[n]; held != nil {
		return held.left
	}
	return 0
}

func (s scenario) check(t *testing.T, got outcome) {
	t.Helper()
	e := s.Expect
	same := func(what string, got, wanted any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("%s: %v, expected %v", what, got, wanted)
		}
	}
	number := func(what string, got int, wanted *int) {
		t.Helper()
		if wanted != nil {
			same(what, got, *wanted)
		}
	}
	switch wanted := e.Outcome.(type) {
	case string:
		if wanted == "failed" && got.end == "ok" || wanted != "failed" {
			same("outcome", got.end, wanted)
		}
	case map[string]any:
		for over, status := range wanted {
			same("outcome", got.end, fmt.Sprintf("%s %v", over, status))
		}
	default:
		t.Fatalf("outcome %v", e.Outcome)
	}
	number("attempts", got.attempts, e.Attempts)
	number("arrivals", len(got.seen.Arrivals), e.Arrivals)
	number("questions", len(got.seen.Questions), e.Questions)
	for i, wait := range e.WaitsMs {
		if len(got.seen.Arrivals) <= i+1 {
			t.Fatalf("no arrival after wait %d", i)
		}
		if waited := got.seen.Arrivals[i+1].AtMs - got.seen.Arrivals[i].AtMs; waited < wait {
			t.Errorf("wait %d: %v ms, expected %v", i, waited, wait)
		}
	}
	if e.WithinMs != 0 && got.took > ms(e.WithinMs) {
		t.Errorf("took %v, expected %d ms at most", got.took, e.WithinMs)
	}
	for _, arrival := range got.seen.Arrivals {
		for header, value := range e.Headers {
			same("header "+header, arrival.Headers[header], value)
		}
	}
	if e.Reasons != nil {
		var reasons []string
		for _, question := range got.seen.Questions {
			reasons = append(reasons, fmt.Sprint(question.Decision["reason"]))
		}
		same("reasons", reasons, e.Reasons)
	}
	if len(got.seen.Questions) < len(e.Contexts) {
		t.Fatalf("%d questions, expected %d", len(got.seen.Questions), len(e.Contexts))
	}
	for i, context := range e.Contexts {
		for _, difference := range differs(fmt.Sprintf("question %d", i), context, got.seen.Questions[i].Context) {
			t.Error(difference)
		}
	}
	if e.Usage != nil && !maps.Equal(got.seen.Usage, e.Usage) {
		t.Errorf("usage: %v, expected %v", got.seen.Usage, e.Usage)
	}
	number("released of the call", got.seen.released("decided"), e.ReleasedOfCall)
	number("released of the lease", got.seen.released("lease"), e.ReleasedOfLease)
}

// released is how many retries came back of the grants of a kind.
func (p play) released(grant string) (sum int) {
	for release := range slices.Values(p.Releases) {
		if release.Request[grant] == nil {
			continue
		}
		released, _ := strconv.Atoi(fmt.Sprint(release.Response["released"]))
		sum += released
	}
	return sum
}
