//! What the occupancy means to a job with several routers: flows of arrivals, and the path's snapshots.

use super::field::{Field, Mode};
use super::space::{Cell, Space};
use crate::fluid::flows::{Flows, PoolFlows};
use crate::fluid::path::Snapshot;

/// Flows with what only several routers have.
pub(super) struct RouterFlows {
    /// Flows by pool.
    pub flows: Flows,
    /// Messages sent per server and unit of time, those included that take one back.
    pub messages: f64,
}

/// The flows at q in the modes of `field`.
pub(super) fn flows(field: &Field, space: &Space, q: &[f64]) -> RouterFlows {
    let mut pools = vec![PoolFlows::default(); space.states.pools.len()];
    for (j, pool) in space.states.pools.iter().enumerate() {
        let rate = pool.law.exit()[0];
        let mut tail = 0.0;
        for k in (1..=pool.levels).rev() {
            let here: f64 = q[space.level(j, k)].iter().sum();
            tail += here;
            pools[j].jobs += tail;
            pools[j].to_idle = rate * here;
        }
        pools[j].busy = tail;
        pools[j].served = tail;
        pools[j].completed = rate * tail;
    }
    let rho = field.random_rate(q);
    let sent = field.sent(q);
    let mut add = |s: usize, flow: f64| {
        let Cell { pool: j, level, .. } = field.cells[s];
        let pool: &mut PoolFlows = &mut pools[j];
        match level {
            0 => pool.idle += flow,
            _ if space.states.pools[j].is_full(level) => pool.block += flow,
            _ => pool.wait += flow,
        }
    };
    (0..q.len()).for_each(|s| add(s, rho * q[s]));
    field.each_use(q, |from, _, flow| add(from, flow));
    // Messages that empty routers use at once: their servers were idle for no time.
    let empty = (0..field.modes.len()).filter(|&r| field.modes[r] == Mode::Empty);
    let at_once: f64 = empty.map(|r| field.messages[r]).sum();
    for &(s, rate) in &field.sources {
        pools[field.cells[s].pool].idle += at_once * rate * q[s];
    }
    let idle: f64 = (0..pools.len()).map(|j| q[space.level(j, 0)].iter().sum::<f64>()).sum();
    let withdrawn = if space.keep { 0.0 } else { rho * idle };
    RouterFlows { flows: Flows { pools, fallback: rho }, messages: sent + withdrawn }
}

/// The path at one time.
pub(super) fn snapshot(time: f64, field: &Field, space: &Space, q: &[f64]) -> Snapshot {
    let RouterFlows { flows: Flows { pools, .. }, .. } = flows(field, space, q);
    let lambda: f64 = field.streams.iter().sum();
    let share = |f: fn(&PoolFlows) -> f64| {
        if lambda > 0.0 { pools.iter().map(f).sum::<f64>() / lambda } else { 0.0 }
    };
    let by_level = space.without_holders(q);
    let states = &space.states;
    let busy = |r: usize| {
        let of = |(s, c): (usize, &Cell)| if c.holder == Some(r) && c.level > 0 { q[s] } else { 0.0 };
        field.cells.iter().enumerate().map(of).sum()
    };
    let routers = 0..space.routers;
    Snapshot {
        time,
        idle: states.pools.iter().map(|p| by_level[p.offset]).collect(),
        tails: (0..states.pools.len()).map(|j| trim(states.tails(j, &by_level))).collect(),
        phases: vec![Vec::new(); states.pools.len()],
        jobs: pools.iter().map(|p| p.jobs).collect(),
        messages: routers.clone().map(|r| field.held(r, q)).collect(),
        stale: if space.keep { routers.map(busy).collect() } else { Vec::new() },
        to_idle: pools.iter().map(|p| p.to_idle).sum(),
        p_idle: share(|f| f.idle),
        p_wait: share(|f| f.wait),
        p_block: share(|f| f.block),
    }
}

/// Tails without the zeros at the end.
fn trim(mut tails: Vec<f64>) -> Vec<f64> {
    while tails.len() > 1 && tails.last() == Some(&0.0) {
        tails.pop();
    }
    tails
}
