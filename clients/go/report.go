package retryd

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// entriesMax is how many names fit into one report.
const entriesMax = 1000

// reportWhile reports the usage that no question has taken along, again and again while open lasts.
// ctx is that of a report.
func (c *Client) reportWhile(open, ctx context.Context) {
	ticker := time.NewTicker(c.settings.ReportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-open.Done():
			return
		case <-ticker.C:
			// An error has settled what becomes of the usage: there is nothing else to do about it.
			_ = c.report(ctx)
		}
	}
}

// report tells all usage that was counted. It is not repeated, whatever comes of it.
func (c *Client) report(ctx context.Context) error {
	all := c.usage.takeAll()
	entries := make([]entry, 0, len(all))
	for n, t := range all {
		entries = append(entries, entry{n, t})
	}
	var failed error
	for batch := range slices.Chunk(entries, entriesMax) {
		failed = errors.Join(failed, c.reportBatch(ctx, batch))
	}
	return failed
}

// entry is what one report says about one name.
type entry struct {
	name  name
	tally tally
}

func (c *Client) reportBatch(ctx context.Context, entries []entry) error {
	request := &retrydv1.ReportUsageRequest{}
	for _, e := range entries {
		request.Usage = append(request.Usage, &retrydv1.TenantUsage{
			Tenant:    e.name.tenant,
			Operation: e.name.operation,
			Usage:     e.tally.message(),
		})
	}
	ctx, cancel := context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	response, err := c.budgets.ReportUsage(ctx, request)
	for i, e := range entries {
		refusal := codes.OK
		if i < len(response.GetResults()) {
			refusal = codes.Code(response.GetResults()[i].GetRefusal().GetGrpcCode())
		}
		switch {
		case err != nil && isFromRetryd(err), refusal == codes.Unavailable:
			c.usage.keep(e.name, e.tally)
		case refusal != codes.OK:
			c.settings.Logger.Error("retryd refuses a report of usage",
				"tenant", e.name.tenant, "operation", e.name.operation, "code", refusal)
		}
	}
	return err
}
