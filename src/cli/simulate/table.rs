//! The table on the terminal.
use std::{
    io::{self, Write},
    iter,
};

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use super::figures::MEASURES;
use crate::simulate::Report;

const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A contestant a row. The second line of a row goes from the lowest seed to the highest, where they differ.
pub(super) fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(iter::once("").chain(MEASURES.iter().map(|measure| measure.short)));
    for played in &report.contestants {
        let figures = MEASURES.iter().map(|measure| {
            let figure = measure.figure(played, report);
            format!("{}\n{}", figure.mean, figure.spread.unwrap_or_default())
        });
        table.add_row(iter::once(played.title.clone()).chain(figures));
    }
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if 0 < place {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "{}", table.trim_fmt())?;
    if 1 < report.seeds.len() {
        writeln!(
            out,
            "\nThe mean of {} seeds; below it, from the lowest to the highest.",
            report.seeds.len()
        )?;
    }
    Ok(())
}
