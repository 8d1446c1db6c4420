//! Criterion suites.
