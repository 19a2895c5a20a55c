//! Infinite buffers: the bracket that proves how much the cut of the levels matters.
//!
//! The path with a reflecting top (jobs beyond it ignored) lies below the true one, the path with an
//! absorbing top (servers that reach it never come back) above it: the system is monotone. Both are
//! integrated over the same times; the largest gap between their tails bounds the error of either.

use super::integrate::integrate;
use super::path::{Path, Plan};
use super::{FluidError, Snapshot};
use crate::model::{Model, Top};

/// The path with reflecting tops, and the bound on the error of any of its tails at its times.
///
/// # Errors
/// As [`integrate`].
pub fn bracketed(model: &Model, plan: &Plan) -> Result<(Path, f64), FluidError> {
    let lower = integrate(model, &Plan { cut: Top::Reflecting, ..plan.clone() })?;
    let states = &lower.end.states;
    let reaches_top = |s: &Snapshot| {
        s.tails.iter().zip(&states.pools).any(|(x, pool)| pool.is_cut() && x.len() >= pool.levels as usize)
    };
    if states.pools.iter().all(|p| !p.is_cut()) || !lower.snapshots.iter().any(reaches_top) {
        // No mass ever came to a top: cutting there changed nothing.
        return Ok((lower, 0.0));
    }
    let upper = integrate(model, &Plan { cut: Top::Absorbing, ..plan.clone() })?;
    let gap =
        lower.snapshots.iter().zip(&upper.snapshots).map(|(a, b)| largest_gap(a, b)).fold(0.0, f64::max);
    Ok((lower, gap))
}

fn largest_gap(lower: &Snapshot, upper: &Snapshot) -> f64 {
    let pools = lower.tails.iter().zip(&upper.tails);
    pools
        .flat_map(|(a, b)| {
            (0..a.len().max(b.len())).map(|k| {
                let at = |x: &Vec<f64>| x.get(k).copied().unwrap_or(0.0);
                (at(b) - at(a)).abs()
            })
        })
        .fold(0.0, f64::max)
}
