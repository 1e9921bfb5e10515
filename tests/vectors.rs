//! Plays every file of `tests/vectors` in process, and its portable cases over a real connection.
//! What the files mean stands in `tests/vectors/README.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at what it does not expect"
)]

#[path = "vectors/compare.rs"]
mod compare;
#[path = "vectors/format.rs"]
mod format;
#[path = "vectors/message.rs"]
mod message;
#[path = "vectors/player.rs"]
mod player;
#[path = "vectors/subject.rs"]
mod subject;
#[path = "vectors/subset.rs"]
mod subset;

use format::{Run, Vectors};
use player::play;
use retryd::clock::{Clock, Dice};
use subject::{Server, Subject};

#[tokio::test]
async fn in_process() {
    let mut score = Score::default();
    for vectors in format::load_all() {
        let policies = subject::policies(&vectors.name, vectors.policy());
        for run in vectors.runs() {
            let clock = run.case.clock();
            let dice = run.case.draw.map_or(Dice::fair(), Dice::loaded);
            let subject = Subject::in_process(policies.clone(), clock.clone(), dice);
            score.note(&vectors, &run, play(&subject, &vectors, &run, clock).await);
        }
    }
    score.tell("in process");
}

#[tokio::test]
async fn over_a_connection() {
    let mut score = Score::default();
    for vectors in format::load_all() {
        let shared = Server::start(&vectors).await;
        for run in vectors.runs().filter(|run| run.case.is_portable()) {
            let own = if run.case.alone { Some(Server::start(&vectors).await) } else { None };
            let subject = own.as_ref().unwrap_or(&shared).subject();
            score.note(&vectors, &run, play(&subject, &vectors, &run, Clock::system()).await);
        }
    }
    score.tell("over a connection");
}

/// Counts, and tells every case that failed at once.
#[derive(Default)]
struct Score {
    played: usize,
    failed: Vec<String>,
}

impl Score {
    fn note(&mut self, vectors: &Vectors, run: &Run<'_>, mut differs: Vec<String>) {
        self.played += 1;
        // A step that is repeated differs in the same way each time.
        differs.dedup();
        if !differs.is_empty() {
            let lines = differs.join("\n    ");
            self.failed.push(format!("{}: {}\n    {lines}", vectors.name, run.case.name));
        }
    }

    fn tell(self, how: &str) {
        let Score { played, failed } = self;
        println!("{played} sequences played {how}");
        assert!(
            failed.is_empty(),
            "{} of {played} differ {how}:\n{}",
            failed.len(),
            failed.join("\n")
        );
    }
}
