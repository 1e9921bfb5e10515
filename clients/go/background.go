package retryd

import (
	"context"
	"sync"
	"time"
)

const (
	// tasksMax is how many tasks may run at once: in an outage every call would like to start one.
	tasksMax = 1000
	// taskTimeout is how long a question of a task may take.
	taskTimeout = time.Second
)

// background runs what no call waits for.
type background struct {
	ctx    context.Context // of every task; ends when the time to close is over
	cancel context.CancelFunc

	mu      sync.Mutex
	running int
	closed  bool
	tasks   sync.WaitGroup
}

func newBackground() *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{ctx: ctx, cancel: cancel}
}

// start runs the task beside its caller, unless too many run or the client is closed.
func (b *background) start(task func(context.Context)) (started bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.running >= tasksMax {
		return false
	}
	b.running++
	b.tasks.Go(func() {
		task(b.ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.running--
	})
	return true
}

// close waits for the tasks that run, and starts no others. It cuts them short when ctx ends.
func (b *background) close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	stop := context.AfterFunc(ctx, b.cancel)
	b.tasks.Wait()
	if stop() {
		b.cancel()
		return nil
	}
	return ctx.Err()
}
