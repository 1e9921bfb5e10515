//! What h2load says when it has ended.

#[derive(Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) calls_per_s: f64,
    /// Of an answer, framing included, on the average.
    pub(crate) bytes: f64,
}

/// Nothing unless each of the `calls` succeeded with a status of 2xx: then the text says what went wrong.
pub(crate) fn read(text: &str, calls: usize) -> Option<Told> {
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let requests = format!(
        " {calls} total, {calls} started, {calls} done, {calls} succeeded, 0 failed, 0 errored, 0 timeout"
    );
    (line("requests:")? == requests).then_some(())?;
    (line("status codes:")? == format!(" {calls} 2xx, 0 3xx, 0 4xx, 0 5xx")).then_some(())?;
    let (_, pace) = line("finished in ")?.split_once(", ")?;
    let (_, data) = line("traffic:")?.rsplit_once(", ")?;
    let (_, data) = data.strip_suffix(") data")?.split_once('(')?;
    Some(Told {
        calls_per_s: pace.split_once(" req/s")?.0.parse().ok()?,
        bytes: data.parse::<f64>().ok()? / calls as f64,
    })
}
