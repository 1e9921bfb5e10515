//! One measure of all contestants, a row each: the mean, and from the lowest seed to the highest.
use plotters::{
    chart::ChartBuilder,
    element::{Circle, PathElement},
    style::{Color as _, text_anchor::HPos},
};

use super::super::figures::{Measure, Span};
use super::{Area, Chart, Drawn, ink, text};
use crate::simulate::Report;

const WIDTH: i32 = 1_240;
const ROW: i32 = 50;
/// Left and right of the scale.
const NAMES: i32 = 430;
const FIGURES: i32 = 400;
const SCALE: i32 = 44;

struct Row<'a> {
    title: &'a str,
    span: Option<Span>,
    told: String,
}

/// As wide as the largest figure.
pub(in super::super) fn spread(measure: &Measure, report: &Report) -> anyhow::Result<Chart> {
    let rows: Vec<Row<'_>> = report
        .contestants
        .iter()
        .map(|played| Row {
            title: &played.title,
            span: measure.span(played, report),
            told: measure.figure(played, report).to_string(),
        })
        .collect();
    let each: Vec<String> = rows.iter().map(|row| format!("{} {}", row.title, row.told)).collect();
    let label = format!("{}: {}", measure.text, each.join("; "));
    let height = ROW * i32::try_from(rows.len())? + SCALE;
    let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
    Chart::draw(size, label, |area| draw(area, &rows, measure.unit))
}

fn draw(area: &Area<'_>, rows: &[Row<'_>], unit: &str) -> Drawn {
    let highs = rows.iter().filter_map(|row| row.span).map(|span| span.high);
    let top = highs.fold(0.0, f64::max).max(f64::EPSILON) * 1.05;
    let (names, rest) = area.split_horizontally(NAMES);
    let (scale, figures) = rest.split_horizontally(WIDTH - NAMES - FIGURES);
    let mut chart = ChartBuilder::on(&scale)
        .margin_left(10)
        .margin_right(10)
        .x_label_area_size(SCALE)
        .build_cartesian_2d(0.0..top, rows.len() as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_labels(5)
        .x_label_formatter(&|figure| format!("{}{unit}", (figure * 100.0).round() / 100.0))
        .bold_line_style(ink::RULE)
        .light_line_style(ink::RULE.mix(0.0))
        .axis_style(ink::RULE)
        .label_style(text(HPos::Center))
        .draw()?;

    let mut middle = ROW / 2;
    let mut y = 0.5;
    for row in rows {
        names.draw_text(row.title, &text(HPos::Right), (NAMES - 10, middle))?;
        figures.draw_text(&row.told, &text(HPos::Left), (6, middle))?;
        if let Some(Span { mean, low, high }) = row.span {
            let range =
                PathElement::new([(low, y), (high, y)], ink::GOOD.mix(0.4).stroke_width(12));
            chart.draw_series([range])?;
            chart.draw_series([Circle::new((mean, y), 8, ink::GOOD.filled())])?;
        }
        middle += ROW;
        y += 1.0;
    }
    Ok(())
}
