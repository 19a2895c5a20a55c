//! Where a run starts.

use super::{Model, StateSpace};

/// The state at time 0. A job in service starts in a phase drawn from its law's initial probabilities.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Initial {
    /// Every server idle.
    #[default]
    Idle,
    /// Every server holds this many jobs, or as many as its buffer allows.
    Level(u32),
    /// Tails x_1, x_2, ... of each pool, as fractions of all servers; non-increasing, x_1 at most the
    /// pool's share, no longer than its buffer. An empty list is an idle pool.
    Tails(Vec<Vec<f64>>),
    /// The same by the phase of the job in service: S_{1,1}.., S_{2,1}.. of each pool, one list a level,
    /// each phase non-increasing in the level.
    PhaseTails(Vec<Vec<Vec<f64>>>),
    /// Under pull with several routers: tails as above, and the idle servers of each pool by the router
    /// that holds their message, as fractions of all servers; they sum to the pool's share less x_1.
    Messages {
        /// Tails x_1, x_2, ... of each pool.
        tails: Vec<Vec<f64>>,
        /// Idle servers of each pool by router.
        idle: Vec<Vec<f64>>,
    },
}

impl Initial {
    /// Tails by pool, where the start is given by tails.
    #[must_use]
    pub fn given_tails(&self) -> Option<&[Vec<f64>]> {
        match self {
            Self::Tails(tails) | Self::Messages { tails, .. } => Some(tails),
            _ => None,
        }
    }

    /// The largest level of pool `pool` that holds any server.
    #[must_use]
    pub fn top_level(&self, model: &Model, pool: usize) -> u32 {
        match self {
            Self::Idle => 0,
            Self::Level(k) => model.pools[pool].buffer.map_or(*k, |b| b.min(*k)),
            Self::Tails(_) | Self::PhaseTails(_) | Self::Messages { .. } => {
                let last = self.tails(model, pool).iter().rposition(|&x| x > 0.0);
                last.map_or(0, |k| u32::try_from(k + 1).unwrap_or(u32::MAX))
            }
        }
    }

    /// Tails x_1.. of one pool as fractions of all servers.
    #[must_use]
    pub fn tails(&self, model: &Model, pool: usize) -> Vec<f64> {
        match self {
            Self::Tails(tails) | Self::Messages { tails, .. } => tails[pool].clone(),
            Self::PhaseTails(tails) => tails[pool].iter().map(|level| level.iter().sum()).collect(),
            _ => vec![model.pools[pool].share; self.top_level(model, pool) as usize],
        }
    }

    /// The occupancy vector over `states`, which must have the levels that are needed.
    #[must_use]
    pub fn occupancy(&self, model: &Model, states: &StateSpace) -> Vec<f64> {
        let mut q = states.idle();
        for (j, pool) in states.pools.iter().enumerate() {
            let tails = self.tails(model, j);
            let at = |k: usize| tails.get(k - 1).copied().unwrap_or(0.0);
            let phase = |k: usize, m: usize| match self {
                Self::PhaseTails(tails) => Some(tails[j].get(k - 1).map_or(0.0, |level| level[m])),
                _ => None,
            };
            for k in 1..=tails.len().min(pool.levels as usize) {
                let mass = at(k) - at(k + 1);
                let level = u32::try_from(k).unwrap_or(u32::MAX);
                for (m, s) in pool.level(level).enumerate() {
                    q[s] = match (phase(k, m), phase(k + 1, m)) {
                        (Some(here), Some(above)) => here - above,
                        _ => mass * pool.law.initial()[m],
                    };
                }
            }
            q[pool.offset] = pool.share - tails.first().copied().unwrap_or(0.0);
        }
        q
    }
}
