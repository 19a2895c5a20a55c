//! The servers at time 0, as integers.

use super::FiniteError;
use crate::model::{Initial, Model};

/// Levels that a start may have: memory for the counts of so many is reserved at once.
const MAX_LEVEL: usize = 10_000_000;

/// Where the servers of each pool are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    /// By pool, how many servers hold 1, 2, ... jobs or more.
    pub(super) busy: Vec<Vec<u64>>,
    /// By pool and level, how many servers with exactly that many jobs have the one in service in each
    /// phase; nothing for a pool where it starts in a phase drawn by the law.
    pub(super) phases: Vec<Vec<Vec<u64>>>,
    /// By pool, how many idle servers have a message at each router; one number with one router.
    pub(super) held: Vec<Vec<u64>>,
}

/// The start with tails rounded to whole servers of the pool, so that a tail equal to the pool's share
/// means all of its servers; servers of a level are split over its phases by largest remainders.
pub(super) fn start(model: &Model, initial: &Initial, sizes: &[u64]) -> Result<Start, FiniteError> {
    let given = match initial {
        Initial::Tails(tails) | Initial::Messages { tails, .. } => Some(tails.len()),
        Initial::PhaseTails(tails) => Some(tails.len()),
        Initial::Idle | Initial::Level(_) => None,
    };
    if let Some(given) = given.filter(|&given| given != model.pools.len()) {
        return Err(FiniteError::InitialPools { given, pools: model.pools.len() });
    }
    let busy = (0..sizes.len()).map(|j| pool(model, initial, j, sizes[j])).collect::<Result<Vec<_>, _>>()?;
    let phases = match initial {
        Initial::PhaseTails(tails) => tails.iter().zip(&busy).map(|(t, busy)| phases(t, busy)).collect(),
        _ => vec![Vec::new(); sizes.len()],
    };
    let idle = |j: usize| sizes[j] - busy[j].first().copied().unwrap_or(0);
    let held = (0..sizes.len()).map(|j| held(model, initial, j, idle(j))).collect();
    Ok(Start { busy, phases, held })
}

/// The idle servers of pool j by the router that holds their message.
pub(super) fn held(model: &Model, initial: &Initial, j: usize, idle: u64) -> Vec<u64> {
    let Some(routers) = &model.policy.routers else { return vec![idle] };
    let masses = initial.held_messages(model, routers, j);
    // Where the start has no idle server at all, rounding can leave one: its message went the usual way.
    let usual = masses.iter().all(|&z| z <= 0.0);
    split(idle, if usual { &routers.messages } else { &masses })
}

/// Servers by level and phase.
fn phases(tails: &[Vec<f64>], busy: &[u64]) -> Vec<Vec<u64>> {
    let at_least = |k: usize| busy.get(k).copied().unwrap_or(0);
    (0..busy.len())
        .map(|k| {
            let above = |m: usize| tails.get(k + 1).map_or(0.0, |level| level[m]);
            let masses: Vec<f64> =
                tails[k].iter().enumerate().map(|(m, s)| (s - above(m)).max(0.0)).collect();
            split(at_least(k) - at_least(k + 1), &masses)
        })
        .collect()
}

/// So many servers in proportion to masses, rounded by the method of largest remainders.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn split(servers: u64, masses: &[f64]) -> Vec<u64> {
    let total: f64 = masses.iter().sum();
    let exact = |m: f64| if total > 0.0 { m / total * servers as f64 } else { 0.0 };
    let mut whole: Vec<u64> = masses.iter().map(|&m| (exact(m).floor() as u64).min(servers)).collect();
    let mut order: Vec<usize> = (0..masses.len()).collect();
    order.sort_by(|&a, &b| exact(masses[b]).fract().total_cmp(&exact(masses[a]).fract()).then(a.cmp(&b)));
    // Fewer than there are phases, but for masses that rounding made vanish.
    let missing = servers.saturating_sub(whole.iter().sum()) as usize;
    order.iter().cycle().take(missing).for_each(|&m| whole[m] += 1);
    whole
}

fn pool(model: &Model, initial: &Initial, j: usize, size: u64) -> Result<Vec<u64>, FiniteError> {
    let top = initial.top_level(model, j) as usize;
    if top > MAX_LEVEL {
        return Err(FiniteError::InitialLevel { level: top, limit: MAX_LEVEL });
    }
    let tails = match initial {
        Initial::Tails(_) | Initial::Messages { .. } | Initial::PhaseTails(_) => initial.tails(model, j),
        Initial::Idle | Initial::Level(_) => return Ok(vec![size; top]),
    };
    let pool = &model.pools[j];
    let buffer = pool.buffer.map_or(usize::MAX, |b| b as usize);
    let mut above = pool.share * (1.0 + 1e-9);
    let mut busy = Vec::with_capacity(top);
    for (k, &x) in tails.iter().enumerate() {
        let refused = !(0.0..=above).contains(&x) || (x > 0.0 && k >= buffer);
        if refused {
            return Err(FiniteError::InitialTail { pool: pool.name.clone(), level: k + 1, value: x });
        }
        above = x;
        if k < top {
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let servers = (x / pool.share * size as f64).round() as u64;
            busy.push(servers.min(busy.last().copied().unwrap_or(size)));
        }
    }
    Ok(busy)
}
