//! The command `epitome`.
fn main() {}
