//! Suites that cross layers.
