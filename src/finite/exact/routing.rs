//! Where a job goes, as probabilities: messages, or tiers and the fallback of a policy, read on counts.

use super::places::{Cell, Places};
use crate::model::{Fallback, Message, Routers, Tier, Tiers};

/// A job that goes to the servers of a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sent {
    pub(super) place: u32,
    /// Probability.
    pub(super) share: f64,
    /// The router that has a message of the server afterwards.
    pub(super) router: Option<usize>,
}

/// How a job picks its server in one state of the system.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Routing {
    /// Where it goes, with positive probabilities; a place may come several times.
    pub(super) sent: Vec<Sent>,
    /// The probability that all tiers are empty, or that its router has no messages.
    pub(super) fallback: f64,
    /// The probability that its server takes a message back from another router.
    pub(super) withdrawn: f64,
}

/// Routes a job among `servers`, given as (place, number of servers) with positive numbers.
pub(super) fn route(places: &Places, servers: &[(u32, u32)]) -> Routing {
    match places.routers() {
        Some(routers) => by_message(routers, places, servers),
        None => by_tier(places, servers),
    }
}

/// A job comes to a router, which sends it to the sender of one of its messages, or else to any server.
fn by_message(routers: &Routers, places: &Places, servers: &[(u32, u32)]) -> Routing {
    let mut routing = Routing::default();
    let n: f64 = servers.iter().map(|s| f64::from(s.1)).sum();
    for (r, &stream) in routers.streams.iter().enumerate().filter(|(_, stream)| **stream > 0.0) {
        let known = || servers.iter().filter(|s| places.router(s.0) == Some(r));
        let messages: f64 = known().map(|s| f64::from(s.1)).sum();
        if messages > 0.0 {
            let share = |count: u32| stream * f64::from(count) / messages;
            routing.sent.extend(known().map(|&(place, k)| Sent { place, share: share(k), router: None }));
            continue;
        }
        routing.fallback += stream;
        for &(place, count) in servers {
            let share = stream * f64::from(count) / n;
            let is_withdrawn = places.cell(place).level == 0 && routers.message == Message::Withdraw;
            routing.withdrawn += if is_withdrawn { share } else { 0.0 };
            let router = places.router(place).filter(|_| !is_withdrawn);
            routing.sent.push(Sent { place, share, router });
        }
    }
    routing
}

/// A job goes to the first tier that has a server, or else to the best of a sample.
fn by_tier(places: &Places, servers: &[(u32, u32)]) -> Routing {
    let policy = &places.model.policy;
    let from_tier = |tier: &Tier| {
        let weight = |&(place, count): &(u32, u32)| match places.cell(place) {
            Cell { full: true, .. } => 0.0,
            Cell { pool, level, .. } => f64::from(tier.weight(pool, level)) * f64::from(count),
        };
        let total: f64 = servers.iter().map(weight).sum();
        let shares = servers.iter().map(|s| (s.0, weight(s) / total)).filter(|(_, share)| *share > 0.0);
        (total > 0.0).then(|| shares.collect::<Vec<_>>())
    };
    let found = match &policy.tiers {
        Tiers::List(tiers) => tiers.iter().find_map(from_tier),
        // Every level is a tier; the first that is not empty is the lowest level with room.
        every @ Tiers::EveryLevel => {
            let cells = servers.iter().map(|s| places.cell(s.0));
            let lowest = cells.filter(|c| !c.full).map(|c| c.level).min();
            lowest.and_then(|level| every.get(level as usize)).and_then(|tier| from_tier(&tier))
        }
    };
    let fallback = if found.is_none() { 1.0 } else { 0.0 };
    let shares = found.unwrap_or_else(|| sampled(policy.fallback, places, servers));
    let sent = shares.into_iter().map(|(place, share)| Sent { place, share, router: None });
    Routing { sent: sent.collect(), fallback, withdrawn: 0.0 }
}

/// Shares of the places when the best of d sampled servers takes the job: the one of lowest rank, that
/// is of lowest level, servers without room after all others if they are skipped.
fn sampled(fallback: Fallback, places: &Places, servers: &[(u32, u32)]) -> Vec<(u32, f64)> {
    let rank = |place: u32| {
        let Cell { level, full, .. } = places.cell(place);
        (fallback.skip_full && full, level)
    };
    let mut ranked = servers.to_vec();
    ranked.sort_by_key(|&(place, _)| (rank(place), place));
    let n = ranked.iter().map(|s| u64::from(s.1)).sum();
    let mut left = n;
    let mut shares = Vec::with_capacity(ranked.len());
    for group in ranked.chunk_by(|a, b| rank(a.0) == rank(b.0)) {
        let size = group.iter().map(|s| u64::from(s.1)).sum();
        let chance = best_in(size, left, n, fallback);
        #[allow(clippy::cast_precision_loss)]
        shares.extend(group.iter().map(|&(place, count)| (place, chance * f64::from(count) / size as f64)));
        left -= size;
    }
    shares
}

/// The probability that the best of a sample is among `size` servers, when `left` of all n servers,
/// these included, are no better. It is the difference of the probabilities that a sample falls into
/// `left` and into `left - size` servers, written as a sum of positive terms.
#[allow(clippy::cast_precision_loss)]
fn best_in(size: u64, left: u64, n: u64, fallback: Fallback) -> f64 {
    let worse = left - size;
    if fallback.replacement {
        // a^d - b^d = (a - b) (a^(d-1) + a^(d-2) b + ... + b^(d-1)), with a and b over n.
        let (a, b) = (left as f64 / n as f64, worse as f64 / n as f64);
        let sum = (1..fallback.d).fold((1.0, 1.0), |(sum, power), _| (sum * b + power * a, power * a)).0;
        return size as f64 / n as f64 * sum;
    }
    // The sample's best server is the first of these in any fixed order of the `left` ones: d - 1
    // others come from the i after it. C(i, d - 1) / C(n, d), summed over i = worse .. left - 1.
    let d = u64::from(fallback.d).min(n);
    (worse..left)
        .map(|i| {
            let others: f64 = (0..d - 1).map(|k| i.saturating_sub(k) as f64 / (n - 1 - k) as f64).product();
            others * d as f64 / n as f64
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_of_small_samples_are_those_by_hand() {
        let with = |d| Fallback { d, replacement: true, skip_full: false };
        let without = |d| Fallback { d, replacement: false, skip_full: false };
        // Five servers, two of them best: 1 - (3/5)^2, and 1 - C(3,2)/C(5,2).
        assert!((best_in(2, 5, 5, with(2)) - 0.64).abs() < 1e-15);
        assert!((best_in(2, 5, 5, without(2)) - 0.7).abs() < 1e-15);
        // The two next ones: (3/5)^3 - (1/5)^3; and one of three sampled ones cannot be the only left.
        assert!((best_in(2, 3, 5, with(3)) - 0.208).abs() < 1e-15);
        assert!((best_in(2, 3, 5, without(3)) - 0.1).abs() < 1e-15);
        assert_eq!(best_in(1, 1, 5, without(3)), 0.0);
        assert!((best_in(1, 1, 5, without(1)) - 0.2).abs() < 1e-15);
        // d beyond n is all servers.
        assert!((best_in(1, 5, 5, without(9)) - 1.0).abs() < 1e-15);
    }
}
