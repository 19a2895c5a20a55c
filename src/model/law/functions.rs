//! Density, distribution function, survival function, hazard rate and quantile of a law.
//!
//! Relative errors are of the order of 1e-14 wherever the value itself does not underflow; for laws
//! whose phases can be visited again they grow with the number of phase changes.

use super::PhaseType;
use super::walk::Walk;

impl PhaseType {
    /// Density at t, per unit of time; 0 for t < 0.
    #[must_use]
    pub fn density(&self, t: f64) -> f64 {
        if t < 0.0 { 0.0 } else { self.leaving(&Walk::new(self).at(t)) }
    }

    /// Distribution function P(X <= t).
    #[must_use]
    pub fn distribution(&self, t: f64) -> f64 {
        Walk::new(self).at(t)[self.phases()].min(1.0)
    }

    /// Survival function P(X > t).
    #[must_use]
    pub fn survival(&self, t: f64) -> f64 {
        Walk::new(self).at(t)[..self.phases()].iter().sum::<f64>().min(1.0)
    }

    /// Hazard rate at age t, density over survival, per unit of time; NaN where the survival function
    /// is below the smallest double.
    #[must_use]
    pub fn hazard(&self, t: f64) -> f64 {
        let at = Walk::new(self).at(t);
        self.leaving(&at) / at[..self.phases()].iter().sum::<f64>()
    }

    /// The t with P(X <= t) = p: 0 for p <= 0, infinite for p >= 1. The relative error is about
    /// 1e-15 / min(p, 1 - p), which is what p itself is known to.
    #[must_use]
    pub fn quantile(&self, p: f64) -> f64 {
        if p.is_nan() {
            return f64::NAN;
        } else if p <= 0.0 {
            return 0.0;
        } else if p >= 1.0 {
            return f64::INFINITY;
        }
        let walk = Walk::new(self);
        let m = self.phases();
        // The logarithm of the smaller of the two tails, so that both ends keep their digits.
        let lower = p < 0.5;
        let target = if lower { p.ln() } else { (-p).ln_1p() };
        let above = |at: &[f64]| {
            let value = if lower { at[m] } else { at[..m].iter().sum() };
            (value.ln(), self.leaving(at) / value)
        };
        let (mut low, mut high) = (0.0, self.mean);
        while (above(&walk.at(high)).0 < target) == lower && high.is_finite() {
            low = high;
            high *= 2.0;
        }
        let mut t = 0.5 * (low + high);
        for _ in 0..2000 {
            let (value, slope) = above(&walk.at(t));
            if (value < target) == lower {
                low = t;
            } else {
                high = t;
            }
            let newton = t + if lower { target - value } else { value - target } / slope;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            if (next - t).abs() <= f64::EPSILON * t || high - low <= f64::EPSILON * high {
                return next;
            }
            t = next;
        }
        t
    }

    /// Log-likelihood of independent service times; minus infinity if one of them is impossible.
    #[must_use]
    pub fn log_likelihood(&self, times: &[f64]) -> f64 {
        let walk = Walk::new(self);
        times.iter().map(|&t| if t < 0.0 { f64::NEG_INFINITY } else { self.leaving(&walk.at(t)).ln() }).sum()
    }

    /// Rate at which jobs in these phases end.
    fn leaving(&self, at: &[f64]) -> f64 {
        at.iter().zip(&self.exit).map(|(p, e)| p * e).sum()
    }
}
