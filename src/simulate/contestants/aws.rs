//! The standard retry mode of the AWS SDKs.
use super::{Contestant, Entry, Failed, Failure, Succeeded, clients, full_jitter_us};

pub(super) const ENTRY: Entry = Entry {
    name: "aws-standard",
    title: "AWS standard mode, per client",
    source: "AWS SDKs, standard mode without AWS_NEW_RETRIES_2026: 3 attempts, a random wait up to 1 s, \
             then 2 s, 20 s at most; a retry quota of 500, of which a retry costs 5, after a timeout 10, \
             and a success gives back what its last retry cost, or 1 \
             (https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html).",
    enter: |scenario, _, _| Box::new(Aws { quotas: vec![QUOTA; clients(scenario)] }),
};

const ATTEMPTS_MAX: u32 = 3;
const BASE_US: u64 = 1_000_000;
const MAX_US: u64 = 20_000_000;
const QUOTA: u32 = 500;
const NO_RETRY: u32 = 1;

struct Aws {
    quotas: Vec<u32>,
}

fn cost(failure: Failure) -> u32 {
    match failure {
        Failure::Unavailable => 5,
        Failure::TimedOut => 10,
    }
}

impl Contestant for Aws {
    fn failed(&mut self, failed: &Failed) -> Option<u64> {
        if ATTEMPTS_MAX <= failed.attempts {
            return None;
        }
        let quota = self.quotas.get_mut(failed.client)?;
        *quota = quota.checked_sub(cost(failed.failure))?;
        Some(full_jitter_us(BASE_US, failed.attempts - 1, MAX_US, failed.draw))
    }

    fn succeeded(&mut self, succeeded: &Succeeded) {
        if let Some(quota) = self.quotas.get_mut(succeeded.client) {
            *quota = (*quota + succeeded.last_failure.map_or(NO_RETRY, cost)).min(QUOTA);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FAILED, SUCCEEDED};
    use super::*;

    #[test]
    fn the_quota_pays_by_the_failure_and_successes_fill_it() {
        let mut aws = Aws { quotas: vec![QUOTA; 2] };
        let granted = (0..101).filter(|_| aws.failed(&FAILED).is_some()).count();
        assert_eq!((granted, aws.quotas[0]), (100, 0));
        let timed_out = Failed { client: 1, failure: Failure::TimedOut, ..FAILED };
        let granted = (0..51).filter(|_| aws.failed(&timed_out).is_some()).count();
        assert_eq!((granted, aws.quotas[1]), (50, 0));
        aws.succeeded(&SUCCEEDED);
        assert_eq!(aws.quotas[0], 1);
        let retried = Succeeded { attempts: 2, last_failure: Some(Failure::TimedOut), ..SUCCEEDED };
        aws.succeeded(&retried);
        assert_eq!(aws.quotas[0], 11);
        (0..100).for_each(|_| aws.succeeded(&retried));
        assert_eq!(aws.quotas[0], QUOTA);
    }

    #[test]
    fn waits_begin_at_a_second_and_the_third_attempt_is_the_last() {
        let mut aws = Aws { quotas: vec![QUOTA] };
        let waits = [1, 2, 3].map(|attempts| aws.failed(&Failed { attempts, ..FAILED }));
        assert_eq!(waits, [Some(999_999), Some(1_999_999), None]);
        assert_eq!(aws.quotas, [490], "what is not repeated costs nothing");
    }
}
