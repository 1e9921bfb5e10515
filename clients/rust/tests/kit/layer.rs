//! What no scenario reaches.
