//! Where what was found is shown.
use std::{fs, io, path::PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::{page, pictures, table};
use crate::simulate::Report;

#[derive(Debug, Args)]
pub(super) struct Shown {
    /// Write a page with all figures and curves, which needs no other file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the curves as SVG files into a folder
    #[arg(long, value_name = "FOLDER")]
    pictures: Option<PathBuf>,
}

impl Shown {
    pub(super) fn show(&self, report: &Report) -> anyhow::Result<()> {
        super::super::unless_closed(table::write(&mut io::stdout().lock(), report))?;
        if let Some(path) = &self.html {
            fs::write(path, page::page(report)?)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        if let Some(folder) = &self.pictures {
            pictures::write(folder, report)?;
        }
        Ok(())
    }
}
