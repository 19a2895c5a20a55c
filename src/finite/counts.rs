//! The state of n servers as integers: how many of them hold at least k jobs.
//!
//! Servers of one pool are exchangeable, so counts are the whole state, and one event costs the same
//! whatever n is. Think of the servers of a pool as sorted by level, fullest first: `at_least[k]` of
//! them hold k jobs or more, so the server of rank r has level #{k >= 1: `at_least[k]` > r}. A
//! uniformly random server is a uniformly random rank.

use rand::Rng;

use super::service::Service;
use super::streams::below;

/// A level is looked up four at a time; so many zeros follow the highest level that was reached.
const BLOCK: usize = 4;

/// Blocks that are looked through one by one before bisection takes over: queues that are spread over
/// many levels are rare, short ones are the rule.
const BLOCKS_SCANNED: usize = 8;

/// A set of servers by level.
#[derive(Debug, Clone)]
pub(super) struct Tails {
    at_least: Vec<u64>,
    /// The lowest level that any server holds; `usize::MAX` without servers.
    lowest: usize,
}

impl Tails {
    /// `size` servers of which `busy[k - 1]`, non-increasing and at most `size`, hold k jobs or more.
    pub(super) fn new(size: u64, busy: &[u64]) -> Self {
        let mut at_least = Vec::with_capacity(busy.len() + 1 + BLOCK);
        at_least.push(size);
        at_least.extend_from_slice(busy);
        let lowest = if size == 0 { usize::MAX } else { busy.iter().take_while(|&&c| c == size).count() };
        at_least.resize(at_least.len() + BLOCK, 0);
        Self { at_least, lowest }
    }

    /// How many servers hold `level` jobs or more.
    #[inline]
    pub(super) fn at_least(&self, level: usize) -> u64 {
        self.at_least.get(level).copied().unwrap_or(0)
    }

    /// How many servers hold exactly `level` jobs.
    #[inline]
    pub(super) fn exactly(&self, level: usize) -> u64 {
        self.at_least(level) - self.at_least(level.saturating_add(1))
    }

    /// The number of servers.
    #[inline]
    pub(super) fn size(&self) -> u64 {
        self.at_least(0)
    }

    /// The lowest level that any server holds; `usize::MAX` without servers.
    #[inline]
    pub(super) fn lowest(&self) -> usize {
        self.lowest
    }

    /// Counts for k = 1, 2, ... as far as servers were ever seen, zeros perhaps following.
    pub(super) fn busy(&self) -> &[u64] {
        &self.at_least[1..]
    }

    /// The level of the server with this rank, fullest first. Looks upwards from the lowest level in
    /// use, so that an overloaded system, whose queues are all long, costs no more than a light one.
    #[inline]
    pub(super) fn level_of(&self, rank: u64) -> usize {
        let mut level = self.lowest;
        for _ in 0..BLOCKS_SCANNED {
            let Some(block) = self.at_least.get(level + 1..level + 1 + BLOCK) else { return level };
            let above: usize = block.iter().map(|&c| usize::from(c > rank)).sum();
            level += above;
            if above < BLOCK {
                return level;
            }
        }
        level + self.at_least[level + 1..].partition_point(|&c| c > rank)
    }

    /// Moves a server from `level` one up. Returns how many held `level + 1` or more before.
    #[inline]
    fn raise(&mut self, level: usize) -> u64 {
        if level + 2 + BLOCK > self.at_least.len() {
            self.grow(level);
        }
        let before = self.at_least[level + 1];
        self.at_least[level + 1] = before + 1;
        // The server that moved makes level + 1 inhabited, so the lowest level rises by one at most.
        self.lowest += usize::from(self.lowest == level && before + 1 == self.at_least[0]);
        before
    }

    #[cold]
    fn grow(&mut self, level: usize) {
        self.at_least.resize(2 * (level + 2) + BLOCK, 0);
    }

    /// Moves a server from `level` (at least 1) one down. Returns how many held `level` or more before.
    #[inline]
    fn lower(&mut self, level: usize) -> u64 {
        let before = self.at_least[level];
        self.at_least[level] = before - 1;
        self.lowest = self.lowest.min(level - 1);
        before
    }
}

/// The phases that busy servers are in, for a pool whose service law has several.
#[derive(Debug, Clone)]
struct Phases {
    busy: Vec<u64>,
    /// Servers of level k in phase m at `(k - 1) * phases + m`.
    cells: Vec<u64>,
}

impl Phases {
    fn row(&self, level: usize) -> usize {
        (level - 1) * self.busy.len()
    }

    fn add(&mut self, level: usize, phase: usize, servers: u64) {
        let cell = self.row(level) + phase;
        if cell >= self.cells.len() {
            self.cells.resize(2 * (self.row(level) + self.busy.len()), 0);
        }
        self.cells[cell] += servers;
        self.busy[phase] += servers;
    }

    fn remove(&mut self, level: usize, phase: usize) {
        let cell = self.row(level) + phase;
        self.cells[cell] -= 1;
        self.busy[phase] -= 1;
    }

    /// The level of a uniformly random server among those in `phase`; no level below `lowest` is used.
    fn random_level<R: Rng>(&self, phase: usize, lowest: usize, rng: &mut R) -> usize {
        let mut rank = below(rng, self.busy[phase]);
        let mut level = lowest.max(1);
        for &servers in self.cells.iter().skip(self.row(level) + phase).step_by(self.busy.len()) {
            if rank < servers {
                break;
            }
            rank -= servers;
            level += 1;
        }
        level
    }

    /// The phase of a uniformly random server among the `servers` that hold `level` jobs.
    fn random_phase<R: Rng>(&self, level: usize, servers: u64, rng: &mut R) -> usize {
        let mut rank = below(rng, servers);
        let row = self.row(level);
        for (phase, &servers) in self.cells[row..row + self.busy.len()].iter().enumerate() {
            if rank < servers {
                return phase;
            }
            rank -= servers;
        }
        self.busy.len() - 1
    }
}

/// The servers of one pool.
#[derive(Debug, Clone)]
pub(super) struct PoolCounts {
    /// The largest level; `usize::MAX` if there is none.
    pub(super) buffer: usize,
    /// Servers by level.
    pub(super) tails: Tails,
    phases: Option<Phases>,
}

impl PoolCounts {
    /// Servers at work in a phase of their service law.
    #[inline]
    pub(super) fn busy(&self, phase: usize) -> u64 {
        match &self.phases {
            None => self.tails.at_least(1),
            Some(phases) => phases.busy[phase],
        }
    }

    /// The level of a uniformly random server among those at work in `phase`.
    #[inline]
    pub(super) fn random_level<R: Rng>(&self, phase: usize, rng: &mut R) -> usize {
        match &self.phases {
            None => self.tails.level_of(below(rng, self.tails.at_least(1))),
            Some(phases) => phases.random_level(phase, self.tails.lowest, rng),
        }
    }
}

/// All servers, pool by pool.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    /// The pools, in the model's order; there is one at least.
    pub(super) pools: Vec<PoolCounts>,
    /// All pools together. Kept only when there are several.
    together: Option<Tails>,
}

impl Counts {
    /// Servers by level as given for each pool; each job in service starts in a phase drawn by its law.
    pub(super) fn new<R: Rng>(
        tails: Vec<Tails>,
        buffers: &[usize],
        services: &[Service],
        rng: &mut R,
    ) -> Self {
        let together = (tails.len() > 1).then(|| {
            let top = tails.iter().map(|t| t.busy().len()).max().unwrap_or(0);
            let sum = |k| tails.iter().map(|t| t.at_least(k)).sum();
            Tails::new(sum(0), &(1..=top).map(sum).collect::<Vec<_>>())
        });
        let pools = tails
            .into_iter()
            .zip(buffers)
            .zip(services)
            .map(|((tails, &buffer), service)| {
                let phases = (service.phases() > 1).then(|| {
                    let mut phases = Phases { busy: vec![0; service.phases()], cells: Vec::new() };
                    for level in 1..=tails.busy().len() {
                        service.start_many(tails.exactly(level), rng, |phase, servers| {
                            phases.add(level, phase, servers);
                        });
                    }
                    phases
                });
                PoolCounts { buffer, tails, phases }
            })
            .collect();
        Self { pools, together }
    }

    /// Servers of all pools by level.
    #[inline]
    pub(super) fn all(&self) -> &Tails {
        self.together.as_ref().unwrap_or(&self.pools[0].tails)
    }

    /// Hands a job to a random server of `pool` that holds `level` jobs. Returns how many servers of
    /// the pool held `level + 1` or more before.
    #[inline]
    pub(super) fn arrive<R: Rng>(
        &mut self,
        pool: usize,
        level: usize,
        service: &Service,
        rng: &mut R,
    ) -> u64 {
        let servers = &mut self.pools[pool];
        if let Some(phases) = &mut servers.phases {
            let phase = if level == 0 {
                service.start(rng)
            } else {
                let phase = phases.random_phase(level, servers.tails.exactly(level), rng);
                phases.remove(level, phase);
                phase
            };
            phases.add(level + 1, phase, 1);
        }
        if let Some(together) = &mut self.together {
            together.raise(level);
        }
        servers.tails.raise(level)
    }

    /// Ends the service of a job in `phase` at a server of `pool` that holds `level` jobs; the next
    /// job there, if any, starts. Returns how many servers of the pool held `level` or more before.
    #[inline]
    pub(super) fn depart<R: Rng>(
        &mut self,
        pool: usize,
        level: usize,
        phase: usize,
        service: &Service,
        rng: &mut R,
    ) -> u64 {
        let servers = &mut self.pools[pool];
        if let Some(phases) = &mut servers.phases {
            phases.remove(level, phase);
            if level > 1 {
                phases.add(level - 1, service.start(rng), 1);
            }
        }
        if let Some(together) = &mut self.together {
            together.lower(level);
        }
        servers.tails.lower(level)
    }

    /// Moves the job in service at a server of `pool` that holds `level` jobs to another phase.
    pub(super) fn change_phase(&mut self, pool: usize, level: usize, from: usize, to: usize) {
        if let Some(phases) = &mut self.pools[pool].phases {
            phases.remove(level, from);
            phases.add(level, to, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_levels_whatever_the_spread() {
        for top in [0, 1, 3, 4, 5, 31, 32, 33, 100] {
            let busy: Vec<u64> = (0..top).map(|k| 2 * (top - k)).collect();
            let tails = Tails::new(2 * top + 2, &busy);
            for rank in 0..tails.size() {
                let by_definition = busy.iter().filter(|&&c| c > rank).count();
                assert_eq!(tails.level_of(rank), by_definition, "top {top}, rank {rank}");
            }
        }
    }

    #[test]
    fn the_lowest_level_follows_the_servers() {
        let mut tails = Tails::new(2, &[]);
        tails.raise(0);
        assert_eq!(tails.lowest(), 0);
        tails.raise(1);
        tails.raise(0);
        assert_eq!((tails.lowest(), tails.exactly(1), tails.exactly(2)), (1, 1, 1));
        tails.lower(2);
        tails.lower(1);
        assert_eq!((tails.lowest(), tails.exactly(0), tails.exactly(1)), (0, 1, 1));
        assert_eq!(Tails::new(0, &[]).lowest(), usize::MAX);
        assert_eq!(Tails::new(3, &[3, 3, 1]).lowest(), 2);
    }
}
