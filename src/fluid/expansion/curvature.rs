//! How the flow of jobs to each state bends with the occupancy, and what sampling distinct servers changes
//! in it at finite n.
//!
//! The drift is linear but for the jobs that states meet. A state of an open tier of mass u = w q meets
//! f_s = lambda w_s q_s / u; under a fallback that samples d servers it meets f_s = lambda q_s h(X_k, X_k+1),
//! k its level and h = (x^d - y^d) / (x - y). Contracted with a symmetric W these have the second
//! derivatives below: never is a tensor built.

use crate::fluid::dispatch::{Dispatch, Target, choice_rate};

/// Sum over s', s'' of W_s's'' times the second derivative of f_s, for every state s.
///
/// `w(s, s')` is the matrix, zero outside `members`.
pub(super) fn bend(
    d: &Dispatch,
    q: &[f64],
    members: &[usize],
    tails: &[f64],
    w: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let mut bent = vec![0.0; q.len()];
    match &d.target {
        Target::Tier { states, weights } if states.len() > 1 => {
            let mut weight = vec![0.0; q.len()];
            states.iter().zip(weights).for_each(|(&s, &x)| weight[s] = x);
            let u: f64 = states.iter().zip(weights).map(|(&s, x)| x * q[s]).sum();
            let along = |s: usize| members.iter().map(|&t| w(s, t) * weight[t]).sum::<f64>();
            let all: f64 = members.iter().map(|&s| weight[s] * along(s)).sum();
            for &s in members.iter().filter(|&&s| weight[s] > 0.0) {
                let curve = -2.0 * along(s) / (u * u) + 2.0 * q[s] * all / (u * u * u);
                bent[s] = d.arrival_rate * weight[s] * curve;
            }
        }
        Target::Fallback(f) if f.d > 1 => {
            // W of each member with each tail, and of neighbouring tails with each other.
            let levels = d.groups();
            let by_tail: Vec<Vec<f64>> = members
                .iter()
                .map(|&s| {
                    let mut row = vec![0.0; levels + 1];
                    members.iter().for_each(|&t| row[d.level[t]] += w(s, t));
                    (0..levels).rev().for_each(|k| row[k] += row[k + 1]);
                    row
                })
                .collect();
            let mut same = vec![0.0; levels + 1];
            let mut next = vec![0.0; levels + 1];
            for (&s, row) in members.iter().zip(&by_tail) {
                let k = d.level[s];
                same[k] += row[k];
                // Tails below take s in as well.
                (0..k).for_each(|l| same[l] += row[l]);
                (0..=k.min(levels - 1)).for_each(|l| next[l] += row[l + 1]);
            }
            for (&s, row) in members.iter().zip(&by_tail) {
                let k = d.level[s];
                let p = Partials::at(tails[k], tails[k + 1], f.d);
                let curve = 2.0 * (p.x * row[k] + p.y * row[k + 1])
                    + q[s] * (p.xx * same[k] + 2.0 * p.xy * next[k] + p.yy * same[k + 1]);
                bent[s] = d.arrival_rate * curve;
            }
        }
        _ => {}
    }
    bent
}

/// n times what the flow to each state changes if the d servers are distinct: then all of them hold k jobs
/// or more with probability X_k^d - d (d - 1) (X_k^(d-1) - X_k^d) / 2n + O(1/n^2).
pub(super) fn distinct(d: &Dispatch, q: &[f64], tails: &[f64]) -> Vec<f64> {
    let Target::Fallback(f) = d.target else { return vec![0.0; q.len()] };
    if f.replacement || f.d < 2 {
        return vec![0.0; q.len()];
    }
    let pairs = f64::from(f.d) * f64::from(f.d - 1) / 2.0;
    let rate = |s: usize| {
        let (x, y) = (tails[d.level[s]], tails[d.level[s] + 1]);
        -pairs * (choice_rate(x, y, f.d - 1) - choice_rate(x, y, f.d))
    };
    (0..q.len()).map(|s| d.arrival_rate * q[s] * rate(s)).collect()
}

/// First and second partial derivatives of (x^d - y^d) / (x - y).
#[derive(Debug, Default)]
struct Partials {
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Partials {
    /// By Horner's rule in y, and the same rule differentiated: a sum of positive terms.
    fn at(x: f64, y: f64, d: u32) -> Self {
        let mut p = Self::default();
        let mut h = 0.0;
        // x^i and its derivatives.
        let (mut power, mut slope, mut curve) = (1.0, 0.0, 0.0);
        for _ in 0..d {
            p.yy = p.yy * y + 2.0 * p.y;
            p.xy = p.xy * y + p.x;
            p.y = p.y * y + h;
            p.xx = p.xx * y + curve;
            p.x = p.x * y + slope;
            h = h * y + power;
            curve = curve * x + 2.0 * slope;
            slope = slope * x + power;
            power *= x;
        }
        p
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::dispatch::choice_rate_partials;

    #[test]
    fn second_partials_are_differences_of_first_ones() {
        for d in [1, 2, 3, 5, 20] {
            let (x, y, e) = (0.8, 0.3, 1e-5);
            let p = Partials::at(x, y, d);
            let (_, hx, hy) = choice_rate_partials(x, y, d);
            assert!((p.x - hx).abs() < 1e-12 && (p.y - hy).abs() < 1e-12);
            let by_x = |of: fn((f64, f64, f64)) -> f64| {
                (of(choice_rate_partials(x + e, y, d)) - of(choice_rate_partials(x - e, y, d))) / (2.0 * e)
            };
            let yy = (choice_rate_partials(x, y + e, d).2 - choice_rate_partials(x, y - e, d).2) / (2.0 * e);
            for (found, wanted) in [(p.xx, by_x(|h| h.1)), (p.xy, by_x(|h| h.2)), (p.yy, yy)] {
                assert!((found - wanted).abs() < 1e-7 * (1.0 + wanted.abs()), "{d}: {found} {wanted}");
            }
        }
    }
}
