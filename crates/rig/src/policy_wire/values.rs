//! The values of a policy file that are more than a number or a word: levels, shares, times, and numbers that
//! may also be tables.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use epitome_loop::BasisPoints;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::{OfCompactAtWire, OfWindowWire};
use crate::Share;

/// A number of tokens or a table.
pub(super) enum AmountWire {
    Tokens(u64),
    OfWindow(OfWindowWire),
}

/// A level or a table.
pub(super) enum RearmWire {
    At(LevelWire),
    OfCompactAt(OfCompactAtWire),
}

/// A share in whole basis points.
#[derive(Clone, Copy)]
pub(super) struct LevelWire(pub(super) BasisPoints);

/// Any share.
#[derive(Clone, Copy)]
pub(super) struct ShareWire(pub(super) Share);

/// A length of time.
#[derive(Clone, Copy)]
pub(crate) struct TimeWire(pub(crate) Duration);

/// Below this many basis points a bare number is more likely a percentage without its sign.
const LEAST_BARE_POINTS: u64 = 100;

/// How many digits a level may have behind the point of its percentage: a basis point has two.
const LEVEL_DECIMALS: usize = 2;

/// What may stand in the file, in words, and how it is read. A reading that fails gives `None`.
trait Readable: Sized {
    const WHAT: &'static str;
    /// The keys of the table that may stand here.
    const KEYS: &'static [&'static str] = &[];

    fn of_number(_: u64) -> Option<Self> {
        None
    }

    fn of_text(_: &str) -> Option<Self> {
        None
    }

    fn of_table<'de, A: MapAccess<'de>>(_: A) -> Option<Result<Self, A::Error>> {
        None
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Readable> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        T::of_number(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::of_text(text).ok_or_else(|| E::invalid_value(Unexpected::Other("text"), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::of_table(map).unwrap_or_else(|| Err(de::Error::invalid_type(Unexpected::Map, &self)))
    }
}

/// As a struct, so that the keys of a table are known to the reader of the file.
fn read<'de, T: Readable, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_struct("", T::KEYS, Reader(PhantomData))
}

macro_rules! deserialize {
    ($($name:ident)*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read(deserializer)
            }
        }
    )*};
}

deserialize! { AmountWire RearmWire LevelWire ShareWire TimeWire }

impl Readable for AmountWire {
    const WHAT: &'static str =
        "a number of tokens, or a table such as { share_of_window = \"10%\", at_most = 20000 }";
    const KEYS: &'static [&'static str] = &["share_of_window", "at_least", "at_most"];

    fn of_number(number: u64) -> Option<Self> {
        Some(Self::Tokens(number))
    }

    fn of_table<'de, A: MapAccess<'de>>(map: A) -> Option<Result<Self, A::Error>> {
        Some(OfWindowWire::deserialize(MapAccessDeserializer::new(map)).map(Self::OfWindow))
    }
}

impl Readable for RearmWire {
    const WHAT: &'static str =
        "a share such as \"60%\" or 6000, or a table such as { share_of_compact_at = \"70%\" }";
    const KEYS: &'static [&'static str] = &["share_of_compact_at"];

    fn of_number(number: u64) -> Option<Self> {
        LevelWire::of_number(number).map(Self::At)
    }

    fn of_text(text: &str) -> Option<Self> {
        LevelWire::of_text(text).map(Self::At)
    }

    fn of_table<'de, A: MapAccess<'de>>(map: A) -> Option<Result<Self, A::Error>> {
        Some(OfCompactAtWire::deserialize(MapAccessDeserializer::new(map)).map(Self::OfCompactAt))
    }
}

impl Readable for LevelWire {
    const WHAT: &'static str = "a share: a percentage such as \"85%\", at most two digits behind the point, or basis \
                                points from 100 to 10000 such as 8500";

    fn of_number(number: u64) -> Option<Self> {
        basis_points(number).map(Self)
    }

    fn of_text(text: &str) -> Option<Self> {
        // Written as it is meant: as a percentage, and no finer than a basis point, zeros included.
        let percentage = text.strip_suffix('%')?;
        let decimals = percentage.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let points = Share::parse(text)?.basis_points()?;
        (decimals <= LEVEL_DECIMALS).then_some(Self(points))
    }
}

impl Readable for ShareWire {
    const WHAT: &'static str = "a share: a percentage such as \"12.5%\", a fraction such as \"1/15\", or basis \
                                points from 100 to 10000 such as 8500";

    fn of_number(number: u64) -> Option<Self> {
        Share::of_basis_points(basis_points(number)?).map(Self)
    }

    fn of_text(text: &str) -> Option<Self> {
        Share::parse(text).map(Self)
    }
}

fn basis_points(number: u64) -> Option<BasisPoints> {
    let full = u64::from(BasisPoints::FULL_SCALE.get());
    let points = Some(number).filter(|number| (LEAST_BARE_POINTS..=full).contains(number))?;
    u16::try_from(points).ok().map(BasisPoints)
}

impl Readable for TimeWire {
    const WHAT: &'static str = "a time such as \"2s\", \"500ms\" or \"1m\"";

    fn of_text(text: &str) -> Option<Self> {
        let unit_at = text.find(|character: char| !character.is_ascii_digit())?;
        let (number, unit) = text.split_at_checked(unit_at)?;
        let (_, nanoseconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let all = number.parse::<u128>().ok()?.checked_mul(*nanoseconds)?;
        let seconds = u64::try_from(all / SECOND).ok()?;
        let rest = u32::try_from(all % SECOND).ok()?;
        Some(Self(Duration::new(seconds, rest)))
    }
}

const SECOND: u128 = 1_000_000_000;

/// Units of time in nanoseconds, largest first.
const UNITS: [(&str, u128); 6] =
    [("h", 3600 * SECOND), ("m", 60 * SECOND), ("s", SECOND), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

impl Serialize for AmountWire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tokens(tokens) => serializer.serialize_u64(*tokens),
            Self::OfWindow(table) => table.serialize(serializer),
        }
    }
}

impl Serialize for RearmWire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(level) => level.serialize(serializer),
            Self::OfCompactAt(table) => table.serialize(serializer),
        }
    }
}

impl Serialize for LevelWire {
    /// As a percentage: basis points with two digits behind the point, or fewer.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match Share::of_basis_points(self.0) {
            Some(share) => serializer.collect_str(&share),
            None => serializer.serialize_u16(self.0.get()),
        }
    }
}

impl Serialize for ShareWire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl Serialize for TimeWire {
    /// In the largest unit that says it in whole numbers.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.0.as_nanos();
        let (name, unit) = UNITS
            .into_iter()
            .find(|(_, unit)| all != 0 && all.is_multiple_of(*unit))
            .unwrap_or(("s", SECOND));
        serializer.collect_str(&format_args!("{}{name}", all / unit))
    }
}
