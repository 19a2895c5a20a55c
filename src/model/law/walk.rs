//! Where a job stands at a given age: the transient of the law's chain.
//!
//! Every method here adds and multiplies non-negative numbers only, so small survival probabilities
//! and small distribution functions keep their relative accuracy.

use super::PhaseType;

/// Steps of uniformisation are this long, in expected jumps: exp(-x) stays far from underflow.
const STEP: f64 = 128.0;
/// Above this many expected jumps, squaring is cheaper and more accurate than stepping.
const MOST_JUMPS: f64 = 4096.0;
/// Squaring takes dense matrices; larger laws are stepped however long it takes.
const LARGEST_DENSE: usize = 64;

/// A law prepared for many ages.
pub(super) struct Walk<'a> {
    law: &'a PhaseType,
    /// Total rate out of each phase.
    rates: Vec<f64>,
    fastest: f64,
    /// (from, to, rate) of every move; to = M is the end.
    links: Vec<(usize, usize, f64)>,
    /// No phase leads to another: a mixture of exponentials.
    mixture: bool,
    /// Phases lead to later phases only.
    ordered: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(law: &'a PhaseType) -> Self {
        let m = law.phases();
        let mut links = Vec::new();
        let (mut mixture, mut ordered) = (true, true);
        for (i, row) in law.moves.iter().enumerate() {
            for (j, &rate) in row.iter().enumerate().filter(|(_, r)| **r > 0.0) {
                links.push((i, j, rate));
                mixture = false;
                ordered &= j > i;
            }
            links.push((i, m, law.exit[i]));
        }
        let rates: Vec<f64> = (0..m).map(|i| law.rate(i)).collect();
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        Self { law, rates, fastest, links, mixture, ordered }
    }

    /// The probability of each phase at age t, and last of having ended; NaN if t is.
    pub(super) fn at(&self, t: f64) -> Vec<f64> {
        let m = self.law.phases();
        let mut start = self.law.initial.clone();
        start.push(0.0);
        let jumps = self.fastest * t;
        if t.is_nan() {
            vec![f64::NAN; m + 1]
        } else if t <= 0.0 {
            start
        } else if !jumps.is_finite() {
            (0..=m).map(|i| if i == m { 1.0 } else { 0.0 }).collect()
        } else if self.mixture {
            self.mixed(t)
        } else if jumps <= MOST_JUMPS || m > LARGEST_DENSE {
            self.stepped(start, jumps)
        } else {
            self.squared(&start, t)
        }
    }

    fn mixed(&self, t: f64) -> Vec<f64> {
        let parts = || self.law.initial.iter().zip(&self.rates);
        let mut at: Vec<f64> = parts().map(|(p, r)| p * (-r * t).exp()).collect();
        at.push(parts().map(|(p, r)| -p * (-r * t).exp_m1()).sum());
        at
    }

    /// Uniformisation: a Poisson number of jumps of the chain that jumps at the fastest rate.
    fn stepped(&self, mut at: Vec<f64>, jumps: f64) -> Vec<f64> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let steps = (jumps / STEP).ceil().max(1.0) as u64;
        #[allow(clippy::cast_precision_loss)]
        let x = jumps / steps as f64;
        for _ in 0..steps {
            at = self.step(at, x);
            if self.alive(&at) == 0.0 {
                break;
            }
        }
        at
    }

    /// One step of x expected jumps.
    fn step(&self, mut term: Vec<f64>, x: f64) -> Vec<f64> {
        const NEGLIGIBLE: f64 = 1e-17;
        let m = self.law.phases();
        // What has ended stays so, exactly.
        let ended = std::mem::take(&mut term[m]);
        let mut weight = (-x).exp();
        let mut sum: Vec<f64> = term.iter().map(|p| p * weight).collect();
        let mut k = 0.0;
        loop {
            term = self.jump(&term);
            k += 1.0;
            weight *= x / k;
            for (s, p) in sum.iter_mut().zip(&term) {
                *s += weight * p;
            }
            // From here on the weights fall at least geometrically: the rest is below this.
            let rest = if k + 1.0 > x { weight * x / (k + 1.0 - x) } else { f64::INFINITY };
            let alive_done = rest * self.alive(&term) <= NEGLIGIBLE * self.alive(&sum);
            if (alive_done && rest <= NEGLIGIBLE * sum[m]) || weight == 0.0 {
                sum[m] += ended;
                return sum;
            }
        }
    }

    /// One jump of the uniformised chain.
    fn jump(&self, at: &[f64]) -> Vec<f64> {
        let mut next: Vec<f64> =
            at.iter().zip(&self.rates).map(|(p, r)| p * ((self.fastest - r) / self.fastest)).collect();
        next.push(at[self.law.phases()]);
        for &(from, to, rate) in &self.links {
            next[to] += at[from] * (rate / self.fastest);
        }
        next
    }

    fn alive(&self, at: &[f64]) -> f64 {
        at[..self.law.phases()].iter().sum()
    }

    /// Scaling and squaring of the transition matrix. Where phases lead to later phases only, the
    /// diagonal is known in closed form and is put in after each squaring: the error then grows with
    /// the number of squarings and not with the time (the idea of A. H. Al-Mohy and N. J. Higham,
    /// SIAM J. Matrix Anal. Appl. 31, 2009).
    fn squared(&self, start: &[f64], t: f64) -> Vec<f64> {
        let m = self.law.phases();
        let halvings = (self.fastest * t).log2().ceil().max(0.0);
        let mut h = t * (-halvings).exp2();
        let mut matrix: Vec<Vec<f64>> = (0..=m)
            .map(|i| self.step((0..=m).map(|j| if i == j { 1.0 } else { 0.0 }).collect(), self.fastest * h))
            .collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        for _ in 0..halvings as u32 {
            h *= 2.0;
            matrix = matrix.iter().map(|row| times(row, &matrix)).collect();
            if self.ordered {
                for (i, rate) in self.rates.iter().enumerate() {
                    matrix[i][i] = (-rate * h).exp();
                }
            }
        }
        times(start, &matrix)
    }
}

/// A row vector times a matrix.
fn times(row: &[f64], matrix: &[Vec<f64>]) -> Vec<f64> {
    let mut product = vec![0.0; row.len()];
    for (x, line) in row.iter().zip(matrix).filter(|(x, _)| **x > 0.0) {
        for (p, y) in product.iter_mut().zip(line) {
            *p += x * y;
        }
    }
    product
}
