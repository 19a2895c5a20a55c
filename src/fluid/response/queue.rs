//! A server that works at one speed on one job at a time: what is ahead of a job when it comes is all that
//! it waits for.

use super::{C, Times};
use crate::model::{PhaseType, StateSpace};
use nalgebra::{DMatrix, DVector};

/// What jobs that are accepted by one pool find there, and what their service is like.
pub(super) struct Queue {
    law: PhaseType,
    /// Rate of jobs that find k jobs, the first in phase m, at `found[k - 1][m]`.
    found: Vec<Vec<f64>>,
    /// If the rates go on geometrically beyond `found`: the ratio.
    ratio: Option<f64>,
    /// Rate of jobs that find an idle server.
    idle: f64,
    /// Mean service left from each phase.
    left: Vec<f64>,
    /// Do phases lead to later ones only? So they do in all laws but general ones.
    forward: bool,
}

impl Queue {
    pub(super) fn new(states: &StateSpace, j: usize, met: &[f64]) -> Self {
        let pool = &states.pools[j];
        let speed = pool.speed_at(1);
        let law = pool.law.with_mean(pool.law.mean() / speed).unwrap_or_else(|_| pool.law.clone());
        let room = (1..=pool.levels).filter(|&k| !pool.is_full(k));
        let mut found: Vec<Vec<f64>> = room.map(|k| met[pool.level(k)].to_vec()).collect();
        // Levels that all but no job finds cost time and change nothing.
        let total: f64 = found.iter().flatten().sum();
        let mut rest = 0.0;
        while let Some(last) = found.last() {
            rest += last.iter().sum::<f64>();
            if rest > 1e-13 * total {
                break;
            }
            found.pop();
        }
        let ratio = geometric(&found);
        if ratio.is_some() {
            found.truncate(CORE + 1);
        }
        let forward = law.moves().iter().enumerate().all(|(m, row)| row[..m].iter().all(|r| *r == 0.0));
        Self { found, ratio, idle: met[pool.offset], left: law.mean_left(), forward, law }
    }

    /// The transform of the service left in each phase: x with (s I - T) x = exit, T the sub-generator of
    /// the law.
    fn left_transform(&self, s: C) -> DVector<C> {
        let law = &self.law;
        let n = law.phases();
        let exit = |m: usize| C::from(law.exit()[m]);
        if self.forward {
            let mut x = DVector::from_element(n, C::from(0.0));
            for m in (0..n).rev() {
                let on: C = (m + 1..n).map(|to| x[to] * law.moves()[m][to]).sum();
                x[m] = (exit(m) + on) / (s + law.rate(m));
            }
            return x;
        }
        let matrix =
            DMatrix::from_fn(n, n, |i, j| if i == j { s + law.rate(i) } else { C::from(-law.moves()[i][j]) });
        let exits = DVector::from_fn(n, |m, _| exit(m));
        matrix.lu().solve(&exits).unwrap_or(exits)
    }
}

impl Times for Queue {
    fn accepted(&self) -> f64 {
        let rest = self.ratio.map_or(0.0, |r| self.found[CORE][0] * r / (1.0 - r));
        self.idle + self.found.iter().flatten().sum::<f64>() + rest
    }

    fn at_once(&self) -> f64 {
        self.idle
    }

    fn work(&self, own_service: bool) -> f64 {
        let mean = self.law.mean();
        let level = |(k, found): (usize, &Vec<f64>)| {
            #[allow(clippy::cast_precision_loss)]
            let whole = k as f64 * mean;
            found.iter().zip(&self.left).map(|(r, left)| r * (left + whole)).sum::<f64>()
        };
        let core: f64 = self.found.iter().enumerate().map(level).sum();
        // Beyond the core: sum over i >= 1 of (CORE + 1 + i) mean r^i.
        let rest = self.ratio.map_or(0.0, |r| {
            #[allow(clippy::cast_precision_loss)]
            let core = (CORE + 1) as f64;
            self.found[CORE][0] * mean * (core * r / (1.0 - r) + r / ((1.0 - r) * (1.0 - r)))
        });
        let service = if own_service { self.accepted() * mean } else { 0.0 };
        core + rest + service
    }

    fn transform(&self, s: C, own_service: bool) -> C {
        let left = self.left_transform(s);
        let whole: C = left.iter().zip(self.law.initial()).map(|(b, p)| b * *p).sum();
        let mut sum = match self.ratio {
            Some(r) => left[0] * r * self.found[CORE][0] / (C::from(1.0) - whole * r),
            None => C::from(0.0),
        };
        for found in self.found.iter().rev() {
            let here: C = found.iter().zip(left.iter()).map(|(r, b)| b * *r).sum();
            sum = sum * whole + here;
        }
        let waits = sum + self.idle;
        if own_service { waits * whole } else { waits }
    }
}

/// Levels kept where the rates beyond go on geometrically.
const CORE: usize = 50;

/// The ratio of the rates beyond level CORE, if it is one number and one phase.
fn geometric(found: &[Vec<f64>]) -> Option<f64> {
    if found.len() < 4 * CORE || found[0].len() > 1 {
        return None;
    }
    let ratio = found[CORE + 1][0] / found[CORE][0];
    let same = found[CORE..].windows(2).all(|x| (x[1][0] - ratio * x[0][0]).abs() <= 1e-10 * x[0][0]);
    (same && ratio < 1.0).then_some(ratio)
}
