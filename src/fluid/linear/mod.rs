//! Linear systems (gamma I - J) delta = r with the structure of the occupancy's Jacobian.
//!
//! J is a frozen part, block tridiagonal in the level within each pool, plus one rank per group of
//! states that share an arrival rate. With few groups or many pools the pools are eliminated one by one
//! and the low rank is put back ([`LowRank`]); with many levels and few pools the levels are eliminated
//! one by one, all pools at once ([`Leveled`]). With gamma = 0 the frozen part is a generator: the
//! solution is the one whose components sum to zero in each pool.

mod band;
mod block;
mod leveled;
mod low_rank;
mod scalar;

use super::drift::Linearisation;
use crate::model::{Move, PoolStates, StateSpace};
use block::BlockPool;
pub(super) use leveled::Leveled;
pub(super) use low_rank::LowRank;
use scalar::ScalarPool;

/// A factorisation of gamma I - J.
#[derive(Debug)]
pub(super) enum Factor<'a> {
    LowRank(LowRank<'a>),
    Leveled(Leveled),
}

impl<'a> Factor<'a> {
    /// Factorises; `None` if the matrix is singular.
    pub fn new(states: &StateSpace, linearisation: &'a Linearisation<'a>, gamma: f64) -> Option<Self> {
        let groups = linearisation.groups() as f64;
        let low_rank = groups * (6.0 * states.len() as f64 + groups * groups);
        if leveled::work(states) < low_rank && linearisation.groups() > 1 {
            Leveled::new(states, linearisation, gamma).map(Self::Leveled)
        } else {
            LowRank::new(states, linearisation, gamma).map(Self::LowRank)
        }
    }

    /// Solves in place; `false` if the matrix is singular.
    pub fn solve(&self, r: &mut [f64]) -> bool {
        match self {
            Self::LowRank(f) => f.solve(r),
            Self::Leveled(f) => f.solve(r),
        }
    }
}

/// The factorised frozen part of one pool.
#[derive(Debug)]
pub(super) enum PoolFactor {
    Scalar(ScalarPool),
    Block(BlockPool),
}

impl PoolFactor {
    /// Factorises gamma I minus the generator given by `moves` (those inside the pool), where levels
    /// below `ground` are closed.
    pub fn new(pool: &PoolStates, ground: u32, gamma: f64, moves: &[Move]) -> Option<Self> {
        if pool.phases() == 1 {
            Some(Self::Scalar(ScalarPool::new(pool, ground as usize, gamma, moves)))
        } else {
            BlockPool::new(pool, ground, gamma, moves).map(Self::Block)
        }
    }

    /// Solves in place for the pool's part of `r`.
    pub fn solve(&self, r: &mut [f64]) {
        match self {
            Self::Scalar(p) => p.solve(r),
            Self::Block(p) => p.solve(r),
        }
    }

    /// For gamma = 0, the stationary vector of the pool with total mass `share`, written into `q`.
    pub fn stationary(&self, share: f64, q: &mut [f64]) {
        let (start, v) = match self {
            Self::Scalar(p) => (p.offset + p.ground, p.stationary.as_deref()),
            Self::Block(p) => (p.ranges[0].start, p.stationary.as_deref()),
        };
        let v = v.unwrap_or(&[]);
        let total: f64 = v.iter().sum();
        for (q, v) in q[start..].iter_mut().zip(v) {
            *q = v / total * share;
        }
    }
}

/// The frozen part of a linearisation, factorised pool by pool.
pub(super) fn factor_pools(
    states: &StateSpace,
    closed: &[Option<usize>],
    gamma: f64,
    moves: impl Iterator<Item = Move>,
) -> Option<Vec<PoolFactor>> {
    let mut pool_of = vec![0; states.len()];
    for (j, pool) in states.pools.iter().enumerate() {
        pool_of[pool.range()].fill(j);
    }
    let mut by_pool = vec![Vec::new(); states.pools.len()];
    moves.for_each(|m| by_pool[pool_of[m.from]].push(m));
    let grounds = states.pools.iter().map(|p| (0..p.levels).find(|&k| closed[p.level(k).start].is_none()));
    states
        .pools
        .iter()
        .zip(grounds)
        .zip(&by_pool)
        .map(|((pool, ground), moves)| PoolFactor::new(pool, ground.unwrap_or(pool.levels), gamma, moves))
        .collect()
}

/// The level that holds most of the chain's mass at rest. Elimination runs towards it from both ends:
/// anchored at a level that is all but empty, the solution would be a small difference of huge terms.
fn fullest_level(ground: usize, down: &[f64], up: &[f64]) -> usize {
    let (mut fullest, mut log_mass, mut best) = (ground, 0.0, 0.0);
    for k in ground + 1..down.len() {
        log_mass += up[k - 1].ln() - down[k].ln();
        if log_mass > best {
            (fullest, best) = (k, log_mass);
        }
    }
    fullest
}

/// Subtracts the multiple of `v` that leaves `r` with sum zero.
fn remove_mass(r: &mut [f64], v: &[f64]) {
    let excess = r.iter().sum::<f64>() / v.iter().sum::<f64>();
    r.iter_mut().zip(v).for_each(|(r, v)| *r -= excess * v);
}
