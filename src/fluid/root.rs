//! Where a function of one variable crosses zero.

/// Halves the interval from `low`, where `holds`, to `high`, where it does not, down to neighbouring
/// numbers.
pub(super) fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    // From a subnormal number to the largest there are some 1100 halvings.
    for _ in 0..1200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) { low = middle } else { high = middle }
    }
    (low, high)
}

/// Regula falsi with the Illinois rule, the side that stays keeping half its value: from a < b with values
/// of which the first is negative. `at` gives the state and the value at a time; what comes back is the
/// last time it was asked for, and the state, or nothing if rounding leaves no time between a and b.
pub(super) fn crossing<T>(
    (mut a, mut ga): (f64, f64),
    (mut b, mut gb): (f64, f64),
    mut at: impl FnMut(f64) -> (T, f64),
) -> Option<(f64, T)> {
    let mut best = None;
    for _ in 0..80 {
        let t = (b - gb * (b - a) / (gb - ga)).clamp(a, b);
        if t <= a || t >= b {
            break;
        }
        let (state, value) = at(t);
        if value > 0.0 {
            (b, gb) = (t, value);
            ga *= 0.5;
        } else {
            (a, ga) = (t, value);
            gb *= 0.5;
        }
        best = Some((t, state));
        if value.abs() < 1e-17 || b - a <= 2.0 * f64::EPSILON * b {
            break;
        }
    }
    best
}
