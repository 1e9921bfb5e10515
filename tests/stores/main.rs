//! The pools in real servers: what an exchange answers, and what happens when the server fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]
#![allow(clippy::disallowed_methods, reason = "a server runs on the real clock")]
mod exchange;
mod faults;
mod servers;
mod support;
