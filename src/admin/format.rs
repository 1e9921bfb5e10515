//! The formats of `/metrics`.
use prometheus_client::encoding::prometheus_text;

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format 0.0.4, for what is older.
    Text,
}

impl Format {
    /// By an `Accept` header: the older format for those alone who take no OpenMetrics, or who ask for
    /// the older one and do not name OpenMetrics.
    pub(super) fn wanted(accept: &str) -> Format {
        match (takes(accept, "application/openmetrics-text"), takes(accept, "text/plain")) {
            (Some(false), _) | (None, Some(true)) => Format::Text,
            (Some(true), _) | (None, Some(false) | None) => Format::OpenMetrics,
        }
    }

    /// Its media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// Whether a media type is named, and with a weight above zero.
fn takes(accept: &str, media_type: &str) -> Option<bool> {
    let weights = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next()?.eq_ignore_ascii_case(media_type);
        is_named.then(|| parts.find_map(weight).unwrap_or(1.0))
    });
    weights.map(|weight| 0.0 < weight).reduce(|one, other| one || other)
}

fn weight(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    name.eq_ignore_ascii_case("q").then(|| value.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_of_zero_is_a_no() {
        for (accept, expected) in [
            ("", Format::OpenMetrics),
            ("*/*", Format::OpenMetrics),
            ("text/plain", Format::Text),
            ("text/html, Text/Plain; version=0.0.4; q=0.5", Format::Text),
            ("application/openmetrics-text; version=1.0.0; q=0.5, text/plain", Format::OpenMetrics),
            ("application/openmetrics-text;q=0", Format::Text),
            ("application/openmetrics-text; version=1.0.0; Q=0.000, */*", Format::Text),
            ("application/openmetrics-text;q=0, application/openmetrics-text", Format::OpenMetrics),
            ("text/plain;q=0", Format::OpenMetrics),
        ] {
            assert_eq!(Format::wanted(accept), expected, "{accept}");
        }
    }
}
