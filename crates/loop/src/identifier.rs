//! Identities of events, attempts, commands and replies: 16 bytes each, with one text form.

use std::fmt;

use uuid::Uuid;

use crate::IdentityError;

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name([u8; 16]);

        impl $name {
            /// The id with these bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// The id's bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// Whether this is the absent id.
            #[must_use]
            pub fn is_zero(&self) -> bool {
                self.0 == [0; 16]
            }

            /// Reads the canonical text: lower-case hex in five groups.
            ///
            /// # Errors
            #[doc = concat!("[`IdentityError::", stringify!($name), "`] for any other text, upper case and braces included.")]
            pub fn parse(text: &str) -> Result<Self, IdentityError> {
                let id = Uuid::try_parse(text).map_err(|_| IdentityError::$name)?;
                let id = Self(*id.as_bytes());
                if id.to_string() == text { Ok(id) } else { Err(IdentityError::$name) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Uuid::from_bytes(self.0).hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

identifier! {
    /// Identity of an event in a session's history; all zeros means none.
    EventId
}

identifier! {
    /// Identity of a session, whose journal outlives the process; all zeros means none.
    SessionId
}

identifier! {
    /// Identity of one attempt to compact; all zeros means none.
    AttemptId
}

identifier! {
    /// Identity of a command that somebody gave; all zeros means none.
    CommandId
}

identifier! {
    /// Identity of the reply to a command that waited for a compaction. See [`crate::waiter_reply_id`].
    WaiterReplyId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_have_one_text_form() {
        let id = "01020304-0506-0708-090a-0b0c0d0e0f10";
        assert_eq!(EventId::parse(id).unwrap().to_string(), id);
        for bad in [
            "",
            "01020304050607080 90a0b0c0d0e0f10",
            "0102030405060708090a0b0c0d0e0f10",
            "{01020304-0506-0708-090a-0b0c0d0e0f10}",
            "0102030A-0506-0708-090a-0b0c0d0e0f10",
        ] {
            assert_eq!(EventId::parse(bad), Err(IdentityError::EventId), "accepted {bad}");
            assert_eq!(AttemptId::parse(bad), Err(IdentityError::AttemptId), "accepted {bad}");
        }
    }
}
