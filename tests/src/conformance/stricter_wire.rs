//! Where our decoder refuses what the reference's accepts. Every class has a name, which `docs/wire-v1.md`
//! explains.

use epitome_sessionruntime::WireFault;

/// A kind of document that the reference reads and we do not.
#[derive(Clone, Copy, Debug)]
pub struct StricterClass {
    /// The stable name.
    pub name: &'static str,
    /// What our decoder says about such a document.
    pub fault: WireFault,
}

/// Every class, in the order of the document that explains them.
pub const STRICTER_WIRE: &[StricterClass] = &[
    StricterClass { name: "duplicate-key", fault: WireFault::DuplicateKey },
    StricterClass { name: "key-case", fault: WireFault::KeyCase },
    StricterClass { name: "missing-key", fault: WireFault::MissingKey },
    StricterClass { name: "null-value", fault: WireFault::Null },
    StricterClass { name: "data-not-a-string", fault: WireFault::WrongType },
    StricterClass { name: "loose-base64", fault: WireFault::Base64 },
    StricterClass { name: "lone-surrogate", fault: WireFault::LoneSurrogate },
    StricterClass { name: "not-utf-8", fault: WireFault::Utf8 },
];

/// The class that a fault belongs to, if the reference lets such a fault pass.
#[must_use]
pub fn stricter_class(fault: WireFault) -> Option<&'static str> {
    STRICTER_WIRE.iter().find(|class| class.fault == fault).map(|class| class.name)
}
