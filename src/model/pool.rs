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
    /// The law of one job's service time, at speed 1.
    pub law: PhaseType,
    /// How fast a server works at level 1, 2, ... as a factor on the rates of the law; not decreasing, the
    /// last one repeats. Empty is speed 1 at every level.
    pub speed: Vec<f64>,
    /// Jobs that a server takes without letting any of them wait (generalised PULL): below this level it
    /// has a free slot, and a message out for each.
    pub slots: u32,
}

impl Pool {
    /// A pool with constant speed and one slot a server.
    #[must_use]
    pub fn new(name: impl Into<String>, share: f64, buffer: Option<u32>, law: PhaseType) -> Self {
        Self { name: name.into(), share, buffer, law, speed: Vec::new(), slots: 1 }
    }

    /// How fast a server works that holds `level` jobs.
    #[must_use]
    pub fn speed_at(&self, level: u32) -> f64 {
        let place = (level.max(1) as usize).min(self.speed.len());
        place.checked_sub(1).map_or(1.0, |i| self.speed[i])
    }

    /// Jobs a server completes per unit of time with a long queue, or with a full buffer: the highest
    /// speed over the mean service time (mu_j).
    #[must_use]
    pub fn service_rate(&self) -> f64 {
        self.speed_at(self.buffer.unwrap_or(u32::MAX)) / self.law.mean()
    }

    /// The level from which on the speed is constant.
    #[must_use]
    pub fn speed_levels(&self) -> u32 {
        u32::try_from(self.speed.len()).unwrap_or(u32::MAX).max(1)
    }

    /// Is service exponential, at speed 1 and with one slot? Several routers know no other.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.law.phases() == 1 && self.slots == 1 && self.speed.iter().all(|s| *s == 1.0)
    }

    /// Does a server that holds `level` jobs have room for one more?
    #[must_use]
    pub fn has_room(&self, level: u32) -> bool {
        self.buffer.is_none_or(|b| level < b)
    }
}
