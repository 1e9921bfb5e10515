//! The grid: whether, and how fast, each contestant recovers with other parameters.
use plotters::{
    element::Rectangle,
    style::{Color as _, text_anchor::HPos},
};

use super::super::grid::{Dimension, Point, dimensions, points, recovery, without_keys_apart};
use super::{Area, Chart, Drawn, ink, text};
use crate::simulate::Report;

const NAMES: i32 = 430;
const COLUMN: i32 = 84;
const ROW: i32 = 44;

/// A row a contestant, a column a point of the grid; above them, what the points differ in.
pub(in super::super) fn recoveries(report: &Report) -> anyhow::Result<Chart> {
    let points = without_keys_apart(&points(report));
    let dimensions = dimensions(&points);
    let rows = i32::try_from(dimensions.len() + report.contestants.len())?;
    let width = NAMES + COLUMN * i32::try_from(points.len())?;
    let each: Vec<String> = points.iter().map(|it| told(it, &dimensions, report)).collect();
    let label = format!("Time to recover with other parameters. {}", each.join("; "));
    Chart::draw((width.unsigned_abs(), (ROW * rows).unsigned_abs()), label, |area| {
        draw(area, report, &points, &dimensions)
    })
}

fn draw(area: &Area<'_>, report: &Report, points: &[Point<'_>], dimensions: &[Dimension]) -> Drawn {
    let names = dimensions.iter().map(|dimension| dimension.text);
    let titles = report.contestants.iter().map(|played| played.title.as_str());
    let mut middle = ROW / 2;
    for name in names.chain(titles) {
        area.draw_text(name, &text(HPos::Right), (NAMES - 10, middle))?;
        middle += ROW;
    }
    let mut x = NAMES;
    for point in points {
        let center = x + COLUMN / 2;
        let mut middle = ROW / 2;
        for dimension in dimensions {
            area.draw_text(&(dimension.of)(point.at), &text(HPos::Center), (center, middle))?;
            middle += ROW;
        }
        for cell in point.cells {
            let (ink, told) = match cell.recovery_s {
                Some(_) => (ink::GOOD, recovery(cell)),
                None => (ink::LOAD, "down".to_owned()),
            };
            let half = ROW / 2 - 2;
            let corners = [(x + 2, middle - half), (x + COLUMN - 2, middle + half)];
            area.draw(&Rectangle::new(corners, ink.mix(0.3).filled()))?;
            area.draw_text(&told, &text(HPos::Center), (center, middle))?;
            middle += ROW;
        }
        x += COLUMN;
    }
    Ok(())
}

/// One point in words.
fn told(point: &Point<'_>, dimensions: &[Dimension], report: &Report) -> String {
    let at: Vec<String> = dimensions
        .iter()
        .map(|dimension| format!("{} {}", dimension.text, (dimension.of)(point.at)))
        .collect();
    let each: Vec<String> = (report.contestants.iter().zip(point.cells))
        .map(|(played, cell)| format!("{} {}", played.title, recovery(cell)))
        .collect();
    format!("{}: {}", at.join(", "), each.join(", "))
}
