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

mod inversion;
mod queue;
mod tagged;

use super::drift::Field;
use super::fixed_point::{FixedPoint, escaped_mass, without};
use super::flows;
use crate::model::{Durations, JobTimes, Model, Policy, Pool, PoolTimes, StateSpace, Value};
use inversion::{crossing, euler};
use nalgebra::Complex;
use queue::Queue;
use tagged::Tagged;

type C = Complex<f64>;

/// What is known of the times of jobs that one pool accepts, all as rates of jobs times means.
trait Times {
    /// Rate of these jobs.
    fn accepted(&self) -> f64;
    /// Rate of those that do not wait.
    fn at_once(&self) -> f64;
    /// Rate times the mean wait, or the mean stay.
    fn work(&self, own_service: bool) -> f64;
    /// Rate times the transform of the wait, or of the stay.
    fn transform(&self, s: C, own_service: bool) -> C;
}

/// Waiting and response times of a job that comes to `model` at its fixed point, or, where pools grow, in
/// the limit: jobs that go to those never return. `None` without jobs, and where speeds depend on the level
/// or servers have several slots and queues are long: some hundred levels are followed.
#[must_use]
pub fn job_times(model: &Model, fixed: &FixedPoint) -> Option<JobTimes> {
    if model.arrival_rate <= 0.0 {
        return None;
    }
    let states = &fixed.states;
    let settled = without(model, &fixed.growth);
    let met = met(model, &settled, fixed);
    let mut found = (0..settled.pools.len()).map(|j| times(&settled.pools[j], states, j, &met, fixed));
    let mut queues: Vec<Option<Box<dyn Times>>> = Vec::with_capacity(model.pools.len());
    for growth in &fixed.growth {
        queues.push(if growth.is_some() { None } else { Some(found.next()??) });
    }
    let settle: Vec<&dyn Times> = queues.iter().flatten().map(|q| &**q).collect();
    let to_growing = |(p, g): (&Pool, &Option<f64>)| g.map(|g| p.share * (p.service_rate() + g));
    let endless: f64 = model.pools.iter().zip(&fixed.growth).filter_map(to_growing).sum();
    let all = [false, true].map(|own_service| durations(&settle, endless, own_service));
    let pool = |(queue, pool): (&Option<Box<dyn Times>>, &Pool)| {
        let [waiting_time, response_time] = match queue {
            // The times of the only pool are those of all jobs.
            Some(_) if model.pools.len() == 1 => all.clone(),
            Some(queue) => [false, true].map(|own_service| durations(&[&**queue], 0.0, own_service)),
            None => Default::default(),
        };
        PoolTimes { name: pool.name.clone(), jobs: None, waiting_time, response_time }
    };
    let pools = queues.iter().zip(&model.pools).map(pool).collect();
    let [waiting_time, response_time] = all;
    Some(JobTimes { jobs: None, waiting_time, response_time, pools })
}

fn times(
    pool: &Pool,
    states: &StateSpace,
    j: usize,
    met: &[f64],
    fixed: &FixedPoint,
) -> Option<Box<dyn Times>> {
    if pool.slots > 1 || pool.speed.len() > 1 {
        return Some(Box::new(Tagged::new(states, j, met, &fixed.occupancy)?));
    }
    Some(Box::new(Queue::new(states, j, met)))
}

/// The rate of jobs that find a server in each state of the pools that settle.
fn met(model: &Model, settled: &Model, fixed: &FixedPoint) -> Vec<f64> {
    let (states, q) = (&fixed.states, &fixed.occupancy);
    if q.is_empty() {
        return Vec::new();
    }
    if model.policy.routers.is_some() && model.pools.iter().all(Pool::is_plain) {
        // Unequal routers have service like this only. At rest as many servers of a pool go up from each
        // level as come down to it.
        let mut met = vec![0.0; states.len()];
        for pool in &states.pools {
            for k in 0..pool.levels {
                let (from, to) = (pool.level(k).start, pool.level(k + 1).start);
                met[from] = pool.law.rate(0) * q[to];
            }
        }
        return met;
    }
    let policy = Policy { routers: None, ..settled.policy.clone() };
    let settled = Model { policy, ..settled.clone() };
    let field = Field::beside(&settled, states, fixed.open, escaped_mass(model, &fixed.growth));
    flows::meets(&field, states, q).0
}

/// Mean and quantiles over the jobs of these queues and of others, at rate `endless`, that never return.
fn durations(queues: &[&dyn Times], endless: f64, own_service: bool) -> Durations {
    let settled: f64 = queues.iter().map(|q| q.accepted()).sum();
    let total = settled + endless;
    if total <= 0.0 {
        return Durations::default();
    }
    let mean = queues.iter().map(|q| q.work(own_service)).sum::<f64>() / total;
    let at_once = if own_service { 0.0 } else { queues.iter().map(|q| q.at_once()).sum::<f64>() / total };
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
