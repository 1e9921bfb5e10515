//! How far it is, on stderr, where somebody looks.
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that leaves nothing behind. Where stderr is no terminal, it draws nothing.
pub(super) fn bar() -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} plays, {eta} left")?;
    let bar = ProgressBar::no_length().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}

pub(super) fn tell(bar: &ProgressBar, done: usize, of: usize) {
    bar.set_length(of as u64);
    bar.set_position(done as u64);
}
