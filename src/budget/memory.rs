//! skeleton

/// skeleton
#[derive(Debug)]
pub struct Memory;
