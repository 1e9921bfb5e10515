package retryd

import (
	"context"
	"sync"
	"time"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// acquireEvery is the shortest time between two acquisitions for one name.
const acquireEvery = time.Second

// leases holds the retries that were taken ahead. The zero value is ready.
type leases struct {
	mu     sync.Mutex
	byName map[name]*lease
}

// lease is what is left of one acquisition.
type lease struct {
	id    string
	left  uint32
	until time.Time
	// When retries were last asked for.
	asked time.Time
}

// due tells whether retries must be acquired for the name, and that they now are.
func (l *leases) due(n name) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	held := l.byName[n]
	switch {
	case held == nil:
		if namesMax <= len(l.byName) || !n.isKnowable() {
			return false
		}
		if l.byName == nil {
			l.byName = map[name]*lease{}
		}
		l.byName[n] = &lease{asked: now}
		return true
	case held.left != 0 && now.Before(held.until), now.Sub(held.asked) < acquireEvery:
		return false
	}
	held.asked = now
	return true
}

func (l *leases) put(n name, id string, left uint32, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.byName[n]
	held.id, held.left, held.until = id, left, until
}

// spend takes a retry out of the lease of the name, if it has one, and tells how to put it back.
func (l *leases) spend(n name) (putBack func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.byName[n]
	if held == nil || held.left == 0 || !time.Now().Before(held.until) {
		return nil, false
	}
	held.left--
	id := held.id
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		// Another lease may have followed meanwhile.
		if held.id == id {
			held.left++
		}
	}, true
}

// takeAll hands out every lease that still has retries.
func (l *leases) takeAll() map[name]lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[name]lease{}
	for n, held := range l.byName {
		if held.left != 0 && time.Now().Before(held.until) {
			all[n] = *held
		}
		held.left = 0
	}
	return all
}

// keepLease takes up to wanted retries ahead, in the background, if what was taken is spent or over.
func (c *Client) keepLease(n name, wanted uint32) {
	if wanted == 0 || !c.leases.due(n) {
		return
	}
	c.background.start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, taskTimeout)
		defer cancel()
		sent := time.Now()
		answer, err := c.budgets.AcquireRetries(ctx, &retrydv1.AcquireRetriesRequest{
			Tenant: n.tenant, Operation: n.operation, Wanted: wanted,
		})
		// What a policy that only observes has granted is no permission.
		if err == nil && !answer.GetShadow() {
			c.leases.put(n, answer.GetLease(), answer.GetGranted(), sent.Add(answer.GetValidFor().AsDuration()))
		}
	})
}

// releaseLeases gives back every retry that was taken ahead and not sent.
func (c *Client) releaseLeases(ctx context.Context) error {
	for n, l := range c.leases.takeAll() {
		if err := c.releaseLease(ctx, n, l); err != nil {
			// The others would end alike, one after the other. They are lost when their time is over.
			return err
		}
	}
	return nil
}

func (c *Client) releaseLease(ctx context.Context, n name, l lease) error {
	ctx, cancel := context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	_, err := c.budgets.ReleaseRetries(ctx, &retrydv1.ReleaseRetriesRequest{
		Tenant: n.tenant, Operation: n.operation, Unused: l.left,
		Grant: &retrydv1.ReleaseRetriesRequest_Lease{Lease: l.id},
	})
	return err
}
