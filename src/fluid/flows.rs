//! What the occupancy means to a job: flows of arrivals, and the measures made of them.

use super::dispatch::{self, Target};
use super::drift::{Composition, Field, Scratch};
use crate::model::{Measures, Messages, Model, PoolMeasures, StateSpace, Value};

/// Rates per server of all pools at which things happen in one pool.
#[derive(Debug, Clone, Default)]
pub(super) struct PoolFlows {
    /// Arrivals that find a server with a free slot (idle, where it has one only), a busy one with room, a
    /// full one.
    pub idle: f64,
    pub wait: f64,
    pub block: f64,
    /// Services that end.
    pub completed: f64,
    /// Services that leave a slot free, if only until the next job is handed to it.
    pub to_idle: f64,
    /// Mean number of jobs, of jobs in a slot, and of busy servers: per server of all pools.
    pub jobs: f64,
    pub served: f64,
    pub busy: f64,
}

/// The flows in each pool, and the rate at which jobs reach the fallback.
#[derive(Debug, Clone, Default)]
pub(super) struct Flows {
    pub pools: Vec<PoolFlows>,
    pub fallback: f64,
}

/// The flows at q in the mode of `field`.
pub(super) fn flows(field: &Field, states: &StateSpace, q: &[f64]) -> Flows {
    let (met, fallback) = meets(field, states, q);
    Flows { pools: by_pool(states, q, &met), fallback }
}

/// The flows in each pool, given the flow of jobs to each state.
pub(super) fn by_pool(states: &StateSpace, q: &[f64], met: &[f64]) -> Vec<PoolFlows> {
    let mut pools = vec![PoolFlows::default(); states.pools.len()];
    for (pool, flows) in states.pools.iter().zip(&mut pools) {
        let mut tail = 0.0;
        for k in (0..=pool.levels).rev() {
            for (m, s) in pool.level(k).enumerate() {
                match k {
                    _ if k < pool.slots => flows.idle += met[s],
                    _ if pool.is_full(k) => flows.block += met[s],
                    _ => flows.wait += met[s],
                }
                if k > 0 {
                    let ended = pool.speed_at(k) * pool.law.exit()[m] * q[s];
                    flows.completed += ended;
                    flows.to_idle += if k <= pool.slots { ended } else { 0.0 };
                    tail += q[s];
                }
            }
            flows.jobs += if k > 0 { tail } else { 0.0 };
            flows.served += if (1..=pool.slots).contains(&k) { tail } else { 0.0 };
        }
        flows.busy = tail;
    }
    pools
}

/// The rate at which jobs are sent to servers in each state, lost ones included, and the rate at which
/// they reach the fallback.
pub(super) fn meets(field: &Field, states: &StateSpace, q: &[f64]) -> (Vec<f64>, f64) {
    let d = &field.dispatch;
    let mut met = vec![0.0; states.len()];
    // A closed tier hands a job to each server that comes to it, one level below where it was.
    let mut above = vec![None; states.len()];
    for (pool, k, s) in dispatch::levels(states).filter(|&(_, k, _)| k > 0) {
        above[s] = Some((pool, k - 1));
    }
    for &(from, rate) in d.closed.iter().flatten() {
        if let Some((pool, level)) = above[from] {
            pool.entry(level).for_each(|(s, p)| met[s] += rate * q[from] * p);
        }
    }
    let reach = d.reach(q).max(0.0);
    let mut scratch = Scratch::default();
    let inside = d.rates(q, reach, &mut scratch.tails, &mut scratch.rates);
    let mut fallback = 0.0;
    match &d.target {
        Target::Tier { .. } if field.composition == Composition::Inflow || !inside => {
            // No mass to go by: jobs meet the servers that have just come.
            let total = field.tier_inflow(q).max(f64::MIN_POSITIVE);
            field.inflow.iter().for_each(|&(from, to, rate)| met[to] += reach * (rate * q[from] / total));
        }
        Target::Tier { states: tier, .. } if tier.len() == 1 => met[tier[0]] += reach,
        Target::Tier { states: tier, weights } => {
            tier.iter().zip(weights).for_each(|(&s, w)| met[s] += scratch.rates[0] * w * q[s]);
        }
        Target::Fallback(f) => {
            fallback = reach;
            let group = |s: usize| if f.d > 1 { d.level[s] } else { 0 };
            (0..q.len()).for_each(|s| met[s] += scratch.rates[group(s)] * q[s]);
        }
    }
    (met, fallback)
}

/// Measures from flows; the pools of `flows` are those of `model`.
pub(super) fn from_flows(model: &Model, flows: &Flows) -> Measures {
    let lambda = model.arrival_rate;
    let per_arrival = |rate: f64| (lambda > 0.0).then(|| Value::from((rate / lambda).clamp(0.0, f64::MAX)));
    let sum = |f: &dyn Fn(&PoolFlows) -> f64| flows.pools.iter().map(f).sum::<f64>();
    let time = |jobs: f64, accepted: f64| (accepted > 0.0).then(|| Value::from(jobs.max(0.0) / accepted));
    let pools = model
        .pools
        .iter()
        .zip(&flows.pools)
        .map(|(pool, f)| PoolMeasures {
            name: pool.name.clone(),
            p_idle: per_arrival(f.idle),
            p_wait: per_arrival(f.wait),
            p_block: per_arrival(f.block),
            mean_jobs: f.jobs.is_finite().then(|| (f.jobs / pool.share).into()),
            response_time: if f.jobs.is_finite() { time(f.jobs, f.idle + f.wait) } else { None },
            waiting_time: if f.jobs.is_finite() { time(f.jobs - f.served, f.idle + f.wait) } else { None },
            utilisation: Some((f.busy / pool.share).into()),
            throughput: Some((f.completed / pool.share).into()),
            growth: None,
        })
        .collect();
    let (idle, wait, block) = (sum(&|f| f.idle), sum(&|f| f.wait), sum(&|f| f.block));
    let (jobs, served, completed) = (sum(&|f| f.jobs), sum(&|f| f.served), sum(&|f| f.completed));
    let used: f64 = model.pools.iter().zip(&flows.pools).map(|(p, f)| p.service_rate() * f.busy).sum();
    let finite = jobs.is_finite();
    Measures {
        p_idle: per_arrival(idle),
        p_wait: per_arrival(wait),
        p_block: per_arrival(block),
        p_busy: per_arrival(wait + block),
        mean_jobs: finite.then(|| jobs.into()),
        response_time: if finite { time(jobs, idle + wait) } else { None },
        waiting_time: if finite { time(jobs - served, idle + wait) } else { None },
        utilisation: Some((used / model.capacity()).into()),
        throughput: Some(completed.into()),
        messages_per_job: per_arrival(messages(model, flows)),
        growth: None,
        pools,
    }
}

/// Messages per server and unit of time.
fn messages(model: &Model, flows: &Flows) -> f64 {
    let d = f64::from(model.policy.fallback.d);
    let sampled = if d > 1.0 { 2.0 * d * flows.fallback } else { 0.0 };
    let sum = |f: &dyn Fn(&PoolFlows) -> f64| flows.pools.iter().map(f).sum::<f64>();
    match model.policy.messages {
        Messages::PerIdleServer => sum(&|f| f.to_idle) + sampled,
        Messages::PerSample => 2.0 * d * model.arrival_rate,
        Messages::PerDeparture => sum(&|f| f.completed),
        Messages::None => 0.0,
    }
}

/// The largest deviation of a pool's mass from its share.
pub(super) fn mass_defect(states: &StateSpace, q: &[f64]) -> f64 {
    states
        .pools
        .iter()
        .map(|pool| (q[pool.range()].iter().sum::<f64>() - pool.share).abs())
        .fold(0.0, f64::max)
}

/// Makes each pool's mass its share again, by what its fullest state holds: a linear solver keeps sums to
/// rounding only, and over many steps that adds up.
pub(super) fn restore_mass(states: &StateSpace, q: &mut [f64]) {
    for pool in &states.pools {
        let part = &mut q[pool.range()];
        let excess = part.iter().sum::<f64>() - pool.share;
        if let Some(largest) = part.iter_mut().max_by(|a, b| a.total_cmp(b)) {
            *largest -= excess;
        }
    }
}

/// Sets negative entries to zero and takes their mass from the fullest state of the same pool; returns
/// the most negative entry (0 if there was none).
pub(super) fn clip(states: &StateSpace, q: &mut [f64]) -> f64 {
    let mut worst: f64 = 0.0;
    for pool in &states.pools {
        let part = &mut q[pool.range()];
        let mut debt = 0.0;
        for x in part.iter_mut().filter(|x| **x < 0.0) {
            worst = worst.min(*x);
            debt += *x;
            *x = 0.0;
        }
        if debt < 0.0
            && let Some(largest) = part.iter_mut().max_by(|a, b| a.total_cmp(b))
        {
            *largest += debt;
        }
    }
    worst
}

/// Moves all servers of a tier one level up: the job that each of them is about to be handed.
pub(super) fn lift(model: &Model, states: &StateSpace, tier: usize, q: &mut [f64]) {
    let Some(tier) = model.policy.tiers.get(tier) else { return };
    let members = dispatch::tier_states(states, &tier);
    let mut in_tier = vec![false; states.len()];
    members.iter().for_each(|&(s, _)| in_tier[s] = true);
    let places: Vec<_> = dispatch::levels(states).filter(|&(_, _, s)| in_tier[s]).collect();
    for (pool, k, s) in places {
        let mass = std::mem::take(&mut q[s]);
        for (to, share) in pool.after(k, s) {
            q[to] += mass * share;
        }
    }
}
