//! One pool with several phases: a block tridiagonal system, eliminated level by level towards the
//! level that holds most of the mass at rest, from both ends.

use super::{fullest_level, remove_mass};
use crate::model::{Move, PoolStates};
use nalgebra::{DMatrix, DVector, Dyn, LU};
use std::ops::Range;

/// An entry of a block: row, column, value. A state sends mass to few others, so that the generator's
/// blocks are stored by their entries; only what elimination fills is dense.
type Entry = (usize, usize, f64);

/// Blocks of the size of a level, for the levels that are not closed.
#[derive(Debug)]
pub struct BlockPool {
    pub ranges: Vec<Range<usize>>,
    /// The level, counted in `ranges`, towards which the others are eliminated.
    anchor: usize,
    /// For each level but the lowest: the block that carries mass up to it from the level below.
    up: Vec<Vec<Entry>>,
    /// For each level but the highest: the block that carries mass down to it from the level above.
    down: Vec<Vec<Entry>>,
    pivot: Vec<LU<f64, Dyn, Dyn>>,
    pub stationary: Option<Vec<f64>>,
}

impl BlockPool {
    /// Factorises gamma I minus the generator given by `moves`, where levels below `ground` are closed.
    pub fn new(pool: &PoolStates, ground: u32, gamma: f64, moves: &[Move]) -> Option<Self> {
        let ranges: Vec<_> = (ground..=pool.levels).map(|k| pool.level(k)).collect();
        let size = |k: usize| ranges[k].len();
        let n = ranges.len();
        let (mut inside, mut up, mut down) = (vec![Vec::new(); n], vec![Vec::new(); n], vec![Vec::new(); n]);
        let (mut rate_up, mut rate_down) = (vec![0.0; n], vec![0.0; n]);
        let mut place = vec![(0, 0); pool.len()];
        for (k, range) in ranges.iter().enumerate() {
            range.clone().enumerate().for_each(|(i, s)| place[s - pool.offset] = (k, i));
        }
        for m in moves {
            let (k, i) = place[m.from - pool.offset];
            let (to_k, to_i) = place[m.to - pool.offset];
            inside[k].push((i, i, m.rate));
            let block = match to_k {
                _ if to_k == k => &mut inside[k],
                _ if to_k > k => {
                    rate_up[k] = m.rate.max(rate_up[k]);
                    &mut up[k]
                }
                _ => {
                    rate_down[k] = 1.0 / pool.law.mean();
                    &mut down[to_k]
                }
            };
            block.push((to_i, i, -m.rate));
        }
        let anchor = fullest_level(0, &rate_down, &rate_up);
        let diagonal = |k: usize| {
            let mut block = DMatrix::identity(size(k), size(k)) * gamma;
            inside[k].iter().for_each(|&(row, column, value)| block[(row, column)] += value);
            block
        };
        let mut pivot: Vec<Option<LU<f64, Dyn, Dyn>>> = (0..n).map(|_| None).collect();
        for k in (anchor + 1..n).rev() {
            let mut s = diagonal(k);
            if let Some(Some(higher)) = pivot.get(k + 1) {
                eliminate(&mut s, &down[k], higher, &up[k])?;
            }
            pivot[k] = Some(s.lu());
        }
        for k in 0..=anchor {
            let mut s = diagonal(k);
            if let Some(Some(lower)) = k.checked_sub(1).map(|lower| &pivot[lower]) {
                eliminate(&mut s, &up[k - 1], lower, &down[k - 1])?;
            }
            if k == anchor {
                if let Some(Some(higher)) = pivot.get(k + 1) {
                    eliminate(&mut s, &down[k], higher, &up[k])?;
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
        let step = |k: usize, known: &DVector<f64>, block: &[Entry], r: &mut [f64]| {
            let mut rhs = DVector::from_column_slice(&r[part(k)]);
            subtract_product(rhs.as_mut_slice(), block, known);
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
        let carry = |from: usize, to: usize, block: &[Entry], r: &mut [f64]| {
            let known = DVector::from_column_slice(&r[self.ranges[from].clone()]);
            if let Some(x) = self.pivot[from].solve(&known) {
                subtract_product(&mut r[self.ranges[to].clone()], block, &x);
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

/// r - block x, in place.
fn subtract_product(r: &mut [f64], block: &[Entry], x: &DVector<f64>) {
    block.iter().for_each(|&(row, column, value)| r[row] -= value * x[column]);
}

/// What is left of a level's block `s` once the neighbour with this `pivot` is eliminated:
/// s - back pivot^-1 out, where `out` carries mass from the level to its neighbour and `back` returns it.
/// Solved only for the columns that `out` fills: under Erlang service a single phase leads down.
fn eliminate(s: &mut DMatrix<f64>, back: &[Entry], pivot: &LU<f64, Dyn, Dyn>, out: &[Entry]) -> Option<()> {
    let mut columns: Vec<usize> = out.iter().map(|&(_, column, _)| column).collect();
    columns.sort_unstable();
    columns.dedup();
    let mut x = DMatrix::zeros(pivot.lu_internal().nrows(), columns.len());
    for &(row, column, value) in out {
        x[(row, columns.partition_point(|&c| c < column))] += value;
    }
    if !pivot.solve_mut(&mut x) {
        return None;
    }
    for &(row, column, value) in back {
        columns.iter().enumerate().for_each(|(c, &to)| s[(row, to)] -= value * x[(column, c)]);
    }
    Some(())
}
