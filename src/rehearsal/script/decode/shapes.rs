//! Shapes that serde lacks. Their rules are checked inside serde's visitors: an error that comes later gets the line
//! of whatever stands behind the value.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

/// Reads an object (serde's own structs take a list too) and checks rules about several of its fields.
pub(super) fn object<'de, D, Raw, T>(from: D, check: fn(Raw) -> Result<T, String>) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    Raw: Deserialize<'de>,
{
    struct Object<Raw, T>(fn(Raw) -> Result<T, String>);
    impl<'de, Raw: Deserialize<'de>, T> Visitor<'de> for Object<Raw, T> {
        type Value = T;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            fields(map, self.0)
        }
    }
    from.deserialize_map(Object(check))
}

/// Reads the fields of an object that was already entered; see [`object`].
pub(super) fn fields<'de, A, Raw, T>(map: A, check: fn(Raw) -> Result<T, String>) -> Result<T, A::Error>
where
    A: MapAccess<'de>,
    Raw: Deserialize<'de>,
{
    check(Raw::deserialize(MapAccessDeserializer::new(map))?).map_err(A::Error::custom)
}

/// Reads one of the known words and returns it.
pub(super) fn word<'de, D: Deserializer<'de>>(
    from: D,
    known: &'static [&'static str],
) -> Result<&'static str, D::Error> {
    struct Word(&'static [&'static str]);
    impl Visitor<'_> for Word {
        type Value = &'static str;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "one of {}", self.0.join(", "))
        }

        fn visit_str<E: Error>(self, found: &str) -> Result<&'static str, E> {
            let known = self.0.iter().find(|known| **known == found);
            known.copied().ok_or_else(|| E::unknown_variant(found, self.0))
        }
    }
    from.deserialize_str(Word(known))
}

/// A whole number between two bounds, both included.
#[derive(Default)]
pub(super) struct Within<const MIN: u64, const MAX: u64>(pub(super) u64);

impl<const MIN: u64, const MAX: u64> Within<MIN, MAX> {
    /// Returns the number as a smaller type, which must hold `MAX`.
    pub(super) fn narrow<T: TryFrom<u64> + Default>(self) -> T {
        debug_assert!(T::try_from(MAX).is_ok());
        T::try_from(self.0).unwrap_or_default()
    }

    /// Returns the number as milliseconds.
    pub(super) fn millis(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bounds<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Bounds<MIN, MAX> {
            type Value = Within<MIN, MAX>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                if MIN == MAX {
                    write!(out, "the number {MIN}")
                } else {
                    write!(out, "a whole number from {MIN} to {MAX}")
                }
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                if (MIN..=MAX).contains(&number) {
                    Ok(Within(number))
                } else {
                    Err(E::invalid_value(Unexpected::Unsigned(number), &self))
                }
            }
        }
        from.deserialize_u64(Bounds)
    }
}

/// A list with something in it.
pub(super) struct Filled<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Filled<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct FilledVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FilledVisitor<T> {
            type Value = Filled<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Filled<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                if list.is_empty() { Err(A::Error::custom("the list is empty")) } else { Ok(Filled(list)) }
            }
        }
        from.deserialize_seq(FilledVisitor(PhantomData))
    }
}

/// An object by free names: not empty, no name twice (serde's maps would keep the last one in silence).
pub(super) struct Named<T>(pub(super) BTreeMap<String, T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NamedVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
            type Value = Named<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object with an entry for each step or role")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let mut named = BTreeMap::new();
                while let Some((name, entry)) = map.next_entry::<String, T>()? {
                    if named.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("`{name}` is there twice")));
                    }
                    named.insert(name, entry);
                }
                if named.is_empty() { Err(A::Error::custom("the object is empty")) } else { Ok(Named(named)) }
            }
        }
        from.deserialize_map(NamedVisitor(PhantomData))
    }
}
