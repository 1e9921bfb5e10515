//! One page that says and shows everything. It loads nothing, and has no script.
use askama::Template;

use super::{
    charts::{self, Chart, OverTime},
    figures::{Figure, MEASURES, Measure},
    grid::{self, Dimension, Point, seconds},
    parameters::{cause, parameters},
};
use crate::console;
use crate::simulate::{Cell, Report, Scenario};

#[derive(Template)]
#[template(path = "simulate.html")]
struct Page<'a> {
    scenario: &'a Scenario,
    version: &'static str,
    styles: String,
    capacity: u64,
    outage_from: String,
    outage_to: String,
    cause: String,
    recovered_for: String,
    seeds: usize,
    first_seed: u64,
    measures: &'static [Measure],
    rows: Vec<Row<'a>>,
    load: Vec<Titled<'a>>,
    success: Vec<Titled<'a>>,
    spreads: Vec<Titled<'a>>,
    grid: Option<Grid<'a>>,
    sources: Vec<Source<'a>>,
    parameters: Vec<(&'static str, String)>,
}

struct Row<'a> {
    title: &'a str,
    figures: Vec<Figure>,
}

struct Titled<'a> {
    title: &'a str,
    chart: Chart,
}

struct Grid<'a> {
    chart: Chart,
    dimensions: Vec<Dimension>,
    tables: [Table; 3],
    points: Vec<Point<'a>>,
}

struct Table {
    caption: &'static str,
    is_recovery: bool,
    write: fn(&Cell) -> String,
}

struct Source<'a> {
    title: &'a str,
    words: Vec<Word<'a>>,
}

/// What has no space in it. An address is a link, but for the punctuation around it.
struct Word<'a> {
    before: &'a str,
    text: &'a str,
    after: &'a str,
    is_address: bool,
}

/// The whole document.
pub(super) fn page(report: &Report) -> anyhow::Result<String> {
    let scenario = &report.scenario;
    let service = &scenario.service;
    let capacity = u64::from(service.workers) * 1_000 / service.work_ms.max(1);
    let contestants = &report.contestants;
    let titled = |panels: Vec<Chart>| {
        let titles = contestants.iter().map(|played| played.title.as_str());
        titles.zip(panels).map(|(title, chart)| Titled { title, chart }).collect()
    };
    let spread = |measure: &'static Measure| {
        let chart = charts::spread(measure, report)?;
        anyhow::Ok(Titled { title: measure.text, chart })
    };
    let page = Page {
        scenario,
        version: env!("CARGO_PKG_VERSION"),
        styles: [console::STYLE, charts::STYLE, include_str!("pages/simulate.css")].concat(),
        capacity,
        outage_from: seconds(scenario.outage.from_ms),
        outage_to: seconds(scenario.outage.to_ms()),
        cause: cause(&scenario.outage),
        recovered_for: seconds(scenario.recovered.for_ms),
        seeds: report.seeds.len(),
        first_seed: report.seeds.first().copied().unwrap_or_default(),
        measures: &MEASURES,
        rows: contestants
            .iter()
            .map(|played| Row {
                title: &played.title,
                figures: MEASURES.iter().map(|measure| measure.figure(played, report)).collect(),
            })
            .collect(),
        load: titled(OverTime::load(report).panels()?),
        success: titled(OverTime::success(report).panels()?),
        spreads: MEASURES
            .iter()
            .filter(|measure| measure.is_charted)
            .map(spread)
            .collect::<Result<_, _>>()?,
        grid: grid(report)?,
        sources: contestants
            .iter()
            .map(|played| Source {
                title: &played.title,
                words: played.source.split_whitespace().map(word).collect(),
            })
            .collect(),
        parameters: parameters(report),
    };
    Ok(page.render()?)
}

fn grid(report: &Report) -> anyhow::Result<Option<Grid<'_>>> {
    let points = grid::points(report);
    if points.is_empty() {
        return Ok(None);
    }
    Ok(Some(Grid {
        chart: charts::recoveries(report)?,
        dimensions: grid::dimensions(&points),
        tables: [
            Table {
                caption: "Time to recover, and calls that succeed",
                is_recovery: true,
                write: |cell| format!("{}, {:.1} %", grid::recovery(cell), 100.0 * cell.success),
            },
            Table {
                caption: "Attempts a call, and retries made of those that one exact budget would grant",
                is_recovery: false,
                write: |cell| match cell.accuracy {
                    Some(accuracy) => format!("{:.2}, {accuracy:.2}", cell.amplification),
                    None => format!("{:.2}", cell.amplification),
                },
            },
            Table {
                caption: "Operations done again, although they are not idempotent and have no key",
                is_recovery: false,
                write: |cell| cell.processed_again.to_string(),
            },
        ],
        points,
    }))
}

fn word(whole: &str) -> Word<'_> {
    let inner = whole.trim_start_matches('(');
    if !inner.starts_with("https://") {
        return Word { before: "", text: whole, after: "", is_address: false };
    }
    let text = inner.trim_end_matches(['.', ',', ';', ')']);
    let (before, _) = whole.split_at(whole.len() - inner.len());
    let (_, after) = inner.split_at(text.len());
    Word { before, text, after, is_address: true }
}
