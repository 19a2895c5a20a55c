//! The model file as types: what the user wrote, before any value is looked at.
//!
//! Choices are externally tagged and nothing is flattened or untagged: those make serde buffer the
//! value, and with the buffer the positions are lost.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::number::Number;
use super::routers::RoutersFile;
use super::service::{NumbersFile, ServiceFile};

/// A whole model file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct File {
    /// Checked before the file becomes types; only its presence is allowed for here.
    #[serde(rename = "format")]
    pub(super) _format: Option<Number>,
    pub(super) name: Option<Spanned<String>>,
    pub(super) description: Option<String>,
    pub(super) policy: PolicyFile,
    pub(super) arrivals: ArrivalsFile,
    pub(super) pools: Spanned<Vec<PoolFile>>,
    #[serde(default)]
    pub(super) fluid: FluidFile,
    #[serde(default)]
    pub(super) finite: FiniteFile,
    #[serde(default)]
    pub(super) expect: BTreeMap<Spanned<String>, ExpectFile>,
}

/// `arrivals`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct ArrivalsFile {
    pub(super) rate: Spanned<Number>,
}

/// One of `[[pools]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct PoolFile {
    pub(super) name: Spanned<String>,
    pub(super) share: Spanned<Number>,
    pub(super) buffer: Option<Spanned<Number>>,
    pub(super) speed: Option<NumbersFile>,
    pub(super) slots: Option<Spanned<Number>>,
    pub(super) service: ServiceFile,
}

/// `policy`: one policy.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", expecting = "a word or a table")]
pub(super) enum PolicyFile {
    Random(NoParameters),
    JsqD(JsqDFile),
    Jsq(NoParameters),
    Pull(PullFile),
    Jiq(JiqFile),
    I1f(NoParameters),
    Threshold(ThresholdFile),
    Tiers(TiersFile),
    FastestIdleFirst(NoParameters),
}

/// A policy without parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct NoParameters {}

/// `jsq-d`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct JsqDFile {
    pub(super) d: Spanned<Number>,
    #[serde(default = "yes")]
    pub(super) replacement: bool,
    #[serde(default)]
    pub(super) skip_full: bool,
}

fn yes() -> bool {
    true
}

/// `pull`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct PullFile {
    pub(super) routers: Option<Spanned<RoutersFile>>,
    pub(super) messages: Option<Spanned<Vec<Spanned<Number>>>>,
    pub(super) message: Option<Spanned<String>>,
}

/// `jiq`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct JiqFile {
    pub(super) fallback_d: Option<Spanned<Number>>,
}

/// `threshold`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct ThresholdFile {
    pub(super) level: Spanned<Number>,
}

/// `tiers`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct TiersFile {
    pub(super) tiers: Spanned<Vec<Spanned<Vec<Spanned<Number>>>>>,
    pub(super) fallback_d: Option<Spanned<Number>>,
}

/// `[fluid]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct FluidFile {
    pub(super) initial: Option<InitialFile>,
    pub(super) messages: Option<Spanned<Vec<Spanned<Number>>>>,
    pub(super) horizon: Option<Spanned<Number>>,
    pub(super) tolerance: Option<Spanned<Number>>,
    pub(super) points: Option<Spanned<Number>>,
}

/// `fluid.initial`: one way to say where a run starts.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", expecting = "a word or a table")]
pub(super) enum InitialFile {
    Idle(NoParameters),
    Level(Spanned<Number>),
    Tails(Spanned<TailsFile>),
    Phases(Spanned<PhasesFile>),
}

/// x_1, x_2, ... by pool name.
pub(super) type TailsFile = BTreeMap<Spanned<String>, Spanned<Vec<Spanned<Number>>>>;

/// S_{1,1}.., S_{2,1}.. by pool name: a list for each level.
pub(super) type PhasesFile = BTreeMap<Spanned<String>, Spanned<Vec<NumbersFile>>>;

/// `[finite]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct FiniteFile {
    pub(super) sizes: Option<Spanned<Vec<Spanned<Number>>>>,
    pub(super) replications: Option<Spanned<Number>>,
    pub(super) horizon: Option<Spanned<Number>>,
    pub(super) warmup: Option<Spanned<Number>>,
    pub(super) seed: Option<Spanned<Number>>,
}

/// An entry of `[expect]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct ExpectFile {
    pub(super) value: Spanned<Number>,
    pub(super) tolerance: Spanned<Number>,
    pub(super) source: Spanned<String>,
}
