//! Small panels over time, one a contestant, all with the same axes.
use std::ops::Range;

use plotters::{
    chart::ChartBuilder,
    element::Rectangle,
    series::{AreaSeries, LineSeries},
    style::{Color as _, RGBColor, text_anchor::HPos},
};

use super::{Area, Chart, Drawn, ink, legend, text};
use crate::simulate::{Played, Report, Second};

/// What is shown over time, with the axes that all of its panels share.
pub(in super::super) struct OverTime<'a> {
    report: &'a Report,
    outage_s: Range<f64>,
    seconds: f64,
    top: f64,
    course: Course,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// Attempts that reach the service, and those of use, a second.
    Load,
    /// Of the calls that began in a second, those that succeeded, in a hundred.
    Success,
}

/// A panel on a page, and one of many in a picture.
const PANEL: (u32, u32) = (560, 300);
const TITLE_HEIGHT: u32 = 44;
const LEGEND_HEIGHT: u32 = 56;

impl<'a> OverTime<'a> {
    pub(in super::super) fn load(report: &'a Report) -> OverTime<'a> {
        let attempts = |second: &Second| second.attempts.max(second.calls);
        let most = first_seeds(report).flat_map(|(_, curve)| curve.iter().map(attempts)).max();
        OverTime { top: above(most.unwrap_or_default()), ..OverTime::of(report, Course::Load) }
    }

    pub(in super::super) fn success(report: &'a Report) -> OverTime<'a> {
        OverTime::of(report, Course::Success)
    }

    fn of(report: &'a Report, course: Course) -> OverTime<'a> {
        let seconds = |ms: u64| ms as f64 / 1_000.0;
        let outage = &report.scenario.outage;
        OverTime {
            report,
            outage_s: seconds(outage.from_ms)..seconds(outage.to_ms()),
            seconds: seconds(report.scenario.duration_ms).max(1.0),
            top: 100.0,
            course,
        }
    }

    /// A chart a contestant, in their order.
    pub(in super::super) fn panels(&self) -> anyhow::Result<Vec<Chart>> {
        let panel = |(played, curve): (&Played, &[Second])| {
            let label = format!("{}, {}: {}", played.title, self.measured(), self.told(curve));
            Chart::draw(PANEL, label, |area| self.draw(area, curve))
        };
        first_seeds(self.report).map(panel).collect()
    }

    /// All panels in one chart, with their names.
    pub(in super::super) fn picture(&self, columns: u32) -> anyhow::Result<Chart> {
        let panels: Vec<_> = first_seeds(self.report).collect();
        let rows = u32::try_from(panels.len())?.div_ceil(columns);
        let height = PANEL.1 + TITLE_HEIGHT;
        let size = (columns * PANEL.0, rows * height + LEGEND_HEIGHT);
        let each: Vec<String> = panels
            .iter()
            .map(|(played, curve)| format!("{}: {}", played.title, self.told(curve)))
            .collect();
        let label = format!("{}. {}.", self.measured(), each.join("; "));
        Chart::draw(size, label, |area| {
            let (legend, panels_area) = area.split_vertically(LEGEND_HEIGHT);
            self.legend(&legend)?;
            let places = panels_area.split_evenly((rows as usize, columns as usize));
            for (place, (played, curve)) in places.iter().zip(&panels) {
                let place = place.titled(&played.title, text(HPos::Center))?;
                self.draw(&place, curve)?;
            }
            Ok(())
        })
    }

    fn draw(&self, area: &Area<'_>, curve: &[Second]) -> Drawn {
        let mut chart = ChartBuilder::on(area)
            .margin_top(12)
            .margin_right(40)
            .x_label_area_size(40)
            .y_label_area_size(78)
            .build_cartesian_2d(0.0..self.seconds, 0.0..self.top)?;
        let Range { start, end } = self.outage_s;
        let outage = Rectangle::new([(start, 0.0), (end, self.top)], ink::CAUSE.filled());
        chart.draw_series([outage])?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(7)
            .y_labels(4)
            .bold_line_style(ink::RULE)
            .light_line_style(ink::RULE.mix(0.0))
            .axis_style(ink::TEXT)
            .label_style(text(HPos::Center))
            .x_label_formatter(&|second| format!("{second:.0} s"))
            .y_label_formatter(&|value| self.value(*value))
            .draw()?;
        let filled = |of: Height| {
            let edge = ink::GOOD.stroke_width(3);
            AreaSeries::new(points(curve, of), 0.0, ink::GOOD.mix(0.3)).border_style(edge)
        };
        match self.course {
            Course::Load => {
                chart.draw_series(filled(|second| Some(second.goodput as f64)))?;
                let calls = points(curve, |second| Some(second.calls as f64));
                chart.draw_series(LineSeries::new(calls, ink::WANTED.stroke_width(2)))?;
                let attempts = points(curve, |second| Some(second.attempts as f64));
                chart.draw_series(LineSeries::new(attempts, ink::LOAD.stroke_width(3)))?;
            }
            Course::Success => {
                chart.draw_series(filled(success_percent))?;
            }
        }
        Ok(())
    }

    fn legend(&self, area: &Area<'_>) -> Drawn {
        let entries: &[(&str, RGBColor)] = match self.course {
            Course::Load => &[
                ("attempts that reach the service", ink::LOAD),
                ("calls that begin", ink::WANTED),
                ("attempts answered well, in time", ink::GOOD),
                ("outage", ink::CAUSE),
            ],
            Course::Success => {
                &[("calls that succeed, by when they began", ink::GOOD), ("outage", ink::CAUSE)]
            }
        };
        legend(area, entries)
    }

    fn value(&self, value: f64) -> String {
        match self.course {
            Course::Load => format!("{value:.0}"),
            Course::Success => format!("{value:.0} %"),
        }
    }

    fn measured(&self) -> &'static str {
        match self.course {
            Course::Load => "attempts a second over time",
            Course::Success => "calls that succeed over time",
        }
    }

    /// The height of the curve in the outage and at the end, in words.
    fn told(&self, curve: &[Second]) -> String {
        let begun = self.seconds;
        let seconds = |from: f64, to: f64| {
            let within = move |place: usize| from <= place as f64 && (place as f64) < to;
            curve.iter().enumerate().filter(move |(place, _)| within(*place)).map(|(_, s)| s)
        };
        let mean = |from: f64, to: f64, of: fn(&Second) -> u64| {
            let count = seconds(from, to).count().max(1) as f64;
            seconds(from, to).map(of).sum::<u64>() as f64 / count
        };
        let last = (begun - 10.0).max(self.outage_s.end);
        match self.course {
            Course::Load => format!(
                "{:.0} in the outage; {:.0} at the end, {:.0} of them answered well",
                mean(self.outage_s.start, self.outage_s.end, |s| s.attempts),
                mean(last, begun, |s| s.attempts),
                mean(last, begun, |s| s.goodput),
            ),
            Course::Success => {
                let percent = |from, to| {
                    let calls = mean(from, to, |s| s.calls);
                    if calls == 0.0 { 0.0 } else { 100.0 * mean(from, to, |s| s.succeeded) / calls }
                };
                format!(
                    "{:.0} % in the outage, {:.0} % at the end",
                    percent(self.outage_s.start, self.outage_s.end),
                    percent(last, begun),
                )
            }
        }
    }
}

/// What is drawn of each contestant: the same calls for all of them.
fn first_seeds(report: &Report) -> impl Iterator<Item = (&Played, &[Second])> {
    report.contestants.iter().map(|played| {
        let curve = played.outcomes.first().map_or(&[][..], |outcome| &outcome.curve);
        // What ends after the last call has begun is no part of the picture.
        let begun = curve.iter().rposition(|second| 0 < second.calls).map_or(0, |last| last + 1);
        (played, curve.get(..begun).unwrap_or_default())
    })
}

/// How high a second is drawn, if at all.
type Height = fn(&Second) -> Option<f64>;

/// In the middle of each second.
fn points(curve: &[Second], height: Height) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
    let point = move |(second, row)| Some((second as f64 + 0.5, height(row)?));
    curve.iter().enumerate().filter_map(point)
}

/// Nothing where nobody called.
fn success_percent(second: &Second) -> Option<f64> {
    (0 < second.calls).then(|| 100.0 * second.succeeded as f64 / second.calls as f64)
}

/// Somewhat more.
fn above(most: u64) -> f64 {
    (most as f64 * 1.05).max(1.0)
}
