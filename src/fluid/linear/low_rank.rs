//! The pools eliminated one by one, the low rank put back: Sherman, Morrison and Woodbury's formula.

use super::{PoolFactor, factor_pools};
use crate::fluid::dispatch::Target;
use crate::fluid::drift::Linearisation;
use crate::model::StateSpace;
use nalgebra::{DMatrix, DVector, Dyn, LU};

/// gamma I - J as the frozen part of each pool and a small matrix over the groups.
#[derive(Debug)]
pub struct LowRank<'a> {
    linearisation: &'a Linearisation<'a>,
    gamma: f64,
    pools: Vec<PoolFactor>,
    small: LU<f64, Dyn, Dyn>,
}

impl<'a> LowRank<'a> {
    /// Factorises; `None` if the matrix is singular.
    pub fn new(states: &StateSpace, linearisation: &'a Linearisation<'a>, gamma: f64) -> Option<Self> {
        let closed = &linearisation.field.closed;
        let pools = factor_pools(states, closed, gamma, linearisation.frozen())?;
        let small = columns_by_tails(states, linearisation, gamma, &pools)
            .unwrap_or_else(|| columns_by_solving(states, linearisation, &pools));
        if small.iter().any(|x: &f64| !x.is_finite()) {
            return None;
        }
        Some(Self { linearisation, gamma, pools, small: small.lu() })
    }

    /// Solves in place; `false` if the matrix is singular.
    ///
    /// Putting a low rank back may cancel digits of the frozen part's solution: it is refined once.
    pub fn solve(&self, r: &mut [f64]) -> bool {
        let mut left = r.to_vec();
        if !self.solve_once(r) {
            return false;
        }
        let image = self.linearisation.apply(r);
        left.iter_mut().zip(r.iter().zip(&image)).for_each(|(l, (x, jx))| *l -= self.gamma * x - jx);
        if self.solve_once(&mut left) {
            r.iter_mut().zip(&left).for_each(|(x, change)| *x += change);
        }
        r.iter().all(|x| x.is_finite())
    }

    fn solve_once(&self, r: &mut [f64]) -> bool {
        let mut frozen = r.to_vec();
        self.pools.iter().for_each(|p| p.solve(&mut frozen));
        let (mut tails, mut changes) = (Vec::new(), Vec::new());
        self.linearisation.rate_changes(&frozen, &mut tails, &mut changes);
        let Some(rates) = self.small.solve(&DVector::from_vec(changes)) else { return false };
        // The answer is the frozen part's for the right-hand side with the rates' flows added.
        self.linearisation.add_directions(rates.as_slice(), r);
        self.pools.iter().for_each(|p| p.solve(r));
        r.iter().all(|x| x.is_finite())
    }
}

/// The small matrix, a column at a time: what a unit of each group's rate does to all rates.
fn columns_by_solving(
    states: &StateSpace,
    linearisation: &Linearisation<'_>,
    pools: &[PoolFactor],
) -> DMatrix<f64> {
    let groups = linearisation.groups();
    let mut small = DMatrix::<f64>::identity(groups, groups);
    let (mut tails, mut changes) = (Vec::new(), Vec::new());
    let mut unit = vec![0.0; groups];
    let mut column = vec![0.0; states.len()];
    for g in 0..groups {
        unit[g] = 1.0;
        column.fill(0.0);
        linearisation.add_directions(&unit, &mut column);
        unit[g] = 0.0;
        pools.iter().for_each(|p| p.solve(&mut column));
        linearisation.rate_changes(&column, &mut tails, &mut changes);
        for (i, c) in changes.iter().enumerate() {
            small[(i, g)] -= c;
        }
    }
    small
}

/// The same from the tails of the pools' inverses, where jobs join the shortest of sampled queues and
/// service is exponential: tens of times faster with many pools. `None` elsewhere.
fn columns_by_tails(
    states: &StateSpace,
    linearisation: &Linearisation<'_>,
    gamma: f64,
    pools: &[PoolFactor],
) -> Option<DMatrix<f64>> {
    let dispatch = &linearisation.field.dispatch;
    if !matches!(dispatch.target, Target::Fallback(f) if f.d > 1 && !f.skip_full) {
        return None;
    }
    let groups = linearisation.groups();
    let mut absorbed = vec![0.0; states.len()];
    dispatch.closed.iter().flatten().for_each(|&(s, rate)| absorbed[s] += rate);
    // Tail at level k (row), and the change of the stream, for a unit of the rate of group g (column).
    let mut tails = DMatrix::<f64>::zeros(groups + 1, groups);
    let mut stream = vec![0.0; groups];
    for (pool, factor) in states.pools.iter().zip(pools) {
        let PoolFactor::Scalar(factor) = factor else { return None };
        let ground = factor.ground;
        factor.lifted(gamma, |g, k, x| {
            let x = x * linearisation.occupancy(pool.offset + g);
            tails[(k, g)] += x;
            if k == ground + 1 {
                // What the ground level loses, closed tiers absorb no longer.
                stream[g] += absorbed[pool.offset + ground] * x;
            }
        });
    }
    let mut small = DMatrix::<f64>::identity(groups, groups);
    for g in 0..groups {
        for i in 0..groups {
            let (by_stream, by_tail, by_next) = linearisation.rate_partials(i);
            small[(i, g)] -= by_stream * stream[g] + by_tail * tails[(i, g)] + by_next * tails[(i + 1, g)];
        }
    }
    Some(small)
}
