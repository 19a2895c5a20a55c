//! How fast the fluid returns to its fixed point: the rightmost eigenvalue of the Jacobian.
//!
//! Levels that no arrival feeds relax on their own, at the service rates, and are read off: with many
//! levels they form Jordan blocks, which no numerical eigenvalue method resolves. The rest is dense
//! and small, or, when large, its rightmost eigenvalue is found by inverse iteration: in the tails the
//! system is cooperative, so that eigenvalue is real and the smallest in modulus (Perron-Frobenius).

use super::dispatch::Target;
use super::drift::Field;
use super::linear::Factor;
use crate::model::{Model, PhaseType, Pool, StateSpace};
use nalgebra::{DMatrix, Schur};

/// The spectral abscissa of the Jacobian of `field` at its fixed point `q`, on the space where each
/// pool's mass is kept; `None` if the iteration does not settle.
pub(super) fn spectral_abscissa(model: &Model, states: &StateSpace, field: &Field, q: &[f64]) -> Option<f64> {
    const DENSE: usize = 260;
    if let Some(a) = random_routing(model, field) {
        return Some(a);
    }
    // The highest level that arrivals can reach from below.
    let fed = match (&field.dispatch.target, model.policy.tiers.get(field.open)) {
        (Target::Tier { .. }, Some(tier)) => tier.highest(model.pools.len()).saturating_add(1),
        _ => u32::MAX,
    };
    let above = model.pools.iter().filter(|p| fed < u32::MAX && p.buffer.is_none_or(|b| b > fed));
    let slowest = |p: &Pool| law_abscissa(&p.law).map(|a| a * p.speed_at(fed.saturating_add(1)));
    let above = above.filter_map(slowest).reduce(f64::max);
    let kept = coordinates(states, field, fed);
    let below = if kept.is_empty() {
        None
    } else if kept.len() <= DENSE {
        Some(dense(field, q, &kept)?)
    } else {
        Some(inverse_iteration(states, field, q)?)
    };
    [above, below].into_iter().flatten().reduce(f64::max)
}

/// Uniform random routing leaves every pool a birth-death chain with constant rates, whose rightmost
/// eigenvalue is known: -(mu + lambda - 2 sqrt(mu lambda) cos(pi / (B + 1))).
fn random_routing(model: &Model, field: &Field) -> Option<f64> {
    let independent = matches!(field.dispatch.target, Target::Fallback(f) if f.d == 1) && field.open == 0;
    if !independent || model.pools.iter().any(|p| p.law.phases() > 1 || p.speed.len() > 1) {
        return None;
    }
    let lambda = model.arrival_rate;
    let of_pool = |p: &Pool| {
        let cosine = p.buffer.map_or(1.0, |b| (std::f64::consts::PI / (f64::from(b) + 1.0)).cos());
        let mu = p.service_rate();
        // mu + lambda - 2 sqrt(mu lambda) cos, without cancellation near mu = lambda.
        let root = (mu - lambda) / (mu.sqrt() + lambda.sqrt());
        -(root * root + 2.0 * (mu * lambda).sqrt() * (1.0 - cosine))
    };
    model.pools.iter().map(of_pool).reduce(f64::max)
}

/// Eigenvalue with the largest real part of a law's sub-generator.
fn law_abscissa(law: &PhaseType) -> Option<f64> {
    let m = law.phases();
    if m == 1 {
        return Some(-law.rate(0));
    }
    rightmost(DMatrix::from_fn(m, m, |i, j| if i == j { -law.rate(i) } else { law.moves()[i][j] }))
}

pub(super) fn rightmost(matrix: DMatrix<f64>) -> Option<f64> {
    const MOST_SWEEPS: usize = 10_000;
    let schur = Schur::try_new(matrix, f64::EPSILON, MOST_SWEEPS)?;
    schur.complex_eigenvalues().iter().map(|z| z.re).reduce(f64::max)
}

/// The coordinates that are free when each pool's mass is kept, with the one that gives way for each:
/// (state, the pool's lowest open state), for levels up to `fed`.
fn coordinates(states: &StateSpace, field: &Field, fed: u32) -> Vec<(usize, usize)> {
    let mut kept = Vec::new();
    for pool in &states.pools {
        let highest = pool.level(pool.levels.min(fed)).end;
        let mut open = (pool.offset..highest).filter(|&s| field.closed[s].is_none());
        if let Some(ground) = open.next() {
            kept.extend(open.map(|s| (s, ground)));
        }
    }
    kept
}

fn dense(field: &Field, q: &[f64], kept: &[(usize, usize)]) -> Option<f64> {
    let linearisation = field.linearise(q)?;
    let n = kept.len();
    let mut jacobian = DMatrix::zeros(n, n);
    let mut delta = vec![0.0; q.len()];
    for (column, &(s, ground)) in kept.iter().enumerate() {
        delta[s] = 1.0;
        delta[ground] = -1.0;
        let image = linearisation.apply(&delta);
        delta[s] = 0.0;
        delta[ground] = 0.0;
        kept.iter().enumerate().for_each(|(row, &(s, _))| jacobian[(row, column)] = image[s]);
    }
    rightmost(jacobian)
}

fn inverse_iteration(states: &StateSpace, field: &Field, q: &[f64]) -> Option<f64> {
    const MOST_STEPS: f64 = 400.0;
    const MOST_WORK: f64 = 1e10;
    let linearisation = field.linearise(q)?;
    let factor = Factor::new(states, &linearisation, 0.0)?;
    // A shift of mass from idle to full in every pool: it has a part along every slow direction.
    let mut x = vec![0.0; q.len()];
    for pool in &states.pools {
        if let Some(ground) = pool.range().find(|&s| field.closed[s].is_none()) {
            x[ground] = -pool.share;
            x[pool.range().end - 1] += pool.share;
        }
    }
    // A solve multiplies each state with those of its level, in both directions, twice, and once more
    // to refine. With hundreds of phases hundreds of steps would take minutes.
    let work: f64 = states.pools.iter().map(|p| 8.0 * p.len() as f64 * p.phases() as f64).sum();
    let steps = (MOST_WORK / work).min(MOST_STEPS) as u32;
    let mut last = f64::NAN;
    for _ in 0..steps {
        let before: f64 = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let old = x.clone();
        if !factor.solve(&mut x) {
            return None;
        }
        let along: f64 = x.iter().zip(&old).map(|(a, b)| a * b).sum::<f64>() / (before * before);
        let size = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.iter_mut().for_each(|v| *v /= size);
        let estimate = -1.0 / along;
        if (estimate - last).abs() < 1e-11 * estimate.abs() {
            return estimate.is_finite().then_some(estimate);
        }
        last = estimate;
    }
    None
}
