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

use crate::model::Model;

/// The growth per server of each pool that fills up for ever, when jobs reach the fallback at rate
/// `stream` and a fraction `passed_over` of all servers is full and passed over.
pub(super) fn escaping(model: &Model, stream: f64, passed_over: f64) -> Vec<Option<f64>> {
    let d = f64::from(model.policy.fallback.d);
    let mut order: Vec<usize> = (0..model.pools.len()).filter(|&j| model.pools[j].buffer.is_none()).collect();
    let rate = |j: usize| model.pools[j].service_rate();
    order.sort_by(|&a, &b| rate(a).total_cmp(&rate(b)));
    struct Cluster {
        pools: Vec<usize>,
        mass: f64,
        capacity: f64,
    }
    let mut clusters: Vec<Cluster> = Vec::new();
    let speeds = |clusters: &[Cluster]| -> Vec<f64> {
        let mut below = passed_over;
        clusters
            .iter()
            .map(|c| {
                let (from, to) = (below, below + c.mass);
                below = to;
                (stream * (to.powf(d) - from.powf(d)) - c.capacity) / c.mass
            })
            .collect()
    };
    for j in order {
        let mass = model.pools[j].share;
        clusters.push(Cluster { pools: vec![j], mass, capacity: mass * rate(j) });
        while clusters.len() > 1 {
            let v = speeds(&clusters);
            if v[v.len() - 1] < v[v.len() - 2] {
                break;
            }
            if let Some(last) = clusters.pop()
                && let Some(above) = clusters.last_mut()
            {
                above.pools.extend(last.pools);
                above.mass += last.mass;
                above.capacity += last.capacity;
            }
        }
    }
    let mut growth = vec![None; model.pools.len()];
    for (cluster, v) in clusters.iter().zip(speeds(&clusters)).filter(|(_, v)| *v > 0.0) {
        cluster.pools.iter().for_each(|&j| growth[j] = Some(v));
    }
    growth
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PhaseType, Policy, Pool};

    fn growth(lambda: f64, d: u32, pools: &[(f64, f64)]) -> Vec<Option<f64>> {
        let pools = pools
            .iter()
            .map(|&(share, rate)| Pool {
                name: String::new(),
                share,
                buffer: None,
                law: PhaseType::exponential(rate).unwrap(),
            })
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
