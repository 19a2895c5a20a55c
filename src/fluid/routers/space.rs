//! Server states with several routers: (pool, level, holder), where the holder is the router that has a
//! message of the server, if any has.
//!
//! An idle server always has a message out. A busy one has none, unless messages that are out of date
//! are kept. States are laid out pool by pool: idle by router, then level by level by holder (none, then
//! the routers), so that more levels go at the end of each pool's part.

use crate::model::{Message, Model, PoolStates, Routers, StateSpace, Top};

/// The states of a model with a given number of levels in each pool.
#[derive(Debug, Clone)]
pub(super) struct Space {
    /// Pools and levels, without holders.
    pub states: StateSpace,
    /// Number of routers.
    pub routers: usize,
    /// Can a busy server have a message out?
    pub keep: bool,
    offsets: Vec<usize>,
}

/// What one state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub pool: usize,
    pub level: u32,
    /// The router that holds a message of the server.
    pub holder: Option<usize>,
}

impl Space {
    pub fn new(model: &Model, routers: &Routers, levels: &[u32], cut: Top) -> Self {
        Self::over(StateSpace::new(model, levels, cut), routers.len(), routers.message == Message::Keep)
    }

    fn over(states: StateSpace, routers: usize, keep: bool) -> Self {
        let holders = if keep { routers + 1 } else { 1 };
        let sizes = states.pools.iter().map(|p| routers + p.levels as usize * holders);
        let offsets = std::iter::once(0)
            .chain(sizes.scan(0, |sum, size| {
                *sum += size;
                Some(*sum)
            }))
            .collect();
        Self { states, routers, keep, offsets }
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Holders that a busy server may have: none, or none and every router.
    fn holders(&self) -> usize {
        if self.keep { self.routers + 1 } else { 1 }
    }

    /// All states of a pool.
    pub fn pool(&self, j: usize) -> std::ops::Range<usize> {
        self.offsets[j]..self.offsets[j + 1]
    }

    /// The state of an idle server whose message is at router r.
    pub fn idle(&self, j: usize, r: usize) -> usize {
        self.offsets[j] + r
    }

    /// All states of one level.
    pub fn level(&self, j: usize, k: u32) -> std::ops::Range<usize> {
        if k == 0 {
            return self.offsets[j]..self.offsets[j] + self.routers;
        }
        let start = self.offsets[j] + self.routers + (k as usize - 1) * self.holders();
        start..start + self.holders()
    }

    /// The state of a server with `level` >= 1 jobs and this holder.
    pub fn busy(&self, j: usize, level: u32, holder: Option<usize>) -> usize {
        self.level(j, level).start + holder.filter(|_| self.keep).map_or(0, |r| r + 1)
    }

    /// What the states are, in their order.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::with_capacity(self.len());
        for (pool, states) in self.states.pools.iter().enumerate() {
            cells.extend((0..self.routers).map(|r| Cell { pool, level: 0, holder: Some(r) }));
            for level in 1..=states.levels {
                cells.extend((0..self.holders()).map(|h| Cell { pool, level, holder: h.checked_sub(1) }));
            }
        }
        cells
    }

    /// The same with other numbers of levels, and the occupancy over it. Servers at an absorbing top stay
    /// at the top.
    pub fn with_levels(&self, model: &Model, levels: &[u32], cut: Top, q: &[f64]) -> (Self, Vec<f64>) {
        let new = Self::over(StateSpace::new(model, levels, cut), self.routers, self.keep);
        let mut out = vec![0.0; new.len()];
        for j in 0..levels.len() {
            let (a, b) = (self.pool(j), new.pool(j));
            let shared = a.len().min(b.len());
            out[b.start..b.start + shared].copy_from_slice(&q[a.start..a.start + shared]);
            let (old_top, top) = (&self.states.pools[j], &new.states.pools[j]);
            if old_top.top == Top::Absorbing && top.top == Top::Absorbing && top.levels > old_top.levels {
                for (from, to) in new.level(j, old_top.levels).zip(new.level(j, top.levels)) {
                    out[to] = std::mem::take(&mut out[from]);
                }
            }
        }
        (new, out)
    }

    /// The occupancy by pool and level, whoever holds the messages.
    pub fn without_holders(&self, q: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.states.len()];
        for (j, pool) in self.states.pools.iter().enumerate() {
            for k in 0..=pool.levels {
                out[pool.level(k).start] = q[self.level(j, k)].iter().sum();
            }
        }
        out
    }

    /// Mass in the level that must stay all but empty for the cut of an infinite buffer not to matter.
    pub fn top_mass(&self, j: usize, q: &[f64]) -> f64 {
        let pool: &PoolStates = &self.states.pools[j];
        let top = if pool.top == Top::Absorbing { pool.levels - 1 } else { pool.levels };
        if !pool.is_cut() { 0.0 } else { q[self.level(j, top)].iter().sum() }
    }
}
