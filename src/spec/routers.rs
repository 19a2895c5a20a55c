//! `routers` of pull: how many there are, or the share of the jobs that comes to each.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use toml::Spanned;

use super::number::Number;

/// A number of equal routers, or a list of stream shares.
#[derive(Debug)]
pub(super) enum RoutersFile {
    /// So many, all alike.
    Count(Number),
    /// One share each.
    Streams(Vec<Spanned<Number>>),
}

struct RoutersVisitor;

impl<'de> Visitor<'de> for RoutersVisitor {
    type Value = RoutersFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of routers or a list of shares")
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<RoutersFile, E> {
        Ok(RoutersFile::Count(Number::Whole(v.into())))
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<RoutersFile, E> {
        Ok(RoutersFile::Count(Number::Whole(v.into())))
    }

    fn visit_i128<E: Error>(self, v: i128) -> Result<RoutersFile, E> {
        Ok(RoutersFile::Count(Number::Whole(v)))
    }

    #[allow(clippy::cast_precision_loss)]
    fn visit_u128<E: Error>(self, v: u128) -> Result<RoutersFile, E> {
        Ok(RoutersFile::Count(Number::Real(v as f64)))
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<RoutersFile, E> {
        Ok(RoutersFile::Count(Number::Real(v)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RoutersFile, A::Error> {
        let mut streams = Vec::new();
        while let Some(share) = seq.next_element()? {
            streams.push(share);
        }
        Ok(RoutersFile::Streams(streams))
    }
}

impl<'de> Deserialize<'de> for RoutersFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RoutersVisitor)
    }
}
