//! What the user wrote: the TOML model file, checked and turned into a [`Model`].
//!
//! [`load`] reads the text, applies `--set` overrides, gives the TOML its types and checks every
//! value. Whatever is wrong comes back as one [`SpecError`] that points at the words it is about.
//!
//! ```
//! use fluidlimit::spec::{Source, load};
//!
//! let text = r#"
//!     policy.jsq-d.d = 2
//!     arrivals.rate = 0.9
//!     [[pools]]
//!     name = "servers"
//!     share = 1.0
//!     service.exponential.rate = 1.0
//! "#;
//! let source = Source::Text { name: "example.toml".into(), text: text.into() };
//! let system = load(&source, &["policy.jsq-d.d=3".into()]).unwrap();
//! assert_eq!(system.model.policy.fallback.d, 3);
//!
//! let error = load(&source, &["policy.jsq-d.d=0".into()]).unwrap_err();
//! assert_eq!(error.title(), "`d` is 0");
//! ```

mod canonical;
mod check;
mod data;
mod error;
mod file;
mod formula;
mod number;
mod overrides;
mod place;
mod routers;
mod service;
mod shape;
mod sized;
mod source;
mod translate;
mod tree;

pub use check::LARGEST_SIZE;
pub use data::sample;
pub use error::{Problem, SpecError};
pub use place::Place;
pub use source::Source;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::model::{DataFit, Initial, Model};

/// A checked model file.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// The system. Shares that sum to 1 within 1e-12 are kept as given; within 1e-9 (thirds written
    /// with nine digits) they are divided by their sum; anything further off is an error.
    pub model: Model,
    /// How the service law of each pool came about, in the order of the pools.
    pub services: Vec<Service>,
    /// How the fluid limit is solved.
    pub fluid: FluidSettings,
    /// How finite systems are simulated.
    pub finite: FiniteSettings,
    /// Numbers that the results must reproduce, ordered by name.
    pub expect: Vec<Expectation>,
    /// The number of servers at which formulas of n were taken; `None` if the model has none.
    pub taken_at: Option<u64>,
    /// 16 hexadecimal digits of the SHA-256 of the model after overrides, keys sorted: the same for
    /// all ways to write the same model, whatever its comments, layout and order of keys. Data files
    /// count by their contents.
    pub hash: String,
}

/// Where a service law comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// The law in words.
    pub label: String,
    /// How well it stands for what was asked.
    pub fit: Fit,
}

/// How well a law stands for what was asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Fit {
    /// It is what was asked.
    Exact,
    /// A mixture in place of another law of the same mean: the largest distance of the survival
    /// functions.
    Distance(f64),
    /// Fitted to data.
    Data {
        /// Number of service times.
        times: usize,
        /// The fit; its law is before a `mean` in the model file rescaled it.
        chosen: Box<DataFit>,
    },
}

/// `[fluid]`.
#[derive(Debug, Clone, PartialEq)]
pub struct FluidSettings {
    /// Where trajectories and simulations start.
    pub initial: Initial,
    /// Where trajectories end; positive.
    pub horizon: f64,
    /// Relative accuracy of integration and fixed point, 1e-14 to 1e-2.
    pub tolerance: f64,
    /// Points of a trajectory that are put out, evenly spaced over the horizon; at least 2.
    pub points: u32,
}

/// `[finite]`.
#[derive(Debug, Clone, PartialEq)]
pub struct FiniteSettings {
    /// Numbers of servers, in the order given; distinct.
    pub sizes: Vec<u64>,
    /// Independent runs of each size.
    pub replications: u32,
    /// Length of each run in model time; positive.
    pub horizon: f64,
    /// The part of each run that is not measured, below the horizon; `None` leaves the choice to the
    /// estimator.
    pub warmup: Option<f64>,
    /// Seed of all random streams.
    pub seed: u64,
}

impl Default for FluidSettings {
    fn default() -> Self {
        Self { initial: Initial::Idle, horizon: 50.0, tolerance: 1e-10, points: 200 }
    }
}

impl Default for FiniteSettings {
    fn default() -> Self {
        Self { sizes: vec![100, 1000, 10_000], replications: 32, horizon: 200.0, warmup: None, seed: 1 }
    }
}

/// A number that a result must reproduce.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// What is compared: `x.POOL.K`, a measure, `MEASURE.POOL`, `event.I.time`, `relaxation_time` or
    /// `spectral_abscissa`.
    pub name: String,
    /// What it should be.
    pub value: f64,
    /// The largest absolute difference that is accepted.
    pub tolerance: f64,
    /// Where the value comes from.
    pub source: String,
}

/// Reads a model, applies overrides (each `KEY=VALUE`, in order) and checks the result.
///
/// # Errors
/// The first fault that is met, with its place: in the file, or in the override that brought it.
pub fn load(source: &Source, overrides: &[String]) -> Result<System, SpecError> {
    load_at(source, overrides, None)
}

/// The same with formulas of the number of servers taken at `n`; without, at the largest of the model's
/// own sizes. [`System::taken_at`] says whether there are any.
///
/// # Errors
/// As [`load`]; and if a formula means nothing, or not what may stand in its place.
pub fn load_at(source: &Source, overrides: &[String], n: Option<u64>) -> Result<System, SpecError> {
    let mut sources = source.read()?;
    let text = sources.text();
    let numbers;
    let parsed = DeTable::parse(&text).map_err(|e| translate::syntax(&e, &sources))?;
    let mut tree = Spanned::new(parsed.span(), DeValue::Table(parsed.into_inner()));
    for text in overrides {
        overrides::apply(&mut tree, &mut sources, text)?;
    }
    shape::settle(&mut tree, &sources)?;
    let hash = canonical::hash(tree.get_ref());
    let mut taken_at = None;
    if sized::depends_on_n(&mut tree) {
        let largest = FiniteSettings::default().sizes.into_iter().max();
        let n = n.or_else(|| sized::largest_size(&tree)).or(largest).unwrap_or(1);
        numbers = sized::numbers(&mut tree, &sources, n)?;
        sized::put(&mut tree, &numbers);
        taken_at = Some(n);
    }
    let file = file::File::deserialize(ValueDeserializer::from(tree.clone()))
        .map_err(|e| translate::shape(&e, tree.get_ref(), &sources))?;
    let system = check::system(file, &sources, source, hash)?;
    Ok(System { taken_at, ..system })
}
