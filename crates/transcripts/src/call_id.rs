//! Ids of calls that every provider accepts.

use std::borrow::Cow;

/// Chat completions refuse longer ids.
const LONGEST: usize = 40;

/// The id as it may be sent to a provider that did not make it: Anthropic accepts letters, digits, `_` and
/// `-` alone, OpenAI at most 40 characters. The same id always becomes the same one, so pairs stay pairs.
pub(crate) fn portable(id: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if id.len() <= LONGEST && !id.is_empty() && id.bytes().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let plain = id.bytes().filter(|byte| is_plain(*byte)).take(LONGEST - 17);
    Cow::Owned(format!("{}_{hash:016x}", plain.map(char::from).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_portable_and_stay_apart() {
        assert_eq!(portable("toolu_01-A"), "toolu_01-A");
        let long = "call_abc|fc_".to_owned() + &"9".repeat(60);
        for id in ["", "call_1|fc_1", "call_1|fc_2", "functions.sh:0", &long] {
            let portable = portable(id);
            assert!(portable.len() <= LONGEST && portable.bytes().all(|byte| byte != b'|' && byte != b'.'));
        }
        assert_ne!(portable("call_1|fc_1"), portable("call_1.fc_1"));
    }
}
