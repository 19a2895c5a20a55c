//! The servers at time 0, as integers.

use super::FiniteError;
use super::counts::Tails;
use crate::model::{Initial, Model};

/// Levels that a start may have: memory for the counts of so many is reserved at once.
const MAX_LEVEL: usize = 10_000_000;

/// The servers of each pool by level. Tails are rounded to whole servers of the pool, so that a tail
/// equal to the pool's share means all of its servers.
pub(super) fn start(model: &Model, initial: &Initial, sizes: &[u64]) -> Result<Vec<Tails>, FiniteError> {
    if let Some(tails) = initial.given_tails()
        && tails.len() != model.pools.len()
    {
        return Err(FiniteError::InitialPools { given: tails.len(), pools: model.pools.len() });
    }
    (0..sizes.len()).map(|j| Ok(Tails::new(sizes[j], &pool(model, initial, j, sizes[j])?))).collect()
}

fn pool(model: &Model, initial: &Initial, j: usize, size: u64) -> Result<Vec<u64>, FiniteError> {
    let top = initial.top_level(model, j) as usize;
    if top > MAX_LEVEL {
        return Err(FiniteError::InitialLevel { level: top, limit: MAX_LEVEL });
    }
    let Some(tails) = initial.given_tails() else { return Ok(vec![size; top]) };
    let pool = &model.pools[j];
    let buffer = pool.buffer.map_or(usize::MAX, |b| b as usize);
    let mut above = pool.share * (1.0 + 1e-9);
    let mut busy = Vec::with_capacity(top);
    for (k, &x) in tails[j].iter().enumerate() {
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
