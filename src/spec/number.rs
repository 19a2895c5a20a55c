//! Numbers as they are written: whole or not.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A TOML integer or float. Which of the two was written does not matter to a rate, and a wrong sort
/// of number for a count is better refused by name than by type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// Written without a fraction.
    Whole(i128),
    /// Written with a fraction or an exponent; NaN and infinities included.
    Real(f64),
}

impl Number {
    /// The nearest double.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn real(self) -> f64 {
        match self {
            Self::Whole(i) => i as f64,
            Self::Real(x) => x,
        }
    }

    /// The whole number, if it is one; `1e3` and `2.0` are.
    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(i) => Some(i),
            // Doubles of this size hold every whole number exactly.
            Self::Real(x) if x.fract() == 0.0 && x.abs() < 9e15 => Some(x as i128),
            Self::Real(_) => None,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(i) => write!(f, "{i}"),
            Self::Real(x) => write!(f, "{x:?}"),
        }
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<Number, E> {
        Ok(Number::Whole(v.into()))
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<Number, E> {
        Ok(Number::Whole(v.into()))
    }

    fn visit_i128<E: Error>(self, v: i128) -> Result<Number, E> {
        Ok(Number::Whole(v))
    }

    #[allow(clippy::cast_precision_loss)]
    fn visit_u128<E: Error>(self, v: u128) -> Result<Number, E> {
        Ok(Number::Real(v as f64))
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<Number, E> {
        Ok(Number::Real(v))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_be_written_as_floats() {
        assert_eq!(Number::Real(1e3).whole(), Some(1000));
        assert_eq!(Number::Real(2.5).whole(), None);
        assert_eq!(Number::Real(f64::NAN).whole(), None);
        assert_eq!(Number::Real(1e300).whole(), None);
        assert_eq!(Number::Whole(-3).whole(), Some(-3));
    }
}
