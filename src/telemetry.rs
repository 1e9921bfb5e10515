//! Logs: to stderr, one line an event, never one per decision. Nobody waits for whoever reads them.
mod lines;
mod seldom;

pub use lines::Log;
pub use seldom::Seldom;

use std::{
    fs::File,
    io::{self, IsTerminal as _},
    os::fd::AsFd as _,
    panic,
};

use prometheus_client::metrics::counter::Counter;
use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, filter::LevelFilter, fmt::MakeWriter, util::SubscriberInitExt as _,
};

/// What is logged unless somebody says otherwise.
pub const DEFAULT_FILTER: &str = "info";

/// Libraries that warn once a connection, of what a bad client does or how a store fails. Both are
/// told in other ways.
const QUIET: &str = "h2=off,redis=off";

/// Starts logging: for people in a terminal, JSON otherwise. What is logged until the [`Log`] is
/// dropped is written; lines for which there is no room count as `dropped`.
///
/// # Errors
///
/// If `filter` cannot be read, if the system refuses a thread, or if logging was started before.
pub fn init(filter: &str, dropped: Counter) -> Result<Log, TelemetryError> {
    let form = if io::stderr().is_terminal() { Form::Human } else { Form::Json };
    // By a descriptor of its own: the library's would be locked while its reader stands still.
    let out = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let lines = lines::Lines::start(out, dropped)?;
    let log = Log(lines.clone());
    let subscriber = subscriber(filter, form, move || lines.clone())?;
    subscriber.try_init().map_err(|_| TelemetryError::AlreadyStarted)?;
    // A panic is an event like any other: one line, in the form of the others.
    panic::set_hook(Box::new(|panic| tracing::error!(%panic, "panicked")));
    Ok(log)
}

/// Why logging could not start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter cannot be read.
    #[error(
        "cannot read the log filter `{filter}`: {cause}; write a level (`error`, `warn`, `info`, `debug`, `trace`, `off`) or `target=level`, separated by commas"
    )]
    BadFilter {
        /// As it was given.
        filter: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Somebody else logs already.
    #[error("logging was started before")]
    AlreadyStarted,
    /// The system has no thread or no descriptor for it.
    #[error("cannot start the log: {0}")]
    Refused(#[from] io::Error),
}

#[derive(Clone, Copy)]
enum Form {
    Human,
    Json,
}

fn subscriber<W>(
    filter: &str,
    form: Form,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, TelemetryError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = parse(filter)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        // A line that cannot be written is lost. Saying so on stderr would panic there.
        .log_internal_errors(false);
    Ok(match form {
        Form::Human => Box::new(lines.finish()),
        Form::Json => Box::new(lines.json().flatten_event(true).with_current_span(false).finish()),
    })
}

fn parse(filter: &str) -> Result<EnvFilter, TelemetryError> {
    let bad = |cause: String| TelemetryError::BadFilter { filter: filter.to_owned(), cause };
    for directive in filter.split(',').map(str::trim) {
        // A lone word would be taken for a target: `ifno` would switch the log off.
        let is_level = !directive.is_empty() && directive.parse::<LevelFilter>().is_ok();
        if !is_level && !directive.contains(['=', '[']) {
            return Err(bad(format!("`{directive}` is no level")));
        }
    }
    // A filter that names the target itself stands later, and wins.
    EnvFilter::try_new(format!("{QUIET},{filter}")).map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn filters() {
        for good in ["info", "off", "warn,retryd=debug", "retryd::server=trace", "WARN"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in ["", "ifno", "info,", "retryd", "retryd=loud", "a=b=c", "info,[=debug"] {
            let error = parse(bad).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot read the log filter `{bad}`: ")), "{error}");
        }
    }

    #[test]
    fn what_bad_clients_and_stores_do_is_not_logged_unless_asked_for() {
        let quiet = |filter: &str, library: &str| {
            let filter = parse(filter).unwrap().to_string();
            filter.split(',').any(|directive| directive == format!("{library}=off"))
        };
        for library in ["h2", "redis"] {
            assert!(quiet("info", library));
            assert!(quiet("debug,retryd=trace", library));
            assert!(!quiet(&format!("info,{library}=debug"), library));
        }
    }

    #[test]
    fn one_event_is_one_line_in_both_forms() {
        let human = logged(Form::Human);
        assert_eq!(human.lines().count(), 1, "{human}");
        assert!(human.contains("asked to stop") && human.contains("SIGTERM"), "{human}");

        let json = logged(Form::Json);
        assert_eq!(json.lines().count(), 1, "{json}");
        let line: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(line["message"], "asked to\nstop");
        assert_eq!(line["signal"], "SIGTERM");
        assert_eq!(line["level"], "INFO");
    }

    fn logged(form: Form) -> String {
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&written);
        let subscriber = subscriber("info", form, move || Sink(Arc::clone(&sink))).unwrap();
        tracing::subscriber::with_default(subscriber, || match form {
            Form::Human => tracing::info!(signal = "SIGTERM", "asked to stop"),
            Form::Json => tracing::info!(signal = "SIGTERM", "asked to\nstop"),
        });
        String::from_utf8(written.lock().unwrap().clone()).unwrap()
    }

    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
