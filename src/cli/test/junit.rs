//! The results as JUnit XML, for machines.
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::load::Case;
use super::play::Outcome;
use super::report::Played;

/// One suite for each file.
pub(super) fn xml(played: &[Played<'_>]) -> anyhow::Result<String> {
    let mut report = Report::new("retryd test");
    report.add_test_suites(played.iter().map(suite));
    Ok(report.to_string()?)
}

fn suite(played: &Played<'_>) -> TestSuite {
    let path = played.suite.path.as_str();
    let mut suite = TestSuite::new(path);
    suite.add_test_cases(played.outcomes.iter().map(|(case, outcome)| test(path, case, outcome)));
    suite
}

fn test(path: &str, case: &Case, outcome: &Outcome) -> TestCase {
    let status = if outcome.differences.is_empty() {
        TestCaseStatus::success()
    } else {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        let count = outcome.differences.len();
        let noun = if count == 1 { "value differs" } else { "values differ" };
        status.set_message(format!("{path}:{}: {count} {noun}", case.line));
        status.set_description(outcome.to_string());
        status
    };
    let mut test = TestCase::new(case.name.as_str(), status);
    test.set_classname(path);
    test.extra.insert("file".into(), path.into());
    test.extra.insert("line".into(), case.line.to_string().into());
    test
}
