//! The drift under sampled queues to twice the working precision.
//!
//! Near criticality a residual at rounding level still leaves an error of rounding / gap in the fixed
//! point. Newton's method with an accurate residual removes it: what remains is the rounding of the
//! solution's own entries. Numbers are sums of two doubles (Dekker, Knuth), with exact products by
//! fused multiply-add.

use super::dispatch::Target;
use super::drift::Field;
use crate::model::StateSpace;

/// A number as an unevaluated sum of a double and its rounding error.
#[derive(Debug, Clone, Copy)]
struct Double(f64, f64);

impl Double {
    fn of(x: f64) -> Self {
        Self(x, 0.0)
    }

    fn plus(self, other: Self) -> Self {
        let sum = self.0 + other.0;
        let part = sum - self.0;
        let error = (self.0 - (sum - part)) + (other.0 - part);
        let low = error + self.1 + other.1;
        let high = sum + low;
        Self(high, low - (high - sum))
    }

    fn times(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let error = self.0.mul_add(other.0, -product);
        let low = error + self.0 * other.1 + self.1 * other.0;
        let high = product + low;
        Self(high, low - (high - product))
    }

    fn minus(self) -> Self {
        Self(-self.0, -self.1)
    }
}

/// Writes the drift at q into `dq`, accurate to rounding of each component; `false` if the field's
/// arrivals do not go to a fallback that samples.
pub(super) fn drift(field: &Field, q: &[f64], dq: &mut [f64]) -> bool {
    let d = &field.dispatch;
    let Target::Fallback(fallback) = d.target else { return false };
    let mut out = vec![Double::of(0.0); q.len()];
    let mut carry = |from: usize, to: usize, flow: Double| {
        out[from] = out[from].plus(flow.minus());
        out[to] = out[to].plus(flow);
    };
    for m in &field.moves {
        carry(m.from, m.to, Double::of(m.rate).times(Double::of(q[m.from])));
    }
    let mut reach = Double::of(d.arrival_rate);
    for &(s, rate) in d.closed.iter().flatten() {
        reach = reach.plus(Double::of(rate).times(Double::of(q[s])).minus());
    }
    let levels = d.groups() + 1;
    let mut tails = vec![Double::of(0.0); levels.max(d.level.iter().max().map_or(0, |l| l + 2))];
    for (s, &level) in d.level.iter().enumerate() {
        tails[level] = tails[level].plus(Double::of(q[s]));
    }
    let last = tails.len() - 1;
    // Endless queues come last, but for full servers that are passed over.
    let endless = if fallback.skip_full { d.groups() - 2 } else { last };
    tails[endless] = tails[endless].plus(Double::of(d.escaped));
    for k in (0..last).rev() {
        tails[k] = tails[k].plus(tails[k + 1]);
    }
    let rates: Vec<Double> = tails
        .windows(2)
        .map(|x| {
            let (mut sum, mut power) = (Double::of(0.0), Double::of(1.0));
            for _ in 0..fallback.d {
                sum = sum.times(x[1]).plus(power);
                power = power.times(x[0]);
            }
            sum.times(reach)
        })
        .collect();
    for arc in &d.arcs {
        let rate = if fallback.d > 1 { rates[arc.group] } else { reach };
        carry(arc.from, arc.to, rate.times(Double::of(q[arc.from])).times(Double::of(arc.share)));
    }
    dq.iter_mut().zip(&out).for_each(|(dq, x)| *dq = x.0 + x.1);
    dq.iter().all(|x| x.is_finite())
}

/// Makes each pool's mass its share by what it has idle, summed to twice the working precision. Near
/// criticality few servers are idle, and a defect of rounding in the mass would be many times that in
/// the answer. Where the idle mass itself is at rounding level it is left alone.
pub(super) fn restore_mass(states: &StateSpace, closed: &[Option<usize>], q: &mut [f64]) {
    const SMALL_CHANGE: f64 = 1e-6;
    for pool in states.pools.iter().filter(|p| closed[p.offset].is_none()) {
        let busy = pool.offset + 1..pool.range().end;
        let idle = q[busy].iter().fold(Double::of(pool.share), |sum, &x| sum.plus(Double::of(-x)));
        let idle = idle.0 + idle.1;
        if (idle - q[pool.offset]).abs() < SMALL_CHANGE * idle {
            q[pool.offset] = idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_sums_keep_what_rounding_drops() {
        let e = f64::EPSILON;
        // (1 + e)(1 - e) = 1 - e^2, which a double rounds to 1.
        let p = Double::of(1.0 + e).times(Double::of(1.0 - e)).plus(Double::of(-1.0));
        assert_eq!(p.0 + p.1, -e * e);
        let s = Double::of(1.0).plus(Double::of(1e-20)).plus(Double::of(-1.0));
        assert_eq!(s.0 + s.1, 1e-20);
    }
}
