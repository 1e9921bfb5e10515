package retryd

import (
	"context"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

// errorDomain is the ErrorInfo domain of every error that retryd itself answers with.
const errorDomain = "retryd"

// ask brings the question to retryd, once, and settles the usage that went along. It sets what
// remains of the deadline of ctx, and waits for a tenth of that at most.
func (c *Client) ask(ctx context.Context, question *retrydv1.RetryContext) (*retrydv1.Decision, error) {
	timeout := c.settings.AskTimeout
	remind(ctx, question)
	if question.RemainingDeadline != nil {
		timeout = min(timeout, question.GetRemainingDeadline().AsDuration()/10)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.decide(ctx, question)
}

// tell brings a failure to retryd whose caller does not wait for the answer.
func (c *Client) tell(caller context.Context, question *retrydv1.RetryContext) {
	remind(caller, question)
	c.background.start(func(ctx context.Context) {
		asking, cancel := context.WithTimeout(ctx, c.settings.AskTimeout)
		defer cancel()
		decision, err := c.decide(asking, question)
		// Nobody repeats the call, whatever the answer is.
		if err == nil && decision.GetVerdict() == retrydv1.Verdict_VERDICT_RETRY && !decision.GetShadow() {
			c.giveBack(ctx, question)
		}
	})
}

func (c *Client) decide(ctx context.Context, question *retrydv1.RetryContext) (*retrydv1.Decision, error) {
	n := name{question.GetTenant(), question.GetOperation()}
	counted := c.usage.take(n)
	question.Usage = counted.message()
	// What the caller sends to its own server, credentials too, is none of retryd's business.
	ctx = metadata.NewOutgoingContext(ctx, metadata.MD{})
	decision, err := c.retries.Decide(ctx, question)
	if err == nil {
		return decision, nil
	}
	if isFromRetryd(err) {
		c.usage.keep(n, counted)
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.PermissionDenied:
		c.settings.Logger.ErrorContext(ctx, "retryd refuses a question",
			"tenant", n.tenant, "operation", n.operation, "error", err)
	}
	return nil, err
}

// release gives back, in the background, the retry that was granted to the question and not sent.
func (c *Client) release(question *retrydv1.RetryContext) {
	c.background.start(func(ctx context.Context) { c.giveBack(ctx, question) })
}

func (c *Client) giveBack(ctx context.Context, question *retrydv1.RetryContext) {
	ctx, cancel := context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	// What does not arrive is lost, as it would have been without the attempt.
	_, _ = c.budgets.ReleaseRetries(ctx, &retrydv1.ReleaseRetriesRequest{
		Tenant: question.GetTenant(), Operation: question.GetOperation(), Unused: 1,
		Grant: &retrydv1.ReleaseRetriesRequest_Decided{Decided: &retrydv1.DecidedAttempt{
			CallId: question.GetCallId(), AttemptsMade: question.GetAttemptsMade(),
		}},
	})
}

// isFromRetryd tells whether retryd itself made the error, having written nothing. After any other
// error nobody knows whether it has.
func isFromRetryd(err error) bool {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == errorDomain {
			return true
		}
	}
	return false
}
