//! One pool with exponential service: a tridiagonal system, eliminated without a subtraction.
//!
//! After Grassmann, Taksar and Heyman: what leaves towards the anchor is kept as a sum of positive terms,
//! so the factorisation stays exact when rates differ by many orders of magnitude.

use super::{fullest_level, remove_mass};
use crate::model::{Move, PoolStates};

/// One phase: a tridiagonal matrix. Levels below `ground` are closed.
#[derive(Debug)]
pub struct ScalarPool {
    pub offset: usize,
    pub ground: usize,
    /// The level towards which the others are eliminated.
    anchor: usize,
    /// Rate down from each level, rate up from each level, pivot of each level.
    down: Vec<f64>,
    up: Vec<f64>,
    pivot: Vec<f64>,
    /// For gamma = 0: the stationary vector from the ground level on, 1 at the anchor.
    pub stationary: Option<Vec<f64>>,
}

impl ScalarPool {
    pub fn new(pool: &PoolStates, ground: usize, gamma: f64, moves: &[Move]) -> Self {
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

    pub fn solve(&self, r: &mut [f64]) {
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

    /// The tails of the solution when a unit of mass is lifted from level g to g + 1, for every g:
    /// `take(g, k, x_k)` is called for k > ground where they are not negligible.
    ///
    /// In the tails the matrix is tridiagonal too, and away from its source a solution is a product of
    /// ratios: all columns of the inverse cost one multiplication an entry. What remains of each ratio to 1
    /// is kept as a sum of positive terms.
    pub fn lifted(&self, gamma: f64, mut take: impl FnMut(usize, usize, f64)) {
        const NEGLIGIBLE: f64 = 1e-25;
        let (n, ground) = (self.down.len(), self.ground);
        let (down, up) = (&self.down, &self.up);
        // Below the source x_k = below[k] x_(k+1); above it x_k = above[k] x_(k-1); x_ground = 0.
        let (mut below, mut above) = (vec![0.0; n + 1], vec![0.0; n + 1]);
        let (mut to_below, mut to_above) = (vec![1.0; n + 1], vec![1.0; n + 1]);
        for k in ground + 1..n {
            let kept = gamma + up[k - 1] * to_below[k - 1];
            below[k] = down[k] / (down[k] + kept);
            to_below[k] = kept / (down[k] + kept);
        }
        for k in (ground + 1..n).rev() {
            let kept = gamma + down[k] * to_above[k + 1];
            above[k] = up[k - 1] / (up[k - 1] + kept);
            to_above[k] = kept / (up[k - 1] + kept);
        }
        for source in ground + 1..n {
            let left = gamma + up[source - 1] * to_below[source - 1] + down[source] * to_above[source + 1];
            let at_source = 1.0 / left;
            let negligible = NEGLIGIBLE * at_source.abs();
            take(source - 1, source, at_source);
            let mut x = at_source;
            for (k, ratio) in above.iter().enumerate().take(n).skip(source + 1) {
                x *= ratio;
                if x.abs() < negligible {
                    break;
                }
                take(source - 1, k, x);
            }
            x = at_source;
            for k in (ground + 1..source).rev() {
                x *= below[k];
                if x.abs() < negligible {
                    break;
                }
                take(source - 1, k, x);
            }
        }
    }
}
