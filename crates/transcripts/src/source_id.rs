//! Ids for files that are written anew, without a clock or chance.

/// An id in the shape of a UUID that depends on the source alone (FNV-1a over its bytes).
pub(crate) fn id_of(source: &[u8]) -> String {
    let hash = source.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    let hex = format!("{hash:032x}");
    let group = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    [group(0, 8), group(8, 12), group(12, 16), group(16, 20), group(20, 32)].join("-")
}
