#![doc = include_str!("../README.md")]

mod extractive;

pub use extractive::Extractive;
