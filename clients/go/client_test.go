package retryd

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

func TestSettingsAreRefusedInOneMessage(t *testing.T) {
	_, err := New(Settings{
		AskTimeout:     time.Minute,
		AttemptTimeout: -1,
		ReportEvery:    time.Millisecond,
		Operations:     map[string]Operation{"op": {Lease: 1001}},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	if _, err := New(Settings{Target: "target", Tenant: strings.Repeat("x", 129), Operations: map[string]Operation{"a\nb": {}}}); err == nil ||
		!strings.Contains(err.Error(), "`Tenant`") || !strings.Contains(err.Error(), `"a\nb"`) {
		t.Errorf("names that retryd refuses: %v", err)
	}
	for _, wrong := range []string{"`Target`", "`Tenant`", "`AskTimeout`", "`AttemptTimeout`", "`ReportEvery`", "`Lease` of \"op\""} {
		if !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s is missing in %q", wrong, err)
		}
	}
}

func TestSettingsAtTheirLimits(t *testing.T) {
	for _, s := range []Settings{
		{},
		{AskTimeout: time.Millisecond, ReportEvery: 100 * time.Millisecond},
		{AskTimeout: 10 * time.Second, ReportEvery: 10 * time.Second, Operations: map[string]Operation{"op": {Lease: 1000}}},
	} {
		s.Target, s.Tenant = "target", "tenant"
		if _, err := s.filled(); err != nil {
			t.Error(err)
		}
	}
	filled, _ := Settings{}.filled()
	if filled.AskTimeout != 20*time.Millisecond || filled.ReportEvery != 5*time.Second || filled.AttemptTimeout != 0 {
		t.Errorf("%+v", filled)
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	retryd := leasing(t, false, 10*time.Second)
	ignore := goleak.IgnoreCurrent()
	client := newClient(t, retryd.address, leaseOf(2))
	again(client, t.Context())
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	retryd.stop()
	goleak.VerifyNone(t, ignore)
}

func TestCloseEndsInTime(t *testing.T) {
	retryd := leasing(t, false, 10*time.Second)
	retryd.decide = func(ctx context.Context, _ *retrydv1.RetryContext) (*retrydv1.Decision, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	client := newClient(t, retryd.address, func(s *Settings) { s.AskTimeout = 10 * time.Second })
	passed, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	again(client, passed)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := client.Close(short); err == nil {
		t.Error("a task that hangs was waited for")
	}
}

func TestCloseWaitsForWhatIsBeingTold(t *testing.T) {
	told := false
	retryd := leasing(t, false, 10*time.Second)
	retryd.decide = func(ctx context.Context, _ *retrydv1.RetryContext) (*retrydv1.Decision, error) {
		time.Sleep(100 * time.Millisecond)
		told = ctx.Err() == nil
		return &retrydv1.Decision{}, nil
	}
	client := newClient(t, retryd.address, nil)
	passed, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if again(client, passed) {
		t.Error("repeated after the deadline")
	}
	if err := client.Close(t.Context()); err != nil || !told {
		t.Errorf("told %v, %v", told, err)
	}
}

func TestCallsPassAfterClose(t *testing.T) {
	client := newClient(t, testbed.Retryd["asked"], nil)
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for over, adapter := range adapters {
		headers := map[string]string{"x-play": newRun(over), "x-script": `[{"ok": true}]`}
		if end, _ := adapter.call(t, t.Context(), client, "faulty", headers, false); end != "ok" {
			t.Errorf("%s: %s", over, end)
		}
	}
	if again(client, t.Context()) {
		t.Error("a closed client repeats")
	}
}

func TestBackgroundHasALimit(t *testing.T) {
	b := newBackground()
	blocked := func(ctx context.Context) { <-ctx.Done() }
	for range tasksMax {
		if !b.start(blocked) {
			t.Fatal("a task within the limit does not run")
		}
	}
	if b.start(blocked) {
		t.Error("no limit")
	}
	b.cancel()
	if err := b.close(t.Context()); err != nil || b.start(blocked) {
		t.Errorf("closed: %v", err)
	}
}

func TestAQuestionHasATenthOfWhatRemains(t *testing.T) {
	retryd := &fake{decide: func(ctx context.Context, question *retrydv1.RetryContext) (*retrydv1.Decision, error) {
		deadline, _ := ctx.Deadline()
		if left := time.Until(deadline); left > time.Minute {
			t.Errorf("%v for the question", left)
		}
		if left := question.GetRemainingDeadline().AsDuration(); left > 10*time.Minute || left < 9*time.Minute {
			t.Errorf("%v remain", left)
		}
		return &retrydv1.Decision{Verdict: retrydv1.Verdict_VERDICT_RETRY}, nil
	}}
	retryd.serve(t, "")
	client := newClient(t, retryd.address, nil)
	// The most that may be set is less than a tenth of this deadline.
	client.settings.AskTimeout = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if !again(client, ctx) {
		t.Error("not repeated")
	}
}

func TestWhatTheCallerSendsItsServerIsNotTold(t *testing.T) {
	retryd := &fake{decide: func(ctx context.Context, _ *retrydv1.RetryContext) (*retrydv1.Decision, error) {
		received, _ := metadata.FromIncomingContext(ctx)
		if received.Get("authorization") != nil {
			t.Error("retryd received the caller's credentials")
		}
		return &retrydv1.Decision{Verdict: retrydv1.Verdict_VERDICT_RETRY}, nil
	}}
	retryd.serve(t, "")
	client := newClient(t, retryd.address, nil)
	if !again(client, metadata.AppendToOutgoingContext(t.Context(), "authorization", "secret")) {
		t.Error("not repeated")
	}
}

func TestACallKeepsItsNameAndItsCallID(t *testing.T) {
	var asked []*retrydv1.RetryContext
	retryd := &fake{decide: func(_ context.Context, question *retrydv1.RetryContext) (*retrydv1.Decision, error) {
		asked = append(asked, question)
		return &retrydv1.Decision{Verdict: retrydv1.Verdict_VERDICT_RETRY, Delay: durationpb.New(1)}, nil
	}}
	retryd.serve(t, "")
	client := newClient(t, retryd.address, nil)
	ctx := With(t.Context(), Call{Tenant: "another", Operation: "theirs"})
	for range 2 {
		call := client.begin(ctx, "target", "op")
		for range 2 {
			call.send()
			call.again(ctx, failedConnect())
		}
	}
	if len(asked) != 4 || asked[0].GetCallId() != asked[1].GetCallId() || asked[1].GetCallId() == asked[2].GetCallId() || len(asked[0].GetCallId()) != 36 {
		t.Errorf("asked %v", asked)
	}
	if asked[0].GetTenant() != "another" || asked[0].GetOperation() != "theirs" || asked[1].GetAttemptsMade() != 2 {
		t.Errorf("asked %v", asked)
	}
}

func TestACallerThatGivesUpEndsTheQuestionToo(t *testing.T) {
	arrived := make(chan struct{})
	retryd := &fake{decide: func(ctx context.Context, _ *retrydv1.RetryContext) (*retrydv1.Decision, error) {
		close(arrived)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	retryd.serve(t, "")
	client := newClient(t, retryd.address, nil)
	client.settings.AskTimeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if again(client, ctx) {
		t.Error("repeated")
	}
}

func TestAGrantThatNobodyWaitedForIsGivenBack(t *testing.T) {
	arrived := make(chan struct{}, 1)
	retryd := &fake{decide: func(ctx context.Context, _ *retrydv1.RetryContext) (*retrydv1.Decision, error) {
		arrived <- struct{}{}
		time.Sleep(20 * time.Millisecond)
		return &retrydv1.Decision{Verdict: retrydv1.Verdict_VERDICT_RETRY}, nil
	}}
	retryd.serve(t, "")
	for name, before := range map[string]bool{"given up before the question": true, "given up during the question": false} {
		t.Run(name, func(t *testing.T) {
			_, _, given := retryd.heard()
			client := newClient(t, retryd.address, nil)
			ctx, cancel := context.WithCancel(t.Context())
			if before {
				cancel()
			} else {
				go func() {
					<-arrived
					cancel()
				}()
			}
			if again(client, ctx) {
				t.Error("repeated")
			}
			if err := client.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, _, releases := retryd.heard(); len(releases) != len(given)+1 || releases[len(given)].GetDecided().GetAttemptsMade() != 1 {
				t.Errorf("released %v", releases[len(given):])
			}
			cancel()
			for len(arrived) != 0 {
				<-arrived
			}
		})
	}
}

func TestMistakesAreLogged(t *testing.T) {
	for code, logged := range map[codes.Code]bool{
		codes.InvalidArgument: true, codes.PermissionDenied: true, codes.Unavailable: false,
	} {
		var log bytes.Buffer
		retryd := &fake{decide: func(context.Context, *retrydv1.RetryContext) (*retrydv1.Decision, error) {
			return nil, status.Error(code, "the reason")
		}}
		retryd.serve(t, "")
		client := newClient(t, retryd.address, func(s *Settings) { s.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		again(client, t.Context())
		if strings.Contains(log.String(), "the reason") != logged {
			t.Errorf("%v: logged %q", code, log.String())
		}
	}
}

func TestARetrydThatIsBackIsConnectedWithoutAQuestion(t *testing.T) {
	retryd := &fake{}
	retryd.serve(t, "")
	client := newClient(t, retryd.address, nil)
	isConnected := func() bool { return client.conn.GetState() == connectivity.Ready }
	eventually(t, "a connection", isConnected)
	retryd.stop()
	eventually(t, "its end", func() bool { return !isConnected() })
	retryd.serve(t, retryd.address)
	eventually(t, "a connection again", isConnected)
}

func TestTargetsHaveThrottlesOfTheirOwn(t *testing.T) {
	var all throttles
	for range 10 {
		all.of("broken").failure()
	}
	if all.of("broken").grants() || !all.of("sound").grants() {
		t.Error("one throttle for two targets")
	}
	for i := range targetsMax {
		all.of(string(rune(i)) + "more")
	}
	if len(all.byTarget) != targetsMax || all.of("late") != all.of("later") {
		t.Errorf("%d throttles", len(all.byTarget))
	}
}
