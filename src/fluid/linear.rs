//! Linear systems (gamma I - J) delta = r with the structure of the occupancy's Jacobian.
//!
//! J is a frozen part, block tridiagonal in the level within each pool, plus one rank per group of
//! states that share an arrival rate. Each pool is eliminated level by level, and the low rank is put back by the Sherman-Morrison-Woodbury formula. With gamma = 0 the frozen part is a
//! generator: the solution is the one whose components sum to zero in each pool. For exponential
//! service the elimination subtracts nothing (after Grassmann, Taksar and Heyman), so it stays exact
//! when rates differ by many orders of magnitude.

use super::drift::Linearisation;
use crate::model::{Move, PoolStates, StateSpace};
use nalgebra::{DMatrix, DVector, Dyn, LU};

/// The factorised frozen part of one pool.
#[derive(Debug)]
pub(super) enum PoolFactor {
    Scalar(ScalarPool),
    Block(BlockPool),
}

/// One phase: a tridiagonal matrix. Levels below `ground` are closed.
#[derive(Debug)]
pub(super) struct ScalarPool {
    offset: usize,
    ground: usize,
    /// The level towards which the others are eliminated.
    anchor: usize,
    /// Rate down from each level, rate up from each level, pivot of each level.
    down: Vec<f64>,
    up: Vec<f64>,
    pivot: Vec<f64>,
    /// For gamma = 0: the stationary vector from the ground level on, 1 at the anchor.
    stationary: Option<Vec<f64>>,
}

/// Several phases: blocks of the size of a level.
#[derive(Debug)]
pub(super) struct BlockPool {
    ranges: Vec<std::ops::Range<usize>>,
    /// For each level but the ground: the block that couples it to the level below.
    below: Vec<DMatrix<f64>>,
    /// For each level but the top: the block that couples it to the level above.
    above: Vec<DMatrix<f64>>,
    pivot: Vec<LU<f64, Dyn, Dyn>>,
    stationary: Option<Vec<f64>>,
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

impl ScalarPool {
    fn new(pool: &PoolStates, ground: usize, gamma: f64, moves: &[Move]) -> Self {
        let n = pool.levels as usize + 1;
        let (mut down, mut up) = (vec![0.0; n], vec![0.0; n]);
        for m in moves {
            let side = if m.to < m.from { &mut down } else { &mut up };
            side[m.from - pool.offset] += m.rate;
        }
        let anchor = fullest_level(ground, &down, &up);
        let mut pivot = vec![1.0; n];
        // excess = pivot - the rate towards the anchor, computed as a sum of positive terms.
        let mut above = gamma;
        for k in (anchor + 1..n).rev() {
            if k + 1 < n {
                above = gamma + up[k] * above / pivot[k + 1];
            }
            pivot[k] = down[k] + above;
        }
        let mut below = gamma;
        for k in ground..anchor {
            if k > ground {
                below = gamma + down[k] * below / pivot[k - 1];
            }
            pivot[k] = up[k] + below;
        }
        pivot[anchor] = gamma;
        if anchor + 1 < n {
            pivot[anchor] += up[anchor] * above / pivot[anchor + 1];
        }
        if anchor > ground {
            pivot[anchor] += down[anchor] * below / pivot[anchor - 1];
        }
        let mut factor = Self { offset: pool.offset, ground, anchor, down, up, pivot, stationary: None };
        if gamma == 0.0 {
            let mut v = vec![0.0; n];
            v[anchor] = 1.0;
            factor.spread(&mut v);
            factor.stationary = Some(v.split_off(ground));
        }
        factor
    }

    /// Given the anchor's solution, solves outwards from it.
    fn spread(&self, r: &mut [f64]) {
        for k in self.anchor + 1..r.len() {
            r[k] = (r[k] + self.up[k - 1] * r[k - 1]) / self.pivot[k];
        }
        for k in (self.ground..self.anchor).rev() {
            r[k] = (r[k] + self.down[k + 1] * r[k + 1]) / self.pivot[k];
        }
    }

    fn solve(&self, r: &mut [f64]) {
        let n = self.down.len();
        let r = &mut r[self.offset..self.offset + n];
        for k in (self.anchor..n - 1).rev() {
            r[k] += self.down[k + 1] / self.pivot[k + 1] * r[k + 1];
        }
        for k in self.ground..self.anchor {
            r[k + 1] += self.up[k] / self.pivot[k] * r[k];
        }
        r[self.anchor] =
            if self.stationary.is_some() { 0.0 } else { r[self.anchor] / self.pivot[self.anchor] };
        self.spread(r);
        if let Some(v) = &self.stationary {
            remove_mass(&mut r[self.ground..], v);
        }
    }
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

impl BlockPool {
    fn new(pool: &PoolStates, ground: u32, gamma: f64, moves: &[Move]) -> Option<Self> {
        let ranges: Vec<_> = (ground..=pool.levels).map(|k| pool.level(k)).collect();
        let size = |k: usize| ranges[k].len();
        let n = ranges.len();
        let mut diagonal: Vec<_> = (0..n).map(|k| DMatrix::identity(size(k), size(k)) * gamma).collect();
        let mut below: Vec<_> = (1..n).map(|k| DMatrix::zeros(size(k), size(k - 1))).collect();
        let mut above: Vec<_> = (1..n).map(|k| DMatrix::zeros(size(k - 1), size(k))).collect();
        let mut place = vec![(0, 0); pool.len()];
        for (k, range) in ranges.iter().enumerate() {
            range.clone().enumerate().for_each(|(i, s)| place[s - pool.offset] = (k, i));
        }
        for m in moves {
            let (k, i) = place[m.from - pool.offset];
            let (to_k, to_i) = place[m.to - pool.offset];
            diagonal[k][(i, i)] += m.rate;
            let block: &mut DMatrix<f64> = match to_k {
                _ if to_k == k => &mut diagonal[k],
                _ if to_k > k => &mut below[k],
                _ => &mut above[to_k],
            };
            block[(to_i, i)] -= m.rate;
        }
        let mut pivot = Vec::with_capacity(n);
        for k in (0..n).rev() {
            let mut s = diagonal[k].clone();
            if let Some(upper) = pivot.last() {
                let upper: &LU<f64, Dyn, Dyn> = upper;
                s -= &above[k] * upper.solve(&below[k])?;
            }
            if k == 0 && gamma == 0.0 {
                // Singular: its columns sum to zero. The last equation becomes "the sum is given".
                s.row_mut(size(0) - 1).fill(1.0);
            }
            pivot.push(s.lu());
        }
        pivot.reverse();
        let mut factor = Self { ranges, below, above, pivot, stationary: None };
        if gamma == 0.0 {
            let start = factor.ranges[0].start;
            let mut v = vec![0.0; pool.range().end - start];
            let mut first = DVector::zeros(factor.ranges[0].len());
            first[factor.ranges[0].len() - 1] = 1.0;
            factor.forward(factor.pivot[0].solve(&first)?, &mut v, start);
            factor.stationary = Some(scale_down(v));
        }
        Some(factor)
    }

    /// Given the ground level's solution, solves for the levels above; `r` starts at state `start`.
    fn forward(&self, ground: DVector<f64>, r: &mut [f64], start: usize) {
        let mut last = ground;
        for (k, range) in self.ranges.iter().enumerate() {
            let part = &mut r[range.start - start..range.end - start];
            if k > 0 {
                let rhs = DVector::from_column_slice(part) - &self.below[k - 1] * &last;
                last = self.pivot[k].solve(&rhs).unwrap_or(rhs);
            }
            part.copy_from_slice(last.as_slice());
        }
    }

    fn solve(&self, r: &mut [f64]) {
        let n = self.ranges.len();
        for k in (0..n - 1).rev() {
            let upper = DVector::from_column_slice(&r[self.ranges[k + 1].clone()]);
            if let Some(x) = self.pivot[k + 1].solve(&upper) {
                let change = &self.above[k] * x;
                r[self.ranges[k].clone()].iter_mut().zip(change.iter()).for_each(|(r, c)| *r -= c);
            }
        }
        let ground = self.ranges[0].clone();
        let mut rhs = DVector::from_column_slice(&r[ground.clone()]);
        if self.stationary.is_some() {
            rhs[ground.len() - 1] = 0.0;
        }
        let solved = self.pivot[0].solve(&rhs).unwrap_or(rhs);
        let (start, end) = (ground.start, self.ranges[n - 1].end);
        self.forward(solved, &mut r[start..end], start);
        if let Some(v) = &self.stationary {
            remove_mass(&mut r[start..end], v);
        }
    }
}

/// Divides by the largest entry: a chain that drifts up far would overflow otherwise.
fn scale_down(mut v: Vec<f64>) -> Vec<f64> {
    let largest = v.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    v.iter_mut().for_each(|x| *x /= largest);
    v
}

/// Subtracts the multiple of `v` that leaves `r` with sum zero.
fn remove_mass(r: &mut [f64], v: &[f64]) {
    let excess = r.iter().sum::<f64>() / v.iter().sum::<f64>();
    r.iter_mut().zip(v).for_each(|(r, v)| *r -= excess * v);
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

/// A factorisation of gamma I - J.
#[derive(Debug)]
pub(super) struct Factor<'a> {
    linearisation: &'a Linearisation<'a>,
    gamma: f64,
    pools: Vec<PoolFactor>,
    /// Column g: the frozen part's solution for direction g.
    columns: Vec<Vec<f64>>,
    small: LU<f64, Dyn, Dyn>,
}

impl<'a> Factor<'a> {
    /// Factorises; `None` if the matrix is singular.
    pub fn new(states: &StateSpace, linearisation: &'a Linearisation<'a>, gamma: f64) -> Option<Self> {
        let closed = &linearisation.field.closed;
        let pools = factor_pools(states, closed, gamma, linearisation.frozen())?;
        let groups = linearisation.groups();
        let mut small = DMatrix::identity(groups, groups);
        let mut columns = Vec::with_capacity(groups);
        let (mut tails, mut changes) = (Vec::new(), Vec::new());
        let mut unit = vec![0.0; groups];
        for g in 0..groups {
            let mut column = vec![0.0; states.len()];
            unit[g] = 1.0;
            linearisation.add_directions(&unit, &mut column);
            unit[g] = 0.0;
            pools.iter().for_each(|p| p.solve(&mut column));
            linearisation.rate_changes(&column, &mut tails, &mut changes);
            for (i, c) in changes.iter().enumerate() {
                small[(i, g)] -= c;
            }
            columns.push(column);
        }
        if small.iter().any(|x: &f64| !x.is_finite()) {
            return None;
        }
        Some(Self { linearisation, gamma, pools, columns, small: small.lu() })
    }

    /// Solves in place; `false` if the matrix is singular.
    ///
    /// Blocks are eliminated towards the lowest level whatever it holds, and may lose digits there: with
    /// several phases the solution is refined once.
    pub fn solve(&self, r: &mut [f64]) -> bool {
        if self.pools.iter().all(|p| matches!(p, PoolFactor::Scalar(_))) {
            return self.solve_once(r);
        }
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
        self.pools.iter().for_each(|p| p.solve(r));
        let (mut tails, mut changes) = (Vec::new(), Vec::new());
        self.linearisation.rate_changes(r, &mut tails, &mut changes);
        let Some(factors) = self.small.solve(&DVector::from_vec(changes)) else { return false };
        for (column, &f) in self.columns.iter().zip(factors.iter()).filter(|(_, f)| **f != 0.0) {
            r.iter_mut().zip(column).for_each(|(r, c)| *r += f * c);
        }
        r.iter().all(|x| x.is_finite())
    }
}
