//! `service` of a pool as types: one law with its parameters, before any value is looked at.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use toml::Spanned;

use super::number::Number;

/// A list of numbers.
pub(super) type NumbersFile = Spanned<Vec<Spanned<Number>>>;

/// `service`: one law.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", expecting = "a table")]
pub(super) enum ServiceFile {
    Exponential(Spanned<ExponentialFile>),
    Erlang(Spanned<ErlangFile>),
    Hyperexponential(Spanned<HyperexponentialFile>),
    Coxian(Spanned<CoxianFile>),
    PhaseType(Spanned<PhaseTypeFile>),
    Moments(Spanned<MomentsFile>),
    Weibull(Spanned<DecreasingFile>),
    Lomax(Spanned<DecreasingFile>),
    Gamma(Spanned<DecreasingFile>),
    Data(Spanned<DataFile>),
}

/// The exponential law, by its rate or its mean.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct ExponentialFile {
    pub(super) rate: Option<Spanned<Number>>,
    pub(super) mean: Option<Spanned<Number>>,
}

/// `stages` equal stages, by the rate of each or the mean of all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct ErlangFile {
    pub(super) stages: Spanned<Number>,
    pub(super) rate: Option<Spanned<Number>>,
    pub(super) mean: Option<Spanned<Number>>,
}

/// A mixture of exponentials.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct HyperexponentialFile {
    pub(super) probabilities: NumbersFile,
    pub(super) rates: NumbersFile,
    pub(super) mean: Option<Spanned<Number>>,
}

/// Phases one after the other; after each but the last the service goes on or ends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct CoxianFile {
    pub(super) rates: NumbersFile,
    #[serde(rename = "continue")]
    pub(super) go_on: NumbersFile,
    pub(super) mean: Option<Spanned<Number>>,
}

/// Initial vector and generator.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct PhaseTypeFile {
    pub(super) initial: NumbersFile,
    pub(super) generator: Spanned<Vec<NumbersFile>>,
    pub(super) mean: Option<Spanned<Number>>,
}

/// Two moments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct MomentsFile {
    pub(super) mean: Spanned<Number>,
    pub(super) scv: Spanned<Number>,
}

/// A law with a decreasing hazard rate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct DecreasingFile {
    pub(super) shape: Spanned<Number>,
    pub(super) scale: Option<Spanned<Number>>,
    pub(super) mean: Option<Spanned<Number>>,
    pub(super) phases: Option<Spanned<Number>>,
}

/// Measured service times.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct DataFile {
    pub(super) file: Spanned<String>,
    pub(super) column: Option<Spanned<ColumnFile>>,
    pub(super) mean: Option<Spanned<Number>>,
}

/// A column by its name, or its number counted from 1.
#[derive(Debug)]
pub(super) struct ColumnFile(pub(super) String);

struct ColumnVisitor;

impl Visitor<'_> for ColumnVisitor {
    type Value = ColumnFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a column's name between quotes, or its number from 1")
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<ColumnFile, E> {
        Ok(ColumnFile(v.to_string()))
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<ColumnFile, E> {
        Ok(ColumnFile(v.to_owned()))
    }
}

impl<'de> Deserialize<'de> for ColumnFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ColumnVisitor)
    }
}
