//! The charts as files, for documents that show them.
use std::{fs, path::Path};

use anyhow::Context as _;

use super::{
    charts::{self, OverTime},
    figures::MEASURES,
};
use crate::simulate::Report;

const COLUMNS: u32 = 3;

/// Writes one SVG a chart into a folder.
pub(super) fn write(folder: &Path, report: &Report) -> anyhow::Result<()> {
    let mut pictures = vec![
        ("load", OverTime::load(report).picture(COLUMNS)?),
        ("success", OverTime::success(report).picture(COLUMNS)?),
    ];
    for measure in MEASURES.iter().filter(|measure| measure.is_charted) {
        pictures.push((measure.name, charts::spread(measure, report)?));
    }
    if !report.grid.is_empty() {
        pictures.push(("grid", charts::recoveries(report)?));
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    for (name, chart) in pictures {
        let path = folder.join(name).with_extension("svg");
        fs::write(&path, chart.file()?)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok(())
}
