package retryd

import (
	"encoding/json"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// TestUnasked plays clients/scenarios/unasked.json.
func TestUnasked(t *testing.T) {
	var file struct {
		About string
		Base  map[string]any
		Cases []struct {
			Name    string
			Ended   codes.Code
			Tokens  *float64
			Context map[string]any
			Expect  struct {
				Retry   bool
				LeastMs int64 `json:"least_ms"`
				MostMs  int64 `json:"most_ms"`
			}
		}
	}
	readJSON(t, "clients/scenarios/unasked.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			failed := readContext(t, merged(file.Base, c.Context))
			// Waits are drawn.
			for range 100 {
				throttle := newThrottle()
				if c.Tokens != nil {
					throttle.tokens = int(*c.Tokens * 10)
				}
				if counts(failed) {
					throttle.failure()
				}
				wait, retry := unasked(failed, throttle)
				retry = retry && leavesUsAlone(c.Ended)
				if retry != c.Expect.Retry {
					t.Fatalf("retry %v", retry)
				}
				if retry && (wait < ms(c.Expect.LeastMs) || ms(c.Expect.MostMs) < wait || wait%time.Millisecond != 0) {
					t.Fatalf("waits %v", wait)
				}
			}
		})
	}
}

// TestThrottle plays clients/scenarios/throttle.json.
func TestThrottle(t *testing.T) {
	var file struct {
		About     string
		Sequences []struct {
			Name  string
			Steps []struct {
				Failures  int
				Successes int
				Grants    *bool
			}
		}
		Counts []struct {
			Name    string
			Context map[string]any
			Counts  bool
		}
	}
	readJSON(t, "clients/scenarios/throttle.json", &file)
	if len(file.Sequences) == 0 || len(file.Counts) == 0 {
		t.Fatal("no cases")
	}
	for _, sequence := range file.Sequences {
		throttle := newThrottle()
		for i, step := range sequence.Steps {
			for range step.Failures {
				throttle.failure()
			}
			for range step.Successes {
				throttle.success()
			}
			if step.Grants != nil && throttle.grants() != *step.Grants {
				t.Errorf("%s: step %d: grants %v", sequence.Name, i, throttle.grants())
			}
		}
	}
	for _, c := range file.Counts {
		if got := counts(readContext(t, c.Context)); got != c.Counts {
			t.Errorf("%s: counts %v", c.Name, got)
		}
	}
}

func readContext(t *testing.T, context map[string]any) *retrydv1.RetryContext {
	t.Helper()
	text, err := json.Marshal(context)
	if err != nil {
		t.Fatal(err)
	}
	var message retrydv1.RetryContext
	if err := protojson.Unmarshal(text, &message); err != nil {
		t.Fatal(err)
	}
	return &message
}
