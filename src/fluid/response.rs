//! How long a job that comes at the fixed point waits, and how long it stays.
//!
//! The job finds a server of its pool in some state: idle, or with k jobs of which the first is in phase
//! m. It waits for what is left of that service and for k - 1 whole ones, then is served itself. So its
//! times are mixtures of sums of phase-type times, and their transforms are sums over the states
//!
//! ```text
//! E exp(-s W) = sum over states (k, m) of r_km B_m(s) B(s)^(k-1),    E exp(-s (W + X)) = E exp(-s W) B(s)
//! ```
//!
//! with r_km the chance of finding the state, B_m the transform of the service that is left in phase m
//! and B that of a whole one. Survival functions come from the transforms by the Euler algorithm (J. Abate
//! and W. Whitt, ORSA Journal on Computing 7, 1995), good to about 1e-9. It evaluates transforms in the
//! right half-plane only, where they are below 1: long queues do no harm.

use super::drift::Field;
use super::fixed_point::{FixedPoint, escaped_mass, without};
use super::flows;
use crate::model::{Durations, JobTimes, Model, PhaseType, Pool, PoolTimes, StateSpace, Value};
use nalgebra::{Complex, DMatrix, DVector};

type C = Complex<f64>;

/// Waiting and response times of a job that comes to `model` at its fixed point, or, where pools grow, in
/// the limit: jobs that go to those never return. `None` where a server's speed depends on its level (a
/// job's wait then depends on those that come after), and with several routers.
#[must_use]
pub fn job_times(model: &Model, fixed: &FixedPoint) -> Option<JobTimes> {
    let plain = model.policy.routers.is_none() && model.arrival_rate > 0.0;
    if !plain || model.pools.iter().any(|p| p.speed.len() > 1 || p.slots > 1) {
        return None;
    }
    let (states, q) = (&fixed.states, &fixed.occupancy);
    let settled = without(model, &fixed.growth);
    let field = Field::beside(&settled, states, fixed.open, escaped_mass(model, &fixed.growth));
    let met = if q.is_empty() { Vec::new() } else { flows::meets(&field, states, q).0 };
    let mut queues = (0..settled.pools.len()).map(|j| Queue::new(states, j, &met));
    let queues: Vec<Option<Queue>> =
        fixed.growth.iter().map(|g| if g.is_some() { None } else { queues.next() }).collect();
    let settle: Vec<&Queue> = queues.iter().flatten().collect();
    let to_growing = |(p, g): (&Pool, &Option<f64>)| g.map(|g| p.share * (p.service_rate() + g));
    let endless: f64 = model.pools.iter().zip(&fixed.growth).filter_map(to_growing).sum();
    let pool = |(queue, pool): (&Option<Queue>, &Pool)| {
        let (waiting_time, response_time) = match queue {
            Some(queue) => (durations(&[queue], 0.0, false), durations(&[queue], 0.0, true)),
            None => Default::default(),
        };
        PoolTimes { name: pool.name.clone(), jobs: None, waiting_time, response_time }
    };
    Some(JobTimes {
        jobs: None,
        waiting_time: durations(&settle, endless, false),
        response_time: durations(&settle, endless, true),
        pools: queues.iter().zip(&model.pools).map(pool).collect(),
    })
}

/// What jobs that are accepted by one pool find there, and what their service is like.
struct Queue {
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
    fn new(states: &StateSpace, j: usize, met: &[f64]) -> Self {
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

    fn accepted(&self) -> f64 {
        let rest = self.ratio.map_or(0.0, |r| self.found[CORE][0] * r / (1.0 - r));
        self.idle + self.found.iter().flatten().sum::<f64>() + rest
    }

    /// Rate of arrivals times their mean wait.
    fn work(&self) -> f64 {
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
        core + rest
    }

    /// Rate of arrivals times the transform of their wait, or of their stay.
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

/// Mean and quantiles over the jobs of these queues and of others, at rate `endless`, that never return.
fn durations(queues: &[&Queue], endless: f64, own_service: bool) -> Durations {
    let settled: f64 = queues.iter().map(|q| q.accepted()).sum();
    let total = settled + endless;
    if total <= 0.0 {
        return Durations::default();
    }
    let service = |q: &&Queue| if own_service { q.accepted() * q.law.mean() } else { 0.0 };
    let mean = queues.iter().map(|q| q.work() + service(q)).sum::<f64>() / total;
    let at_once = if own_service { 0.0 } else { queues.iter().map(|q| q.idle).sum::<f64>() / total };
    let survival = |t: f64| {
        let of_settled = euler(t, |s| {
            let transform: C = queues.iter().map(|q| q.transform(s, own_service)).sum();
            (C::from(settled) - transform) / s / total
        });
        (of_settled + endless / total).clamp(0.0, 1.0)
    };
    let quantile = |p: f64| -> Option<Value> {
        match 1.0 - p {
            beyond if endless / total >= beyond => None,
            beyond if 1.0 - at_once <= beyond => Some(0.0.into()),
            beyond => Some(crossing(&survival, beyond, mean.max(f64::MIN_POSITIVE)).into()),
        }
    };
    Durations {
        mean: (endless == 0.0).then(|| mean.into()),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p999: quantile(0.999),
    }
}

/// The value at t > 0 of the function with this transform.
fn euler(t: f64, transform: impl Fn(C) -> C) -> f64 {
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
fn crossing(survival: &impl Fn(f64) -> f64, level: f64, scale: f64) -> f64 {
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
