package retryd

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// leasing is a retryd that grants what is wanted, and repeats nothing when it is asked.
func leasing(t *testing.T, shadow bool, validFor time.Duration) *fake {
	retryd := &fake{}
	retryd.acquire = func(request *retrydv1.AcquireRetriesRequest) *retrydv1.AcquireRetriesResponse {
		_, acquires, _ := retryd.heard()
		return &retrydv1.AcquireRetriesResponse{
			Granted: request.GetWanted(), Lease: fmt.Sprint("lease-", len(acquires)),
			ValidFor: durationpb.New(validFor), Shadow: shadow,
		}
	}
	retryd.serve(t, "")
	return retryd
}

func leaseOf(n uint32) func(*Settings) {
	return func(s *Settings) { s.Operations = map[string]Operation{"op": {Lease: n}} }
}

// again tells whether a call whose server is not there is repeated.
func again(client *Client, ctx context.Context) bool {
	call := client.begin(ctx, "target", "op")
	call.bodyReplayable = true
	call.send()
	return call.again(ctx, failedConnect())
}

func TestALeasePaysAsLongAsItLasts(t *testing.T) {
	retryd := leasing(t, false, 10*time.Second)
	client := newClient(t, retryd.address, leaseOf(2))
	held := name{client.settings.Tenant, "op"}
	eventually(t, "the lease is there", func() bool { return client.leases.left(held) == 2 })
	for range 2 {
		if !again(client, t.Context()) {
			t.Error("the lease does not pay")
		}
	}
	if again(client, t.Context()) {
		t.Error("the lease pays for more than it holds")
	}
	if _, acquires, _ := retryd.heard(); len(acquires) != 1 {
		t.Errorf("acquired %d times within a second", len(acquires))
	}
}

func TestALeaseIsAcquiredAnewWhenItIsSpent(t *testing.T) {
	retryd := leasing(t, false, 10*time.Second)
	client := newClient(t, retryd.address, leaseOf(1))
	held := name{client.settings.Tenant, "op"}
	eventually(t, "the lease is there", func() bool { return client.leases.left(held) == 1 })
	if !again(client, t.Context()) {
		t.Error("the lease does not pay")
	}
	eventually(t, "another lease", func() bool {
		client.begin(t.Context(), "target", "op")
		return client.leases.left(held) == 1
	})
}

func TestALeasePastItsTimePaysNothing(t *testing.T) {
	retryd := leasing(t, false, time.Nanosecond)
	client := newClient(t, retryd.address, leaseOf(1))
	eventually(t, "the lease is there", func() bool { return client.leases.left(name{client.settings.Tenant, "op"}) == 1 })
	if again(client, t.Context()) {
		t.Error("the lease pays when its time is over")
	}
}

func TestALeaseOfAPolicyThatOnlyObservesPaysNothing(t *testing.T) {
	retryd := leasing(t, true, 10*time.Second)
	client := newClient(t, retryd.address, leaseOf(1))
	eventually(t, "an acquisition", func() bool { _, acquires, _ := retryd.heard(); return len(acquires) == 1 })
	eventually(t, "its end", client.isQuiet)
	if again(client, t.Context()) {
		t.Error("the lease pays")
	}
}

func TestALeasedRetryThatIsNotSentIsPutBack(t *testing.T) {
	retryd := leasing(t, false, 10*time.Second)
	client := newClient(t, retryd.address, leaseOf(3))
	held := name{client.settings.Tenant, "op"}
	eventually(t, "the lease is there", func() bool { return client.leases.left(held) == 3 })
	ctx, cancel := context.WithCancel(t.Context())
	call := client.begin(ctx, "target", "op")
	call.bodyReplayable = true
	call.send()
	failed := failedConnect()
	failed.hint = &retrydv1.ServerHint{RetryAfter: durationpb.New(time.Hour)}
	waited := make(chan bool)
	go func() { waited <- call.again(ctx, failed) }()
	eventually(t, "the lease pays", func() bool { return client.leases.left(held) == 2 })
	cancel()
	if <-waited || client.leases.left(held) != 3 {
		t.Errorf("%d retries are left", client.leases.left(held))
	}
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _, releases := retryd.heard()
	if len(releases) != 1 || releases[0].GetLease() != "lease-1" || releases[0].GetUnused() != 3 {
		t.Errorf("released %v", releases)
	}
}
