//! Pools of identical servers.

use super::PhaseType;

/// Servers of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// The name the user gave.
    pub name: String,
    /// Fraction of all servers that are in this pool (beta_j).
    pub share: f64,
    /// The largest number of jobs at a server, the one in service included; `None` is infinite.
    pub buffer: Option<u32>,
    /// The law of one job's service time.
    pub law: PhaseType,
}

impl Pool {
    /// Jobs a busy server completes per unit of time: one over the mean service time (mu_j).
    #[must_use]
    pub fn service_rate(&self) -> f64 {
        1.0 / self.law.mean()
    }

    /// Does a server that holds `level` jobs have room for one more?
    #[must_use]
    pub fn has_room(&self, level: u32) -> bool {
        self.buffer.is_none_or(|b| level < b)
    }
}
