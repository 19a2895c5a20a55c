//! One pool with several phases: a block tridiagonal system, eliminated level by level towards the
//! level that holds most of the mass at rest, from both ends.

use super::{fullest_level, remove_mass};
use crate::model::{Move, PoolStates};
use nalgebra::{DMatrix, DVector, Dyn, LU};
use std::ops::Range;

/// Blocks of the size of a level, for the levels that are not closed.
#[derive(Debug)]
pub struct BlockPool {
    pub ranges: Vec<Range<usize>>,
    /// The level, counted in `ranges`, towards which the others are eliminated.
    anchor: usize,
    /// For each level but the lowest: the block that carries mass up to it from the level below.
    up: Vec<DMatrix<f64>>,
    /// For each level but the highest: the block that carries mass down to it from the level above.
    down: Vec<DMatrix<f64>>,
    pivot: Vec<LU<f64, Dyn, Dyn>>,
    pub stationary: Option<Vec<f64>>,
}

impl BlockPool {
    /// Factorises gamma I minus the generator given by `moves`, where levels below `ground` are closed.
    pub fn new(pool: &PoolStates, ground: u32, gamma: f64, moves: &[Move]) -> Option<Self> {
        let ranges: Vec<_> = (ground..=pool.levels).map(|k| pool.level(k)).collect();
        let size = |k: usize| ranges[k].len();
        let n = ranges.len();
        let mut diagonal: Vec<_> = (0..n).map(|k| DMatrix::identity(size(k), size(k)) * gamma).collect();
        let mut up: Vec<_> = (1..n).map(|k| DMatrix::zeros(size(k), size(k - 1))).collect();
        let mut down: Vec<_> = (1..n).map(|k| DMatrix::zeros(size(k - 1), size(k))).collect();
        let (mut rate_up, mut rate_down) = (vec![0.0; n], vec![0.0; n]);
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
                _ if to_k > k => {
                    rate_up[k] = m.rate.max(rate_up[k]);
                    &mut up[k]
                }
                _ => {
                    rate_down[k] = 1.0 / pool.law.mean();
                    &mut down[to_k]
                }
            };
            block[(to_i, i)] -= m.rate;
        }
        let anchor = fullest_level(0, &rate_down, &rate_up);
        let mut pivot: Vec<Option<LU<f64, Dyn, Dyn>>> = (0..n).map(|_| None).collect();
        for k in (anchor + 1..n).rev() {
            let mut s = diagonal[k].clone();
            if let Some(Some(higher)) = pivot.get(k + 1) {
                s -= &down[k] * higher.solve(&up[k])?;
            }
            pivot[k] = Some(s.lu());
        }
        for k in 0..=anchor {
            let mut s = diagonal[k].clone();
            if let Some(Some(lower)) = k.checked_sub(1).map(|lower| &pivot[lower]) {
                s -= &up[k - 1] * lower.solve(&down[k - 1])?;
            }
            if k == anchor {
                if let Some(Some(higher)) = pivot.get(k + 1) {
                    s -= &down[k] * higher.solve(&up[k])?;
                }
                if gamma == 0.0 {
                    // Singular: its columns sum to zero. The last equation becomes "the sum is given".
                    s.row_mut(size(k) - 1).fill(1.0);
                }
            }
            pivot[k] = Some(s.lu());
        }
        let pivot = pivot.into_iter().collect::<Option<Vec<_>>>()?;
        let mut factor = Self { ranges, anchor, up, down, pivot, stationary: None };
        if gamma == 0.0 {
            let start = factor.ranges[0].start;
            let mut v = vec![0.0; pool.range().end - start];
            let mut mass = DVector::zeros(factor.ranges[anchor].len());
            mass[factor.ranges[anchor].len() - 1] = 1.0;
            factor.spread(factor.pivot[anchor].solve(&mass)?, &mut v, start);
            factor.stationary = Some(v);
        }
        Some(factor)
    }

    /// Given the anchor's solution, solves outwards from it; `r` starts at state `start`.
    fn spread(&self, at_anchor: DVector<f64>, r: &mut [f64], start: usize) {
        let part = |k: usize| self.ranges[k].start - start..self.ranges[k].end - start;
        let step = |k: usize, known: &DVector<f64>, block: &DMatrix<f64>, r: &mut [f64]| {
            let rhs = DVector::from_column_slice(&r[part(k)]) - block * known;
            let x = self.pivot[k].solve(&rhs).unwrap_or(rhs);
            r[part(k)].copy_from_slice(x.as_slice());
            x
        };
        r[part(self.anchor)].copy_from_slice(at_anchor.as_slice());
        let mut last = at_anchor.clone();
        for k in self.anchor + 1..self.ranges.len() {
            last = step(k, &last, &self.up[k - 1], r);
        }
        last = at_anchor;
        for k in (0..self.anchor).rev() {
            last = step(k, &last, &self.down[k], r);
        }
    }

    /// Solves in place for the pool's part of `r`.
    pub fn solve(&self, r: &mut [f64]) {
        let n = self.ranges.len();
        let carry = |from: usize, to: usize, block: &DMatrix<f64>, r: &mut [f64]| {
            let known = DVector::from_column_slice(&r[self.ranges[from].clone()]);
            if let Some(x) = self.pivot[from].solve(&known) {
                let change = block * x;
                r[self.ranges[to].clone()].iter_mut().zip(change.iter()).for_each(|(r, c)| *r -= c);
            }
        };
        for k in (self.anchor + 1..n).rev() {
            carry(k, k - 1, &self.down[k - 1], r);
        }
        for k in 0..self.anchor {
            carry(k, k + 1, &self.up[k], r);
        }
        let anchor = self.ranges[self.anchor].clone();
        let mut rhs = DVector::from_column_slice(&r[anchor.clone()]);
        if self.stationary.is_some() {
            rhs[anchor.len() - 1] = 0.0;
        }
        let solved = self.pivot[self.anchor].solve(&rhs).unwrap_or(rhs);
        let (start, end) = (self.ranges[0].start, self.ranges[n - 1].end);
        self.spread(solved, &mut r[start..end], start);
        if let Some(v) = &self.stationary {
            remove_mass(&mut r[start..end], v);
        }
    }
}
