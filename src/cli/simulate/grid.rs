//! The points of the grid: other parameters, and how each contestant fared there.
use std::collections::BTreeSet;

use super::figures::STAYS_DOWN;
use crate::simulate::{Cell, Report};

/// What the points may differ in.
const DIMENSIONS: [Dimension; 5] = [
    Dimension { text: "Work takes", of: |at| format!("{}×", f64::from(at.work_percent) / 100.0) },
    Dimension { text: "Outage", of: |at| seconds(at.outage_ms) },
    Dimension { text: "Calls a second", of: |at| at.calls_per_second.to_string() },
    Dimension { text: "Clients", of: |at| at.clients.to_string() },
    Dimension { text: "Without a key", of: |at| format!("{} %", at.without_key_percent) },
];

#[derive(Clone, Copy)]
pub(super) struct Dimension {
    pub(super) text: &'static str,
    pub(super) of: fn(&Cell) -> String,
}

/// One point, with a cell for each contestant in their order.
#[derive(Clone, Copy)]
pub(super) struct Point<'a> {
    /// What was played there; the same in all cells.
    pub(super) at: &'a Cell,
    pub(super) cells: &'a [Cell],
}

pub(super) fn points(report: &Report) -> Vec<Point<'_>> {
    let cells_of_points = report.grid.chunks_exact(report.contestants.len().max(1));
    cells_of_points.filter_map(|cells| Some(Point { at: cells.first()?, cells })).collect()
}

/// Of those that differ only in how many calls have no key, the first.
pub(super) fn without_keys_apart<'a>(points: &[Point<'a>]) -> Vec<Point<'a>> {
    let key = |point: &Point<'_>| point.at.without_key_percent;
    let first = points.first().map(key);
    points.iter().copied().filter(|point| Some(key(point)) == first).collect()
}

/// What these points differ in.
pub(super) fn dimensions(points: &[Point<'_>]) -> Vec<Dimension> {
    let differ = |dimension: &Dimension| {
        let values: BTreeSet<String> =
            points.iter().map(|point| (dimension.of)(point.at)).collect();
        1 < values.len()
    };
    DIMENSIONS.into_iter().filter(differ).collect()
}

/// Such as `12 s`.
pub(super) fn recovery(cell: &Cell) -> String {
    cell.recovery_s.map_or_else(|| STAYS_DOWN.to_owned(), |seconds| format!("{seconds:.0} s"))
}

/// Such as `2.5 s`.
pub(super) fn seconds(ms: u64) -> String {
    format!("{} s", ms as f64 / 1_000.0)
}
