//! The state space: what one server can be in, and how it moves.
//!
//! A server state is (pool, level, phase); an idle server has one state. States are laid out pool by
//! pool, level by level, phase by phase, so that the states of one level of a pool are neighbours and
//! an arrival at a busy server moves it `phases` places up.

use super::{Model, PhaseType};

/// What the largest level that is represented stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Top {
    /// The buffer's true end: a job that comes to a full server is lost.
    Buffer,
    /// An infinite (or longer) buffer cut here, jobs beyond it ignored: a lower bound of the tails.
    Reflecting,
    /// An infinite buffer cut here, servers that reach it never coming back: an upper bound.
    Absorbing,
}

/// A move that one server makes on its own: service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Move {
    /// State before.
    pub from: usize,
    /// State after.
    pub to: usize,
    /// Rate per server in state `from`.
    pub rate: f64,
}

/// The states of one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolStates {
    /// Index of the idle state.
    pub offset: usize,
    /// The largest level represented.
    pub levels: u32,
    /// What that level stands for.
    pub top: Top,
    /// Share of all servers that are in the pool.
    pub share: f64,
    /// The service law, at speed 1.
    pub law: PhaseType,
    /// The speed at level 1, 2, ..., as in the model.
    pub speed: Vec<f64>,
    /// Jobs that a server takes without letting any of them wait.
    pub slots: u32,
}

/// All server states of a model, with a given number of levels in each pool.
#[derive(Debug, Clone, PartialEq)]
pub struct StateSpace {
    /// The pools, in the model's order.
    pub pools: Vec<PoolStates>,
    len: usize,
}

impl PoolStates {
    /// Number of phases of a busy server.
    #[must_use]
    pub fn phases(&self) -> usize {
        self.law.phases()
    }

    /// Number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        1 + self.levels as usize * self.phases()
    }

    /// Never: a pool has an idle state at least.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// How fast a server works that holds `level` jobs, at least 1.
    #[must_use]
    pub fn speed_at(&self, level: u32) -> f64 {
        self.speed[(level.max(1) as usize).min(self.speed.len()) - 1]
    }

    /// Indices of the states of one level.
    #[must_use]
    pub fn level(&self, k: u32) -> std::ops::Range<usize> {
        match k {
            0 => self.offset..self.offset + 1,
            _ => {
                let start = self.offset + 1 + (k as usize - 1) * self.phases();
                start..start + self.phases()
            }
        }
    }

    /// Indices of all states of the pool.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.len()
    }

    /// The number of levels to go on with when those represented are too few.
    #[must_use]
    pub fn more_levels(&self) -> u32 {
        self.levels + 4 + self.levels / 2
    }

    /// Whether the pool was cut short of its buffer's end.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.top != Top::Buffer
    }

    /// Whether an arrival moves a server that holds `level` jobs.
    #[must_use]
    pub fn has_room(&self, level: u32) -> bool {
        level < self.levels
    }

    /// Whether a server that holds `level` jobs is truly full: a job that comes to it is lost.
    #[must_use]
    pub fn is_full(&self, level: u32) -> bool {
        level >= self.levels && self.top == Top::Buffer
    }
}

impl StateSpace {
    /// The states of `model` with `levels[j]` levels in pool j, or as many as its buffer has if that
    /// is fewer. A pool cut short gets the top given by `cut`.
    #[must_use]
    pub fn new(model: &Model, levels: &[u32], cut: Top) -> Self {
        let mut len = 0;
        let pools = model
            .pools
            .iter()
            .zip(levels)
            .map(|(pool, &wanted)| {
                let (levels, top) = match pool.buffer {
                    Some(b) if wanted >= b => (b, Top::Buffer),
                    _ => (wanted.max(1), cut),
                };
                let states = PoolStates {
                    offset: len,
                    levels,
                    top,
                    share: pool.share,
                    law: pool.law.clone(),
                    speed: (1..=pool.speed_levels().min(levels)).map(|k| pool.speed_at(k)).collect(),
                    slots: pool.slots,
                };
                len += states.len();
                states
            })
            .collect();
        Self { pools, len }
    }

    /// Number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Is there no state? Only without pools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The largest level represented in any pool.
    #[must_use]
    pub fn max_level(&self) -> u32 {
        self.pools.iter().map(|p| p.levels).max().unwrap_or(0)
    }

    /// The occupancy of the empty system: every server idle.
    #[must_use]
    pub fn idle(&self) -> Vec<f64> {
        let mut q = vec![0.0; self.len];
        for pool in &self.pools {
            q[pool.offset] = pool.share;
        }
        q
    }

    /// The service generator as a list of moves. A job that ends at level k sends its server to level
    /// k - 1, where the next job starts in a phase drawn from the law's initial probabilities.
    /// Servers at an absorbing top do not move.
    #[must_use]
    pub fn service_moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for pool in &self.pools {
            let served = if pool.top == Top::Absorbing { pool.levels - 1 } else { pool.levels };
            for k in 1..=served {
                let speed = pool.speed_at(k);
                for (m, from) in pool.level(k).enumerate() {
                    let at = |to: usize, rate: f64| Move { from, to, rate: speed * rate };
                    let (phases, exit) = (&pool.law.moves()[m], pool.law.exit()[m]);
                    moves.extend(
                        pool.level(k).zip(phases).filter(|(_, r)| **r > 0.0).map(|(to, &r)| at(to, r)),
                    );
                    if exit > 0.0 {
                        moves.extend(pool.entry(k - 1).map(|(to, share)| at(to, exit * share)));
                    }
                }
            }
        }
        moves
    }

    /// Tails x_k of one pool, k = 1..levels, as fractions of all servers, summed from the top so that
    /// small tails keep their digits.
    #[must_use]
    pub fn tails(&self, pool: usize, q: &[f64]) -> Vec<f64> {
        let states = &self.pools[pool];
        let mut tails = vec![0.0; states.levels as usize];
        let mut sum = 0.0;
        for k in (1..=states.levels).rev() {
            sum += q[states.level(k)].iter().sum::<f64>();
            tails[k as usize - 1] = sum;
        }
        tails
    }

    /// The same by the phase of the job in service: S_{k,m} of one pool, one list a level; nothing where
    /// there is one phase only.
    #[must_use]
    pub fn by_phase(&self, pool: usize, q: &[f64]) -> Vec<Vec<f64>> {
        let states = &self.pools[pool];
        if states.phases() == 1 {
            return Vec::new();
        }
        let mut tails = vec![Vec::new(); states.levels as usize];
        let mut sum = vec![0.0; states.phases()];
        for k in (1..=states.levels).rev() {
            sum.iter_mut().zip(&q[states.level(k)]).for_each(|(sum, q)| *sum += q);
            tails[k as usize - 1].clone_from(&sum);
        }
        tails
    }
}

impl PoolStates {
    /// Where a server is found that has just come down to level k: states and probabilities.
    pub fn entry(&self, k: u32) -> impl Iterator<Item = (usize, f64)> {
        let idle = (k == 0).then_some((self.offset, 1.0));
        let busy = if k == 0 { 0..0 } else { self.level(k) };
        let initial = self.law.initial();
        idle.into_iter().chain(busy.zip(initial).filter(|(_, p)| **p > 0.0).map(|(s, &p)| (s, p)))
    }

    /// Where a server in state `s` of level k goes when it is given a job: states and probabilities.
    /// Nowhere if it has no room.
    pub fn after(&self, k: u32, s: usize) -> impl Iterator<Item = (usize, f64)> {
        let start = (k == 0 && self.has_room(0)).then(|| self.entry(1));
        let up = (k > 0 && self.has_room(k)).then(|| (s + self.phases(), 1.0));
        start.into_iter().flatten().chain(up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Policy, Pool};

    #[test]
    fn states_are_laid_out_level_by_level() {
        let law = PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap();
        let pool = |name: &str, share, buffer| Pool::new(name, share, buffer, law.clone());
        let model = Model {
            name: String::new(),
            description: String::new(),
            arrival_rate: 0.5,
            pools: vec![pool("a", 0.4, Some(2)), pool("b", 0.6, None)],
            policy: Policy::pull(),
        };
        let states = StateSpace::new(&model, &[9, 3], Top::Reflecting);
        assert_eq!(states.len(), 5 + 7);
        assert_eq!(states.pools[0].top, Top::Buffer);
        assert_eq!(states.pools[1].level(2), 8..10);
        assert_eq!(states.pools[1].after(2, 9).collect::<Vec<_>>(), vec![(11, 1.0)]);
        assert_eq!(states.pools[0].after(0, 0).collect::<Vec<_>>(), vec![(1, 1.0)]);
        // Level 1 of pool a: phase 1 ends or goes on, phase 2 ends.
        let from_level_1: Vec<Move> =
            states.service_moves().into_iter().filter(|m| m.from == 1 || m.from == 2).collect();
        assert_eq!(
            from_level_1,
            vec![
                Move { from: 1, to: 2, rate: 0.5 },
                Move { from: 1, to: 0, rate: 1.5 },
                Move { from: 2, to: 0, rate: 0.5 }
            ]
        );
        assert_eq!(
            states.tails(1, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05]),
            vec![0.5, 0.30000000000000004, 0.1]
        );
    }
}
