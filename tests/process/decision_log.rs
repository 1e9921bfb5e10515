//! The decision log: what is in it, its rotation, and disks and readers that take nothing.
use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use retryd::decision_log::{Line, Word};
use retryd::wire::pb::{self, RetryContext, Usage};

use crate::support::{DECIDE, Process, SOON, call, connection, context, encoded, grpc};

const WRITTEN: &str = "retryd_decision_log_lines_total{outcome=\"written\"}";
const DROPPED: &str = "retryd_decision_log_lines_total{outcome=\"dropped\"}";
const FAILED: &str = "retryd_decision_log_lines_total{outcome=\"failed\"}";

/// A path in the tests' own folder where nothing is.
pub(crate) fn fresh(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::remove_file(&path).ok();
    path
}

fn denied(tenant: &str) -> RetryContext {
    RetryContext { body_replayable: false, ..context(tenant) }
}

async fn ask(process: &Process, contexts: impl IntoIterator<Item = RetryContext>) {
    let mut client = process.client().await;
    for context in contexts {
        client.decide(context).await.unwrap();
    }
}

/// Waits until a counter has reached `least`.
async fn reaches(process: &Process, metric: &str, least: u64) -> u64 {
    let end = Instant::now() + SOON;
    loop {
        let count = process.metric(metric).await;
        if least <= count {
            return count;
        }
        assert!(Instant::now() < end, "{metric} is {count}, not {least}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn lines(path: &PathBuf) -> Vec<Line> {
    let text = fs::read(path).unwrap();
    assert!(text.is_empty() || text.ends_with(b"\n"));
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Line::read(line).unwrap()).collect()
}

#[tokio::test]
async fn a_line_holds_what_was_asked_drawn_seen_and_answered() {
    let path = fresh("decisions.jsonl");
    let log = path.to_str().unwrap();
    let process = Process::start(&["--decision-log", log, "--decision-log-sample", "100%"]);
    let hint = pb::ServerHint {
        // No date, and JSON on its own would let two of these ends of a line stand.
        retry_after_header: Some("soon\n\u{85}\u{2028}{\"x\":1}".to_owned()),
        ..Default::default()
    };
    let asked = [
        RetryContext { hint: Some(hint), explain: true, ..context("é \u{2029}\"shop\"") },
        RetryContext {
            usage: Some(Usage { requests: 1_000, ..Default::default() }),
            call_id: "c".to_owned(),
            evidence: 99,
            ..denied("t")
        },
        RetryContext { dry_run: true, ..context("t") },
    ];
    let mut client = process.client().await;
    let mut answers = Vec::new();
    for context in &asked {
        answers.push(client.decide(context.clone()).await.unwrap().into_inner());
    }
    // On a stream, too.
    let streamed = tokio_stream::iter([context("streamed")]);
    client.decide_stream(streamed).await.unwrap().into_inner().message().await.unwrap().unwrap();
    reaches(&process, WRITTEN, 4).await;

    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 4);
    assert!(!text.contains(['\u{85}', '\u{2028}', '\u{2029}']), "{text}");
    let lines = lines(&path);
    for ((line, asked), answer) in lines.iter().zip(&asked).zip(answers) {
        assert_eq!(line.context, *asked);
        let answer = pb::Decision { detail: String::new(), steps: Vec::new(), ..answer };
        assert_eq!(line.decision, answer);
        assert!(1_700_000_000_000 < line.unix_ms, "{}", line.unix_ms);
        assert_eq!(line.budgets.by, "per-tenant");
        assert_eq!(line.budgets.asked.len(), 1);
        assert_eq!(line.budgets.said, Word::Covered);
    }
    assert_eq!(lines[0].budgets.available, 10, "before it pays");
    assert_eq!(lines[1].budgets.available, 210, "with what was reported");
    assert_eq!(lines[3].context.tenant, "streamed");
    assert_ne!(lines[0].draw, lines[1].draw);
    assert_eq!(process.metric(DROPPED).await + process.metric(FAILED).await, 0);
}

#[tokio::test]
async fn denials_are_always_logged_and_retries_by_chance() {
    let path = fresh("denials.jsonl");
    let log = path.to_str().unwrap();
    let process = Process::start(&["--decision-log", log, "--decision-log-sample", "0"]);
    let both = (0..200).flat_map(|n| [context(&format!("t{n}")), denied("t")]);
    ask(&process, both).await;
    assert_eq!(reaches(&process, WRITTEN, 200).await, 200);
    let logged = lines(&path);
    let mut said = logged.iter().map(|line| line.decision.verdict());
    assert!(said.all(|verdict| verdict == pb::Verdict::DoNotRetry));

    let path = fresh("half.jsonl");
    let log = path.to_str().unwrap();
    let process = Process::start(&["--decision-log", log, "--decision-log-sample", "0.5"]);
    // In order: when the last is written, so are all before it.
    let retries = (0..400).map(|n| context(&format!("t{n}")));
    ask(&process, retries.chain([denied("last")])).await;
    let end = Instant::now() + SOON;
    while !lines(&path).iter().any(|line| line.context.tenant == "last") {
        assert!(Instant::now() < end);
        thread::sleep(Duration::from_millis(10));
    }
    let logged = lines(&path).len() - 1;
    // Ten standard deviations.
    assert!((100..300).contains(&logged), "{logged} of 400");
}

#[tokio::test]
async fn a_rotated_file_is_left_at_sighup_and_another_one_begun() {
    let (path, old) = (fresh("rotated.jsonl"), fresh("rotated.jsonl.1"));
    let process = Process::start(&["--decision-log", path.to_str().unwrap()]);
    ask(&process, [denied("before")]).await;
    reaches(&process, WRITTEN, 1).await;
    fs::rename(&path, &old).unwrap();
    ask(&process, [denied("between")]).await;
    reaches(&process, WRITTEN, 2).await;
    assert!(!path.exists(), "the renamed file is written until the signal");
    process.signal("HUP");
    process.logged("the decision log is open anew");
    ask(&process, [denied("after")]).await;
    reaches(&process, WRITTEN, 3).await;
    let tenants = |path| lines(path).into_iter().map(|line| line.context.tenant).collect();
    let (old, new): (Vec<_>, Vec<_>) = (tenants(&old), tenants(&path));
    assert_eq!(
        (old, new),
        (vec!["before".to_owned(), "between".to_owned()], vec!["after".to_owned()])
    );
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o007,
        0,
        "others may read names"
    );
}

#[tokio::test]
async fn a_name_that_cannot_be_opened_anew_leaves_the_old_file() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("gone");
    fs::remove_dir_all(&folder).ok();
    fs::create_dir(&folder).unwrap();
    let path = folder.join("log");
    let process = Process::start(&["--decision-log", path.to_str().unwrap()]);
    fs::remove_dir_all(&folder).unwrap();
    process.signal("HUP");
    process.logged("cannot be opened anew");
    ask(&process, [denied("t")]).await;
    reaches(&process, WRITTEN, 1).await;
}

#[tokio::test]
async fn a_full_disk_is_counted_told_once_and_hurts_nobody() {
    let mut process = Process::start(&["--decision-log", "/dev/full", "--drain-delay", "0s"]);
    for round in 1..=5 {
        ask(&process, [denied("t"), context("t")]).await;
        reaches(&process, FAILED, round).await;
    }
    assert_eq!(process.metric(WRITTEN).await, 0);
    assert_eq!(process.lines_with("the decision log cannot be written").len(), 1);
    process.answers().await;
    process.signal("TERM");
    assert_eq!(process.exit(SOON).code(), Some(0));
}

#[tokio::test]
async fn a_closed_pipe_is_counted_and_hurts_nobody() {
    let (reader, writer) = std::io::pipe().unwrap();
    let process = Process::start_onto(&["--decision-log", "-"], writer);
    ask(&process, [denied("read")]).await;
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(Line::read(line.as_bytes()).unwrap().context.tenant, "read");
    drop(reader);
    for round in 1..=3 {
        ask(&process, [denied("t")]).await;
        reaches(&process, FAILED, round).await;
    }
    assert_eq!(process.lines_with("the decision log cannot be written").len(), 1);
    process.answers().await;
}

/// More denials than a pipe and the buffer hold.
const STORM: u64 = 12_000;

async fn storm(process: &Process) {
    let mut send = connection(process.calls).await;
    let question = encoded(&denied("storm"));
    for _ in 0..STORM / 100 {
        let calls = (0..100).map(|_| {
            let (mut send, question) = (send.clone(), question.clone());
            async move { call(&mut send, grpc(DECIDE), question).await.unwrap() }
        });
        for ending in futures_util::future::join_all(calls).await {
            assert_eq!(ending.code, Some(tonic::Code::Ok), "{ending:?}");
        }
    }
    call(&mut send, grpc(DECIDE), question).await.unwrap();
}

#[tokio::test]
async fn a_reader_that_does_not_read_costs_lines_and_no_answer() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let arguments = ["--decision-log", "-", "--drain-delay", "0s"];
    let mut process = Process::start_onto(&arguments, writer);
    storm(&process).await;
    let dropped = process.metric(DROPPED).await;
    assert!(0 < dropped && dropped < STORM, "{dropped}");
    assert_eq!(process.metric(FAILED).await, 0);
    process.answers().await;
    // Nobody reads at the end either.
    process.signal("TERM");
    assert_eq!(process.exit(SOON).code(), Some(0));
    process.logged("the decision log was not written to its end in time");
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert!(read.starts_with(b"{\"unixMs\":"));
}

#[tokio::test]
async fn a_reader_that_comes_late_gets_all_that_was_not_dropped() {
    let path = fresh("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let log = path.to_str().unwrap();
    let mut process = Process::start(&["--decision-log", log, "--drain-delay", "0s"]);
    storm(&process).await;
    let dropped = process.metric(DROPPED).await;
    assert!(0 < dropped && dropped < STORM, "{dropped}");
    let file = File::open(&path).unwrap();
    let reader = thread::spawn(move || {
        let mut read = 0;
        for line in BufReader::new(file).lines() {
            Line::read(line.unwrap().as_bytes()).unwrap();
            read += 1;
        }
        read
    });
    reaches(&process, WRITTEN, STORM + 1 - dropped).await;
    // What still waits at the end is written before it.
    ask(&process, (0..50).map(|_| denied("last"))).await;
    process.signal("TERM");
    assert_eq!(process.exit(SOON).code(), Some(0));
    assert_eq!(reader.join().unwrap(), STORM + 1 - dropped + 50);
}

#[tokio::test]
async fn without_the_option_nothing_of_it_shows() {
    let process = Process::start(&[]);
    ask(&process, [denied("t")]).await;
    assert!(!process.page("/metrics").await.contains("retryd_decision_log_lines_total"));
}
