//! The console's pages, as a browser gets them; `run` beside this file opens them in a real one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
mod ask;
mod guard;
mod show;
mod support;
