//! What an answer must hold: what the case names, and what holds for every decision.
use retryd::wire::pb;
use tonic_types::StatusExt as _;

use crate::format::Error;

/// What must hold, and whether it does.
pub(crate) type Law = (&'static str, bool);

/// What holds for every decision.
pub(crate) fn decision_laws(
    decision: &pb::Decision,
    explain: bool,
    shadow: bool,
    revision: &str,
) -> Vec<Law> {
    let retries = decision.verdict() == pb::Verdict::Retry;
    let retryable = decision.reason() == pb::Reason::Retryable;
    let waits = decision.delay.as_ref().is_some_and(|delay| {
        0 <= delay.seconds
            && delay.nanos % 1_000_000 == 0
            && 0 < delay.seconds + i64::from(delay.nanos)
    });
    let objections = decision.steps.iter().filter(|step| step.objected).count();
    let last = decision.steps.last();
    vec![
        ("the verdict is one of the two", decision.verdict() != pb::Verdict::Unspecified),
        ("the reason is told", decision.reason() != pb::Reason::Unspecified),
        ("RETRY and RETRYABLE come together", retries == retryable),
        ("RETRY has a delay of whole milliseconds, at least one", !retries || waits),
        ("only RETRY has a delay", retries == decision.delay.is_some()),
        (
            "only RETRY has a source of the delay",
            retries == (decision.delay_source() != pb::DelaySource::Unspecified),
        ),
        ("the class is told", decision.failure_class() != pb::FailureClass::Unspecified),
        ("the policy is told", !decision.policy.is_empty()),
        ("the revision is the file's", decision.policy_revision == revision),
        ("shadow where that is expected", decision.shadow == shadow),
        ("nothing is degraded", !decision.degraded),
        ("detail comes with explain", explain != decision.detail.is_empty()),
        ("steps come with explain", explain != decision.steps.is_empty()),
        ("every step saw something", decision.steps.iter().all(|step| !step.saw.is_empty())),
        ("the last step is the reason", last.is_none_or(|step| step.rule == decision.reason)),
        (
            "only the last step of a refusal objected",
            last.is_none_or(|step| step.objected != retries && objections == usize::from(!retries)),
        ),
    ]
}

/// Everything in which `status` differs from the refusal that `error` names.
pub(crate) fn refusal_differs(status: &tonic::Status, error: &Error) -> Vec<String> {
    let details = status.get_error_details();
    let code = match status.code() {
        tonic::Code::InvalidArgument => "INVALID_ARGUMENT".to_owned(),
        other => format!("{other:?}"),
    };
    let (domain, reason) =
        details.error_info().map_or(("", ""), |info| (info.domain.as_str(), info.reason.as_str()));
    let found = details.bad_request().map_or(&[][..], |bad| &bad.field_violations);
    let mut paths: Vec<_> = found.iter().map(|violation| violation.field.as_str()).collect();
    paths.sort_unstable();
    let mut wanted: Vec<_> = error.violations.iter().map(String::as_str).collect();
    wanted.sort_unstable();

    let mut differs = Vec::new();
    let mut check = |what: &str, got: String, wanted: String| {
        if got != wanted {
            differs.push(format!("{what} {got}, expected {wanted}"));
        }
    };
    check("code", code, error.code.clone());
    check("domain", domain.to_owned(), "retryd".to_owned());
    check("reason", reason.to_owned(), error.reason.clone());
    check("violations", format!("{paths:?}"), format!("{wanted:?}"));
    let texts = found.iter().map(|violation| violation.description.as_str());
    if texts.chain([status.message()]).any(|text| text.contains(char::is_control)) {
        differs.push("a control character of the question came back".to_owned());
    }
    differs
}
