package retryd

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// player plays the steps of one case.
type player struct {
	t                 *testing.T
	conn              *grpc.ClientConn
	base              map[string]any
	title             string
	tenant, operation string
	revision          string
	// Leases and page tokens, by the names that steps gave them.
	named map[string]string
}

func (p *player) play(steps []step) {
	if p.operation == "" {
		p.operation = "op"
	}
	for _, s := range steps {
		granted := 0
		for range max(s.Repeat, 1) {
			granted += p.step(s)
		}
		if s.Granted != nil && *s.Granted != granted {
			p.t.Errorf("%s: granted %d, expected %d", p.title, granted, *s.Granted)
		}
	}
}

// step makes every call of a step, and tells how many of its asks were answered RETRY.
func (p *player) step(s step) (granted int) {
	retries, budgets := retrydv1.NewRetryServiceClient(p.conn), retrydv1.NewBudgetServiceClient(p.conn)
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	for _, call := range s.Ask {
		question := &retrydv1.RetryContext{}
		p.read(p.filled(merged(p.base, call)), question)
		decision, err := retries.Decide(ctx, question)
		p.judge(s, call, decision, err)
		if err == nil {
			p.lawsOfDecision(s, question, decision)
			if decision.GetVerdict() == retrydv1.Verdict_VERDICT_RETRY {
				granted++
			}
		}
	}
	for _, call := range s.Report {
		entry := &retrydv1.TenantUsage{}
		p.read(p.filled(call), entry)
		answer, err := budgets.ReportUsage(ctx, &retrydv1.ReportUsageRequest{Usage: []*retrydv1.TenantUsage{entry}})
		if err == nil && len(answer.GetResults()) != 1 {
			p.t.Fatalf("%s: %d results of one entry", p.title, len(answer.GetResults()))
		}
		p.judge(s, call, first(answer.GetResults()), err)
		p.lawsOfReport(s, answer)
	}
	for _, call := range s.Reports {
		filled := merged(call, nil)
		var entries []any
		for _, entry := range call["usage"].([]any) {
			entries = append(entries, p.filled(entry.(map[string]any)))
		}
		filled["usage"] = entries
		request := &retrydv1.ReportUsageRequest{}
		p.read(filled, request)
		answer, err := budgets.ReportUsage(ctx, request)
		p.judge(s, call, answer, err)
		p.lawsOfReport(s, answer)
	}
	for _, call := range s.Acquire {
		request := &retrydv1.AcquireRetriesRequest{}
		p.read(p.filled(call), request)
		answer, err := budgets.AcquireRetries(ctx, request)
		p.judge(s, call, answer, err)
		if err == nil {
			p.name(s, answer.GetLease())
			p.lawsOfAcquire(s, request, answer)
		}
	}
	for _, call := range s.Release {
		request := &retrydv1.ReleaseRetriesRequest{}
		p.read(p.filled(call), request)
		answer, err := budgets.ReleaseRetries(ctx, request)
		p.judge(s, call, answer, err)
		p.law(answer.GetReleased() <= request.GetUnused(), "no more is released than was unused")
	}
	for _, call := range s.Budget {
		request := &retrydv1.GetBudgetRequest{}
		p.read(p.filled(call), request)
		answer, err := budgets.GetBudget(ctx, request)
		p.judge(s, call, answer, err)
	}
	for _, call := range s.List {
		request := &retrydv1.ListBudgetsRequest{}
		p.read(p.withNamed(merged(call, nil)), request)
		answer, err := budgets.ListBudgets(ctx, request)
		p.judge(s, call, answer, err)
		p.name(s, answer.GetNextPageToken())
	}
	return granted
}

func first(results []*retrydv1.UsageResult) *retrydv1.UsageResult {
	if len(results) == 0 {
		return nil
	}
	return results[0]
}

// filled gives a call the names of its play, unless it has others.
func (p *player) filled(call map[string]any) map[string]any {
	names := map[string]any{"tenant": p.tenant, "operation": p.operation}
	return p.withNamed(merged(names, call))
}

// withNamed puts what earlier steps got in place of its name.
func (p *player) withNamed(call map[string]any) map[string]any {
	for _, key := range []string{"lease", "pageToken"} {
		if reference, ok := call[key].(map[string]any); ok {
			value, known := p.named[reference["as"].(string)]
			if !known {
				p.t.Fatalf("%s: no step is named %v", p.title, reference)
			}
			call[key] = value
		}
	}
	return call
}

func (p *player) name(s step, got string) {
	if s.As != "" {
		p.named[s.As] = got
	}
}

// read makes a message of a call. Durations out of range are set on the message itself: proto-JSON has none.
func (p *player) read(call map[string]any, into proto.Message) {
	p.t.Helper()
	// A copy of what the steps share.
	text, err := json.Marshal(call)
	if err != nil {
		p.t.Fatal(err)
	}
	var own map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&own); err != nil {
		p.t.Fatal(err)
	}
	remaining := p.takeDuration(own, "remainingDeadline")
	retryAfter := p.takeDuration(own, "hint", "retryAfter")
	var periods []*durationpb.Duration
	if entries, ok := own["usage"].([]any); ok {
		for _, entry := range entries {
			periods = append(periods, p.takeDuration(entry.(map[string]any), "usage", "period"))
		}
	} else {
		periods = append(periods, p.takeDuration(own, "usage", "period"))
	}
	if text, err = json.Marshal(own); err != nil {
		p.t.Fatal(err)
	}
	if err := protojson.Unmarshal(text, into); err != nil {
		p.t.Fatalf("%s: %v: %s", p.title, err, text)
	}
	set := func(usage *retrydv1.Usage, period *durationpb.Duration) {
		if period != nil {
			usage.Period = period
		}
	}
	switch message := into.(type) {
	case *retrydv1.RetryContext:
		if remaining != nil {
			message.RemainingDeadline = remaining
		}
		if retryAfter != nil {
			message.Hint.RetryAfter = retryAfter
		}
		set(message.Usage, periods[0])
	case *retrydv1.TenantUsage:
		set(message.Usage, periods[0])
	case *retrydv1.ReportUsageRequest:
		for i, entry := range message.Usage {
			set(entry.Usage, periods[i])
		}
	}
}

// takeDuration takes a duration that is an object of its two numbers out of the JSON.
func (p *player) takeDuration(object map[string]any, path ...string) *durationpb.Duration {
	for _, key := range path[:len(path)-1] {
		inner, ok := object[key].(map[string]any)
		if !ok {
			return nil
		}
		object = inner
	}
	last := path[len(path)-1]
	parts, ok := object[last].(map[string]any)
	if !ok {
		return nil
	}
	delete(object, last)
	var d durationpb.Duration
	for key, value := range parts {
		text, ok := value.(string)
		if !ok {
			text = value.(json.Number).String()
		}
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			p.t.Fatalf("%s: %v", p.title, err)
		}
		switch key {
		case "seconds":
			d.Seconds = number
		case "nanos":
			d.Nanos = int32(number)
		default:
			p.t.Fatalf("%s: unknown key %q of a duration", p.title, key)
		}
	}
	return &d
}

// judge holds an answer against what is expected of it.
func (p *player) judge(s step, call map[string]any, answer proto.Message, err error) {
	p.t.Helper()
	switch {
	case err != nil && s.Error == nil:
		p.t.Errorf("%s: %v ended with %v", p.title, call, err)
	case err == nil && s.Error != nil:
		p.t.Errorf("%s: %v: no error, but %v", p.title, call, answer)
	case err != nil:
		p.judgeRefusal(call, *s.Error, status.Convert(err))
	default:
		for _, difference := range differs("", s.Expect, p.shown(answer)) {
			p.t.Errorf("%s: %v: %s", p.title, call, difference)
		}
	}
}

func (p *player) shown(answer proto.Message) map[string]any {
	text, err := protojson.Marshal(answer)
	if err != nil {
		p.t.Fatal(err)
	}
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		p.t.Fatal(err)
	}
	return object
}

func (p *player) judgeRefusal(call map[string]any, wanted refusal, got *status.Status) {
	p.t.Helper()
	var domain, reason string
	paths := []string{}
	texts := []string{got.Message()}
	for _, detail := range got.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			domain, reason = detail.GetDomain(), detail.GetReason()
		case *errdetails.BadRequest:
			for _, violation := range detail.GetFieldViolations() {
				paths = append(paths, violation.GetField())
				texts = append(texts, violation.GetDescription())
			}
		}
	}
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(strconv.Quote(wanted.Code))); err != nil {
		p.t.Fatal(err)
	}
	slices.Sort(paths)
	violations := slices.Sorted(slices.Values(wanted.Violations))
	if got.Code() != code || domain != "retryd" || reason != wanted.Reason || !slices.Equal(paths, violations) {
		p.t.Errorf("%s: %v ended with %v %q %q %q, expected %+v", p.title, call, got.Code(), domain, reason, paths, wanted)
	}
	if strings.ContainsFunc(strings.Join(texts, ""), unicode.IsControl) {
		p.t.Errorf("%s: a control character of the question came back: %q", p.title, texts)
	}
}

func (p *player) law(holds bool, law string) {
	p.t.Helper()
	if !holds {
		p.t.Errorf("%s: broken: %s", p.title, law)
	}
}

func (p *player) lawsOfDecision(s step, question *retrydv1.RetryContext, d *retrydv1.Decision) {
	retries := d.GetVerdict() == retrydv1.Verdict_VERDICT_RETRY
	p.law(retries || d.GetVerdict() == retrydv1.Verdict_VERDICT_DO_NOT_RETRY, "the verdict is one of the two")
	p.law(d.GetReason() != retrydv1.Reason_REASON_UNSPECIFIED, "the reason is told")
	p.law(retries == (d.GetReason() == retrydv1.Reason_REASON_RETRYABLE), "RETRY and RETRYABLE come together")
	p.law(retries == (d.Delay != nil), "only RETRY has a delay")
	if retries {
		delay := d.GetDelay().AsDuration()
		p.law(time.Millisecond <= delay && delay%time.Millisecond == 0, "a delay is whole milliseconds, at least one")
	}
	p.law(retries == (d.GetDelaySource() != retrydv1.DelaySource_DELAY_SOURCE_UNSPECIFIED), "only RETRY has a source of the delay")
	p.law(d.GetFailureClass() != retrydv1.FailureClass_FAILURE_CLASS_UNSPECIFIED, "the class is told")
	p.law(d.GetPolicy() != "", "the policy is told")
	p.law(d.GetPolicyRevision() == p.revision, "the revision is the file's")
	p.law(d.GetShadow() == (s.Expect["shadow"] == true), "shadow where that is expected")
	p.law(!d.GetDegraded(), "nothing is degraded")
	p.law(question.GetExplain() == (d.GetDetail() != ""), "detail comes with explain")
	p.law(question.GetExplain() == (len(d.GetSteps()) != 0), "steps come with explain")
	for i, step := range d.GetSteps() {
		last := i == len(d.GetSteps())-1
		p.law(step.GetSaw() != "", "every step saw something")
		p.law(!last || step.GetRule() == d.GetReason(), "the last step is the reason")
		p.law(step.GetObjected() == (last && !retries), "only the last step of a refusal objected")
	}
}

func (p *player) lawsOfReport(s step, answer *retrydv1.ReportUsageResponse) {
	for _, result := range answer.GetResults() {
		p.law(s.Expect != nil || result.GetRefusal() == nil, "an entry is refused only where that is expected")
	}
}

func (p *player) lawsOfAcquire(s step, request *retrydv1.AcquireRetriesRequest, answer *retrydv1.AcquireRetriesResponse) {
	valid := answer.GetValidFor().AsDuration()
	p.law(answer.GetGranted() <= request.GetWanted(), "no more is granted than was wanted")
	p.law((answer.GetGranted() == 0) == (answer.GetLease() == ""), "a lease comes with retries")
	p.law(time.Second <= valid && valid <= 10*time.Second, "valid for 1 s to 10 s")
	p.law(answer.GetShadow() == (s.Expect["shadow"] == true), "shadow where that is expected")
}
