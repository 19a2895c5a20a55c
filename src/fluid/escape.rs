//! Which pools fill up for ever when jobs join the shortest of d >= 2 sampled queues, and how fast.
//!
//! A job joins a set S of pools that are far longer than all others only if all d samples fall in S:
//! at rate R beta_S^d. So the pools form clusters, slowest first; a cluster rises at (what it gets -
//! what it serves) / its mass, and one that would rise faster than the cluster above it joins it.
//! A cluster with positive speed fills up for ever.
//!
//! The criterion for one set is the known condition of stability for the shortest of sampled queues;
//! the clusters of several were derived (the flux x^d is convex, so a set of equal speed stays
//! together).

use super::root::bisect;
use crate::model::Model;

/// A speed this small against the rates it is a difference of is zero: the load is critical.
const CRITICAL: f64 = 1e-14;

/// Pools that rise together.
struct Cluster {
    pools: Vec<usize>,
    mass: f64,
    capacity: f64,
}

/// Jobs that a server of the cluster gets per unit of time beyond those it serves, when a mass `above`
/// holds longer queues; zero if it is rounding.
fn speed(cluster: &Cluster, above: f64, stream: f64, d: f64) -> f64 {
    let gets = stream * ((above + cluster.mass).powf(d) - above.powf(d));
    let surplus = gets - cluster.capacity;
    if surplus.abs() <= CRITICAL * (gets + cluster.capacity) { 0.0 } else { surplus / cluster.mass }
}

/// The clusters that the pools of `members` form if none of them has an end, slowest first, with their
/// speeds.
fn clusters(model: &Model, members: &[usize], stream: f64, passed_over: f64) -> Vec<(Cluster, f64)> {
    let d = f64::from(model.policy.fallback.d);
    let rate = |j: usize| model.pools[j].service_rate();
    let mut order = members.to_vec();
    order.sort_by(|&a, &b| rate(a).total_cmp(&rate(b)));
    // Each with the mass above it.
    let mut clusters: Vec<(Cluster, f64)> = Vec::new();
    for j in order {
        let mass = model.pools[j].share;
        let above = clusters.last().map_or(passed_over, |(c, above)| above + c.mass);
        let mut last = (Cluster { pools: vec![j], mass, capacity: mass * rate(j) }, above);
        while let Some((c, above)) = clusters.last()
            && speed(&last.0, last.1, stream, d) >= speed(c, *above, stream, d)
            && let Some((mut merged, above)) = clusters.pop()
        {
            merged.pools.extend(last.0.pools);
            merged.mass += last.0.mass;
            merged.capacity += last.0.capacity;
            last = (merged, above);
        }
        clusters.push(last);
    }
    let speeds = clusters.into_iter().map(|(c, above)| {
        let v = speed(&c, above, stream, d);
        (c, v)
    });
    speeds.collect()
}

/// The growth per server of each pool that fills up for ever, when jobs reach the fallback at rate
/// `stream` and a fraction `passed_over` of all servers is full and passed over. A pool at exactly its
/// capacity fills up too, but slower than linearly: its growth is 0.
pub(super) fn escaping(model: &Model, stream: f64, passed_over: f64) -> Vec<Option<f64>> {
    let infinite: Vec<usize> = (0..model.pools.len()).filter(|&j| model.pools[j].buffer.is_none()).collect();
    let mut growth = vec![None; model.pools.len()];
    for (cluster, v) in clusters(model, &infinite, stream, passed_over) {
        if v >= 0.0 {
            cluster.pools.iter().for_each(|&j| growth[j] = Some(v));
        }
    }
    growth
}

/// The most that can reach the fallback in overload: what would, if no full server lost a job. Then what
/// the closed tiers absorb is what the settled servers serve less what the fallback sends them, and
///
/// ```text
/// stream * (mass of the escaped pools)^d + capacity of the others = arrival rate
/// ```
pub(super) fn largest_stream(model: &Model) -> f64 {
    let lambda = model.arrival_rate;
    if model.policy.tiers.count() == Some(0) {
        return lambda;
    }
    let d = f64::from(model.policy.fallback.d);
    let needed = |stream: f64| {
        let growth = escaping(model, stream, 0.0);
        let pools = || model.pools.iter().zip(&growth);
        let escaped: f64 = pools().filter(|(_, g)| g.is_some()).map(|(p, _)| p.share).sum();
        let settled = pools().filter(|(_, g)| g.is_none()).map(|(p, _)| p.share * p.service_rate());
        stream * escaped.powf(d) + settled.sum::<f64>()
    };
    bisect(0.0, lambda, |stream| needed(stream) < lambda).1
}

/// About where queues settle: for each pool, the level that most of its servers are near. Clusters rise
/// as if without end until a buffer of theirs is full; then the rest goes on, or stays.
pub(super) fn heights(model: &Model, stream: f64, passed_over: f64) -> Vec<u32> {
    let mut heights = vec![0; model.pools.len()];
    let mut members: Vec<usize> = (0..model.pools.len()).collect();
    loop {
        let mut full = Vec::new();
        for (cluster, _) in clusters(model, &members, stream, passed_over).iter().filter(|(_, v)| *v > 0.0) {
            let buffers = cluster.pools.iter().filter_map(|&j| model.pools[j].buffer);
            let Some(height) = buffers.min() else { continue };
            for &j in &cluster.pools {
                heights[j] = height.max(heights[j]);
                if model.pools[j].buffer == Some(height) {
                    full.push(j);
                }
            }
        }
        if full.is_empty() {
            return heights;
        }
        members.retain(|j| !full.contains(j));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PhaseType, Policy, Pool};

    fn growth(lambda: f64, d: u32, pools: &[(f64, f64)]) -> Vec<Option<f64>> {
        let pools = pools
            .iter()
            .map(|&(share, rate)| Pool::new("", share, None, PhaseType::exponential(rate).unwrap()))
            .collect();
        let policy = Policy::jsq_d(d, true, false);
        let model =
            Model { name: String::new(), description: String::new(), arrival_rate: lambda, pools, policy };
        escaping(&model, lambda, 0.0)
    }

    #[test]
    fn the_slow_half_of_the_paper_example_grows() {
        let g = growth(1.0, 2, &[(0.5, 2.0), (0.5, 1.0 / 3.0)]);
        assert_eq!(g[0], None);
        assert!((g[1].unwrap() - 1.0 / 6.0).abs() < 1e-15);
    }

    #[test]
    fn overload_takes_every_pool_at_one_speed_or_slow_ones_first() {
        // One pool above capacity.
        assert!((growth(1.3, 2, &[(1.0, 1.0)])[0].unwrap() - 0.3).abs() < 1e-15);
        // Two pools split one kind: they rise together, at the same speed as the merged pool.
        let g = growth(1.3, 3, &[(0.4, 1.0), (0.6, 1.0)]);
        assert!(g.iter().all(|g| (g.unwrap() - 0.3).abs() < 1e-14));
        // The slow pool runs away from the other, which is stable.
        let g = growth(0.9, 2, &[(0.1, 0.01), (0.9, 1.5)]);
        assert_eq!(g[1], None);
        assert!((g[0].unwrap() - (0.9 * 0.01 - 0.001) / 0.1).abs() < 1e-14);
    }
}
