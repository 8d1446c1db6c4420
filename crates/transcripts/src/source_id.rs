//! Ids for what is written anew, without a clock or chance: they depend on the source alone.

/// An id in the shape of a UUID for a whole source (FNV-1a over its bytes).
pub(crate) fn id_of(source: &[u8]) -> String {
    shape(hash(OFFSET, source))
}

/// Ids in the shape of random UUIDs, one after another.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    seed: u128,
    next: u64,
}

impl Ids {
    /// The ids for a source.
    pub(crate) fn of(source: &[u8]) -> Self {
        Self { seed: hash(OFFSET, source), next: 0 }
    }

    /// The next id.
    pub(crate) fn next_id(&mut self) -> String {
        // Numbers that follow each other differ in their last bits alone, which the second round spreads.
        let number = hash(self.seed, &self.next.to_be_bytes());
        let spread = hash(number, &number.to_be_bytes());
        self.next = self.next.wrapping_add(1);
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0b11 << 62;
        shape((spread & !VERSION & !VARIANT) | (4 << 76) | (0b10 << 62))
    }
}

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;

fn hash(start: u128, bytes: &[u8]) -> u128 {
    bytes.iter().fold(start, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

fn shape(number: u128) -> String {
    let hex = format!("{number:032x}");
    let group = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    [group(0, 8), group(8, 12), group(12, 16), group(16, 20), group(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_shape_of_random_uuids_and_differ() {
        let ids: Vec<String> = std::iter::repeat_with({
            let mut ids = Ids::of(b"source");
            move || ids.next_id()
        })
        .take(100)
        .collect();
        for id in &ids {
            assert_eq!(id.len(), 36);
            assert_eq!(id.get(14..15), Some("4"));
            assert!(["8", "9", "a", "b"].contains(&id.get(19..20).unwrap()), "{id}");
            assert_eq!(ids.iter().filter(|other| *other == id).count(), 1);
        }
        assert_eq!(Ids::of(b"source").next_id(), Ids::of(b"source").next_id());
        assert_ne!(Ids::of(b"source").next_id(), Ids::of(b"sourcf").next_id());
        assert_eq!(id_of(b"").len(), 36);
    }
}
