//! Results as figures: which numbers are drawn, and how they are called.

mod convergence;
mod levels;
mod survival;
mod trajectory;

pub use convergence::convergence;
pub use levels::levels;
pub use survival::survival;
pub use trajectory::{TailChoice, default_tails, trajectory};

use super::table::number;
use crate::finite::Summary;
use crate::fluid::{FixedPoint, Path};
use crate::model::Model;
use crate::output::plot::Figure;
use thiserror::Error;

/// Why results cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FigureError {
    /// A tail that the model does not have.
    #[error("there is no tail x_{level} of pool {pool}: levels count from 1, the {pools} pools from 0")]
    NoTail {
        /// Index of the pool asked for.
        pool: usize,
        /// Level asked for.
        level: usize,
        /// Pools of the model.
        pools: usize,
    },
    /// Results of another model.
    #[error("the model has {pools} pools, but some of the results are of {found}")]
    OtherModel {
        /// Pools of the results.
        found: usize,
        /// Pools of the model.
        pools: usize,
    },
}

/// Checks that all results are of as many pools as the model has, so that each can be looked up.
fn of_one_model(
    model: &Model,
    path: &Path,
    fixed: Option<&FixedPoint>,
    runs: &[Summary],
) -> Result<(), FigureError> {
    let pools = model.pools.len();
    let of_run = |run: &Summary| {
        let snapshots = run.transient.iter().map(|s| s.tails.len());
        let paths = run.paths.iter().flat_map(|p| &p.tails).map(Vec::len);
        snapshots.chain(paths).chain([run.levels.len(), run.pool_sizes.len()]).find(|found| *found != pools)
    };
    let of_path = path.snapshots.iter().map(|s| s.tails.len());
    let of_fixed = fixed.into_iter().flat_map(|f| [f.tails.len(), f.growth.len()]);
    let other = of_path.chain(of_fixed).find(|found| *found != pools);
    match other.or_else(|| runs.iter().find_map(of_run)) {
        Some(found) => Err(FigureError::OtherModel { found, pools }),
        None => Ok(()),
    }
}

/// x_k of a pool, from its tails x_1, x_2, ...; 0 beyond the last.
fn tail(tails: &[f64], level: usize) -> f64 {
    level.checked_sub(1).and_then(|k| tails.get(k)).copied().unwrap_or(0.0)
}

/// How x_k of a pool is called; a pool that is the only one needs no name.
fn tail_name(model: &Model, pool: &str, level: usize) -> String {
    if model.pools.len() == 1 { format!("x_{{{level}}}") } else { format!("x_{{{level}}} of {pool}") }
}

/// The words for the intervals of a figure, if it has any.
fn with_intervals(figure: &Figure) -> &'static str {
    let mut points = figure.panels.iter().flat_map(|p| &p.series).flat_map(|s| &s.points);
    if points.any(|p| p.half_width.is_some()) { " with 95 % intervals" } else { "" }
}

/// The parameters in one line.
fn parameters(model: &Model) -> String {
    const MOST: usize = 4;
    let mut pools: Vec<String> = model
        .pools
        .iter()
        .take(MOST)
        .map(|p| {
            let buffer = p.buffer.map_or_else(String::new, |b| format!(", buffer {b}"));
            format!("{}: share {}, rate {}{buffer}", p.name, short(p.share), short(p.service_rate()))
        })
        .collect();
    if model.pools.len() > MOST {
        pools.push(format!("and {} more pools", model.pools.len() - MOST));
    }
    format!(
        "{}, arrival rate {} per server, load {}; {}",
        model.policy.label(),
        short(model.arrival_rate),
        short(model.load()),
        pools.join("; ")
    )
}

/// A parameter to four digits.
fn short(x: f64) -> String {
    if x > 0.0 && x.is_finite() {
        let unit = 10f64.powf(x.log10().floor() - 3.0);
        number((x / unit).round() * unit)
    } else {
        number(x)
    }
}

/// At most `most` of the runs, the smallest and the largest n among them.
fn spread_out(runs: &[Summary], most: usize) -> Vec<&Summary> {
    if runs.len() <= most {
        return runs.iter().collect();
    }
    (0..most).map(|i| &runs[i * (runs.len() - 1) / (most - 1).max(1)]).collect()
}
