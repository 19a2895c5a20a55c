//! From transforms to survival functions, and from these to quantiles.

use super::C;

/// The value at t > 0 of the function with this transform.
pub(super) fn euler(t: f64, transform: impl Fn(C) -> C) -> f64 {
    /// The discretisation is off by exp(-A) times the largest value of the function.
    const A: f64 = 21.0;
    const PLAIN: u32 = 40;
    const AVERAGED: u32 = 14;
    let half = 0.5 * A / t;
    let term = |k: u32| transform(C::new(half, f64::from(k) * std::f64::consts::PI / t)).re;
    let mut sum = 0.5 * term(0);
    let mut sign = -1.0;
    for k in 1..=PLAIN {
        sum += sign * term(k);
        sign = -sign;
    }
    // Euler's summation: partial sums averaged with binomial weights.
    let (mut averaged, mut weight) = (sum, 1.0);
    for k in 1..=AVERAGED {
        sum += sign * term(PLAIN + k);
        sign = -sign;
        weight *= f64::from(AVERAGED + 1 - k) / f64::from(k);
        averaged += weight * sum;
    }
    averaged / f64::from(1u32 << AVERAGED) * (0.5 * A).exp() / t
}

/// Where a decreasing function falls to `level`, starting from a guess of the scale.
pub(super) fn crossing(survival: &impl Fn(f64) -> f64, level: f64, scale: f64) -> f64 {
    const FAR: f64 = 1e9;
    let (mut low, mut high) = (scale, scale);
    while survival(low) < level && low > scale / FAR {
        high = low;
        low *= 0.5;
    }
    while survival(high) > level && high < scale * FAR {
        low = high;
        high *= 2.0;
    }
    // Regula falsi in the logarithm of the survival, with the Illinois rule: tails are near exponential.
    let g = |t: f64| (survival(t).max(1e-300) / level).ln();
    let (mut g_low, mut g_high) = (g(low), g(high));
    for _ in 0..60 {
        let t = (high - g_high * (high - low) / (g_high - g_low)).clamp(low, high);
        if high - low < 1e-12 * high || t <= low || t >= high {
            break;
        }
        let value = g(t);
        if value.abs() < 1e-9 {
            return t;
        }
        if value > 0.0 {
            (low, g_low, g_high) = (t, value, 0.5 * g_high);
        } else {
            (high, g_high, g_low) = (t, value, 0.5 * g_low);
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inversion_knows_exponentials_steps_apart() {
        for t in [1e-3, 0.1, 1.0, 5.0, 20.0] {
            let f = euler(t, |s| C::from(1.0) / (s + 1.0));
            assert!((f - (-t).exp()).abs() < 2e-9, "{t}: {f}");
            // A sum of 50 exponential times: survival sums Poisson probabilities.
            let b = |s: C| (C::from(50.0) / (s + 50.0)).powu(50);
            let f = euler(t, |s| (C::from(1.0) - b(s)) / s);
            let (mut term, mut sum) = ((-50.0 * t).exp(), 0.0);
            for k in 1..=50 {
                sum += term;
                term *= 50.0 * t / f64::from(k);
            }
            assert!((f - sum).abs() < 1e-8, "{t}: {f} against {sum}");
        }
    }
}
