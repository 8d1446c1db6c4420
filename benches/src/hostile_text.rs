//! Texts that are hard on a tokenizer: long runs, text without words, scripts without spaces, noise.

/// Bytes of each, about: some take a tokenizer quadratic time.
const BYTES: usize = 20_000;

/// Kinds of hostile text, each in so many versions that share no long stretch at the same place.
pub(crate) fn hostile_texts(versions: usize) -> Vec<Vec<String>> {
    let kinds: [fn(usize) -> String; 9] = [
        |version| repeated(&letters(version, 3)),
        |version| repeated(&letters(version, 1)),
        |version| format!("{}x", " ".repeat(BYTES - version)),
        |version| repeated(&format!("\n{}", "\t".repeat(1 + version))),
        |version| scrambled(version, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
        |version| scrambled(version, b"0123456789abcdef"),
        |version| scrambled(version, b"{}[]()<>;:,.!?'\"/\\|@#$%^&*-_=+~` "),
        |version| repeated(&format!("\u{90e8}\u{7f72}\u{5230}{version}\u{751f}\u{4ea7}\u{73af}\u{5883}")),
        |version| repeated(&format!("\u{1f680}\u{200d}\u{1f468}{version}\u{fe0f}\u{301}")),
    ];
    kinds.iter().map(|kind| (0..versions).map(kind).collect()).collect()
}

fn letters(version: usize, count: usize) -> String {
    let letter = |at: usize| char::from(b'a' + u8::try_from((5 * version + at) % 26).unwrap_or(0));
    (0..count).map(letter).collect()
}

fn repeated(unit: &str) -> String {
    unit.repeat(BYTES.div_ceil(unit.len().max(1)))
}

/// Bytes of an alphabet in an order without a pattern.
fn scrambled(version: usize, alphabet: &[u8]) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(version as u64 + 1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = usize::try_from(state >> 16).unwrap_or(0) % alphabet.len().max(1);
        char::from(alphabet.get(at).copied().unwrap_or(b' '))
    };
    (0..BYTES).map(|_| next()).collect()
}
