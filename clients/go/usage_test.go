package retryd

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

var shop = name{"shop", "op"}

func TestUsageIsHandedOutOnce(t *testing.T) {
	var u usage
	u.started(shop)
	u.succeeded(shop)
	u.succeededLater(shop, retrydv1.FailureClass_FAILURE_CLASS_THROTTLING)
	u.succeededLater(shop, retrydv1.FailureClass_FAILURE_CLASS_UNSPECIFIED)
	told := u.take(shop).message()
	if told.GetRequests() != 1 || told.GetFirstTrySuccesses() != 1 || told.GetRetriedSuccesses() != 2 ||
		told.GetRetriedThrottling() != 1 || told.GetRetriedTransient() != 0 || told.GetRetriedTimeout() != 0 {
		t.Error(told)
	}
	if told.GetPeriod().AsDuration() < time.Millisecond {
		t.Errorf("period %v", told.GetPeriod())
	}
	if again := u.take(shop).message(); again != nil {
		t.Errorf("handed out twice: %v", again)
	}
}

func TestUsageThatIsKeptIsAsOldAsItWas(t *testing.T) {
	var u usage
	old := tally{since: time.Now().Add(-time.Minute), requests: 3}
	u.started(shop)
	u.keep(shop, old)
	u.started(shop)
	if got := u.take(shop); got.requests != 5 || !got.since.Equal(old.since) {
		t.Errorf("%+v", got)
	}
	u.keep(shop, tally{})
	if len(u.tallies) != 0 {
		t.Error("nothing was kept as something")
	}
}

func TestUsageHasLimits(t *testing.T) {
	var u usage
	for i := range namesMax + 1 {
		u.started(name{"shop", fmt.Sprint(i)})
	}
	u.started(name{"shop", "0"})
	if len(u.tallies) != namesMax || u.take(name{"shop", "0"}).requests != 2 {
		t.Errorf("%d names", len(u.tallies))
	}
	full := tally{since: time.Now(), requests: countMax}
	if sum := full.plus(tally{since: time.Now(), requests: 1}); sum != full {
		t.Errorf("counts beyond what retryd takes: %+v", sum)
	}
}

func TestReportsAreCutIntoWhatFits(t *testing.T) {
	retryd := &fake{}
	retryd.serve(t, "")
	client := newClient(t, retryd.address, nil)
	for i := range 2*entriesMax + 1 {
		client.usage.started(name{"shop", fmt.Sprint(i)})
	}
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	reports, _, _ := retryd.heard()
	for _, report := range reports {
		if len(report.GetUsage()) > entriesMax {
			t.Errorf("%d entries in one report", len(report.GetUsage()))
		}
		for _, entry := range report.GetUsage() {
			told[entry.GetOperation()] = true
		}
	}
	if len(told) != 2*entriesMax+1 {
		t.Errorf("%d names were told", len(told))
	}
}

func TestReportsComeByThemselves(t *testing.T) {
	retryd := &fake{}
	retryd.serve(t, "")
	client := newClient(t, retryd.address, func(s *Settings) { s.ReportEvery = reportEveryMin })
	client.usage.started(shop)
	eventually(t, "a report", func() bool {
		reports, _, _ := retryd.heard()
		return len(reports) == 1 && reports[0].GetUsage()[0].GetUsage().GetRequests() == 1
	})
}

// What becomes of usage that was reported, by how the report ended.
func TestFateOfAReport(t *testing.T) {
	overloaded, err := status.New(codes.Unavailable, "").WithDetails(&errdetails.ErrorInfo{Domain: errorDomain, Reason: "OVERLOADED"})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := status.New(codes.Unavailable, "").WithDetails(&errdetails.ErrorInfo{Domain: "proxy", Reason: "OVERLOADED"})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(code codes.Code) *retrydv1.UsageResult {
		return &retrydv1.UsageResult{Outcome: &retrydv1.UsageResult_Refusal{Refusal: &retrydv1.Refusal{GrpcCode: uint32(code)}}}
	}
	counted := &retrydv1.UsageResult{Outcome: &retrydv1.UsageResult_Budget{}}
	for _, c := range []struct {
		name   string
		result *retrydv1.UsageResult
		err    error
		kept   bool
	}{
		{"counted", counted, nil, false},
		{"refused for now", refused(codes.Unavailable), nil, true},
		{"refused for ever", refused(codes.InvalidArgument), nil, false},
		{"retryd is overloaded", nil, overloaded.Err(), true},
		{"something else is", nil, elsewhere.Err(), false},
		{"nobody knows", nil, errors.New("lost"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			retryd := &fake{report: func(*retrydv1.ReportUsageRequest) (*retrydv1.ReportUsageResponse, error) {
				return &retrydv1.ReportUsageResponse{Results: []*retrydv1.UsageResult{c.result}}, c.err
			}}
			retryd.serve(t, "")
			client := newClient(t, retryd.address, nil)
			client.usage.started(shop)
			if err := client.report(t.Context()); (err != nil) != (c.err != nil) {
				t.Errorf("error %v", err)
			}
			if left := client.usage.take(shop).requests; (left == 1) != c.kept {
				t.Errorf("%d requests are left", left)
			}
		})
	}
}

func TestANameThatIsRefusedDoesNotStopTheOthers(t *testing.T) {
	client := newClient(t, testbed.Retryd["asked"], nil)
	good := name{client.settings.Tenant, "op"}
	for _, bad := range []string{"", strings.Repeat("x", 257), "a\nb", "\xff", strings.Repeat("much too long for a report", 100_000)} {
		client.usage.started(name{client.settings.Tenant, bad})
		client.usage.started(name{bad, "op"})
	}
	client.usage.started(good)
	if err := client.report(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told := seen(t, good.tenant).Usage["requests"]; told != "1" {
		t.Errorf("%v requests were counted", told)
	}
}

func TestUsageIsCountedByManyAtOnce(t *testing.T) {
	client := newClient(t, testbed.Retryd["asked"], nil)
	var tasks sync.WaitGroup
	for range 20 {
		tasks.Go(func() {
			for range 20 {
				call := client.begin(t.Context(), "target", "op")
				call.send()
				if call.again(t.Context(), &failure{what: &retrydv1.Failure{Status: &retrydv1.Failure_GrpcCode{GrpcCode: 3}}}) {
					t.Error("a permanent failure is repeated")
				}
			}
		})
	}
	tasks.Wait()
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told := seen(t, client.settings.Tenant).Usage["requests"]; told != "400" {
		t.Errorf("%v requests were counted", told)
	}
}
