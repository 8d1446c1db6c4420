//! Wire v1: writing it, knowing its length, reading it, and fitting it into a limit.

use epitome_sessionruntime::{decode_input, encode_input, encoded_len, fit_input};

use crate::path::{HotPath, Measured, Target};
use crate::stopwatch::duel;
use crate::wire::wire_input;
use crate::wire_rivals::InputShape;

const ROUNDS: usize = 25;

pub(crate) const PATHS: &[HotPath] = &[
    HotPath {
        group: "wire",
        name: "encode, 1 MB",
        target: Target::TimesFaster(1.0, "serde_json to_vec"),
        reason: None,
        measure: || encode(1_000_000),
    },
    HotPath {
        group: "wire",
        name: "encode, 10 MB",
        target: Target::TimesFaster(1.0, "serde_json to_vec"),
        reason: None,
        measure: || encode(10_000_000),
    },
    HotPath {
        group: "wire",
        name: "exact length, 1 MB",
        target: Target::TimesFaster(2.0, "counting sink"),
        reason: None,
        measure: || length(1_000_000),
    },
    HotPath {
        group: "wire",
        name: "exact length, 10 MB",
        target: Target::TimesFaster(2.0, "counting sink"),
        reason: None,
        measure: || length(10_000_000),
    },
    HotPath {
        group: "wire",
        name: "decode, 1 MB",
        target: Target::TimesFaster(1.3, "serde_json derive"),
        reason: None,
        measure: || decode(1_000_000),
    },
    HotPath {
        group: "wire",
        name: "decode, 10 MB",
        target: Target::TimesFaster(1.3, "serde_json derive"),
        reason: None,
        measure: || decode(10_000_000),
    },
    HotPath {
        group: "wire",
        name: "fit 1 MB to 80 %",
        target: Target::AtMost(1.0, "serde_json to_vec"),
        reason: None,
        measure: fit,
    },
];

/// Against the same values in serde's shape. It escapes less, so its bytes are not compared.
fn encode(bytes: usize) -> Measured {
    let input = wire_input(bytes);
    let shape = InputShape::from(&input);
    let wire = encode_input(&input);
    let mut duel = duel(ROUNDS, |_| !encode_input(&input).is_empty(), |_| !shape.to_vec().is_empty());
    duel.agreed &= decode_input(&wire).as_ref() == Ok(&input);
    duel.on(wire.len())
}

fn length(bytes: usize) -> Measured {
    let input = wire_input(bytes);
    let shape = InputShape::from(&input);
    let wire = encode_input(&input);
    let mut duel = duel(ROUNDS, |_| encoded_len(&input) > 0, |_| shape.counted() > 0);
    duel.agreed &= encoded_len(&input) == wire.len() as u64 && shape.counted() == shape.to_vec().len() as u64;
    duel.on(wire.len())
}

/// Both read the same bytes, and drop what they have read.
fn decode(bytes: usize) -> Measured {
    let input = wire_input(bytes);
    let wire = encode_input(&input);
    let mut duel = duel(
        ROUNDS,
        |_| decode_input(&wire).map_or(0, |read| read.transcript().len()),
        |_| InputShape::read(&wire).map_or(0, |read| read.messages()),
    );
    duel.agreed &= decode_input(&wire) == Ok(input);
    duel.on(wire.len())
}

/// The rival writes the whole once and leaves nothing out.
fn fit() -> Measured {
    let input = wire_input(1_000_000);
    let shape = InputShape::from(&input);
    let limit = encoded_len(&input) * 8 / 10;
    let fits = || fit_input(&input, limit).is_ok_and(|fitted| fitted.bytes.len() as u64 <= limit);
    let mut duel = duel(ROUNDS, |_| fits(), |_| !shape.to_vec().is_empty());
    duel.agreed &= fit_input(&input, limit).is_ok_and(|fitted| !fitted.stubbed.is_empty());
    duel.on(1_000_000)
}
