//! The state of n servers as integers: how many of them hold at least k jobs.
//!
//! Servers of one pool are exchangeable, so counts are the whole state, and one event costs the same
//! whatever n is. Think of the servers of a pool as sorted by level, fullest first: `at_least[k]` of
//! them hold k jobs or more, so the server of rank r has level #{k >= 1: `at_least[k]` > r}. A
//! uniformly random server is a uniformly random rank.

use rand::Rng;

use super::service::Service;
use super::start::Start;
use super::streams::below;

/// Levels are looked up so many at a time, and so many zeros follow the highest level that was reached.
/// Where in a block a search ends cannot be predicted: counting to its end is cheaper than a branch.
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

/// Servers by level and phase, for a pool whose service law has several phases.
#[derive(Debug, Clone)]
struct Cells {
    phases: usize,
    /// Servers of level k in phase m at `(k - 1) * phases + m`; a block of empty levels follows the
    /// highest that was reached.
    servers: Vec<u64>,
}

impl Cells {
    fn row(&self, level: usize) -> usize {
        (level - 1) * self.phases
    }

    fn add(&mut self, level: usize, phase: usize, servers: u64) {
        if self.row(level + BLOCK + 1) > self.servers.len() {
            self.servers.resize(2 * self.row(level + BLOCK + 1), 0);
        }
        let cell = self.row(level) + phase;
        self.servers[cell] += servers;
    }

    fn remove(&mut self, level: usize, phase: usize) {
        let cell = self.row(level) + phase;
        self.servers[cell] -= 1;
    }

    /// The level of the server of this rank, lowest first, among those in `phase`. There are none
    /// below level `lowest`, and more than `rank` in all.
    #[inline]
    fn level_of(&self, phase: usize, mut rank: u64, lowest: usize) -> usize {
        let mut level = lowest.max(1);
        // Blocks of levels without an early exit, for the same reason as in `Tails::level_of`.
        while let Some(block) = self.servers.get(self.row(level)..self.row(level + BLOCK)) {
            let (mut passed, mut sum) = (0, 0);
            for row in block.chunks_exact(self.phases) {
                sum += row[phase];
                passed += usize::from(rank >= sum);
            }
            if passed < BLOCK {
                return level + passed;
            }
            rank -= sum;
            level += BLOCK;
        }
        level
    }

    /// The phase of the server of this rank among those that hold `level` jobs.
    #[inline]
    fn phase_of(&self, level: usize, rank: u64) -> usize {
        let row = self.row(level);
        let (mut passed, mut sum) = (0, 0);
        for &servers in &self.servers[row..row + self.phases - 1] {
            sum += servers;
            passed += usize::from(rank >= sum);
        }
        passed
    }
}

/// The servers of one pool.
#[derive(Debug, Clone)]
pub(super) struct PoolCounts {
    /// The largest level; `usize::MAX` if there is none.
    pub(super) buffer: usize,
    /// Servers by level.
    pub(super) tails: Tails,
    cells: Option<Cells>,
    /// Where the pool's phases stand among the phases of all pools.
    first_phase: usize,
}

/// All servers, pool by pool.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    /// The pools, in the model's order; there is one at least.
    pub(super) pools: Vec<PoolCounts>,
    /// All pools together. Kept only when there are several.
    together: Option<Tails>,
    /// Servers at work by pool and phase, phases of one pool next to one another.
    busy: Vec<u64>,
}

impl Counts {
    /// Servers by level as given for each pool; a job in service is in the phase given, or starts in one
    /// drawn by its law.
    pub(super) fn new<R: Rng>(
        start: &Start,
        sizes: &[u64],
        buffers: &[usize],
        services: &[Service],
        rng: &mut R,
    ) -> Self {
        let tails: Vec<Tails> =
            start.busy.iter().zip(sizes).map(|(busy, &size)| Tails::new(size, busy)).collect();
        let together = (tails.len() > 1).then(|| {
            let top = tails.iter().map(|t| t.busy().len()).max().unwrap_or(0);
            let sum = |k| tails.iter().map(|t| t.at_least(k)).sum();
            Tails::new(sum(0), &(1..=top).map(sum).collect::<Vec<_>>())
        });
        let mut busy = Vec::new();
        let mut pools = Vec::new();
        for (((tails, phases), &buffer), service) in
            tails.into_iter().zip(&start.phases).zip(buffers).zip(services)
        {
            let first_phase = busy.len();
            busy.resize(first_phase + service.phases(), 0);
            let cells = if service.phases() == 1 {
                busy[first_phase] = tails.at_least(1);
                None
            } else {
                let mut cells = Cells { phases: service.phases(), servers: Vec::new() };
                for level in 1..=tails.busy().len() {
                    let mut put = |phase: usize, servers: u64| {
                        cells.add(level, phase, servers);
                        busy[first_phase + phase] += servers;
                    };
                    match phases.get(level - 1) {
                        Some(given) => given.iter().enumerate().for_each(|(phase, &s)| put(phase, s)),
                        None => service.start_many(tails.exactly(level), rng, put),
                    }
                }
                Some(cells)
            };
            pools.push(PoolCounts { buffer, tails, cells, first_phase });
        }
        Self { pools, together, busy }
    }

    /// Servers at work by pool and phase, phases of one pool next to one another.
    #[inline]
    pub(super) fn busy(&self) -> &[u64] {
        &self.busy
    }

    /// The level of a uniformly random server of `pool` among those at work in `phase`.
    #[inline]
    pub(super) fn random_level<R: Rng>(&self, pool: usize, phase: usize, rng: &mut R) -> usize {
        let servers = &self.pools[pool];
        let rank = below(rng, self.busy[servers.first_phase + phase]);
        match &servers.cells {
            None => servers.tails.level_of(rank),
            Some(cells) => cells.level_of(phase, rank, servers.tails.lowest),
        }
    }

    /// Servers of `pool` with 1, 2, ... jobs or more by the phase of the job in service, up to `levels` and
    /// as far as there are any; nothing where there is one phase.
    pub(super) fn by_phase(&self, pool: usize, levels: usize) -> Vec<Vec<u64>> {
        let servers = &self.pools[pool];
        let Some(cells) = &servers.cells else { return Vec::new() };
        let top = servers.tails.busy().iter().take_while(|&&servers| servers > 0).count();
        let mut tails = vec![vec![0; cells.phases]; top];
        let mut sum = vec![0; cells.phases];
        for (tails, row) in tails.iter_mut().zip(cells.servers.chunks(cells.phases)).rev() {
            sum.iter_mut().zip(row).for_each(|(sum, servers)| *sum += servers);
            tails.clone_from(&sum);
        }
        tails.truncate(levels);
        tails
    }

    /// Servers of all pools by level.
    #[inline]
    pub(super) fn all(&self) -> &Tails {
        self.together.as_ref().unwrap_or(&self.pools[0].tails)
    }

    /// The phase of the job in service at a uniformly random server of `pool` that holds `level` jobs;
    /// the first of them if it has one phase or `level` is 0.
    #[inline]
    pub(super) fn random_phase<R: Rng>(&self, pool: usize, level: usize, rng: &mut R) -> usize {
        let servers = &self.pools[pool];
        match &servers.cells {
            Some(cells) if level > 0 => cells.phase_of(level, below(rng, servers.tails.exactly(level))),
            _ => 0,
        }
    }

    /// How many servers of `pool` hold `level` jobs, the one in service in `phase` if there is any.
    pub(super) fn exactly(&self, pool: usize, level: usize, phase: usize) -> u64 {
        let servers = &self.pools[pool];
        match &servers.cells {
            Some(cells) if level > 0 => cells.servers.get(cells.row(level) + phase).copied().unwrap_or(0),
            _ => servers.tails.exactly(level),
        }
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
        let phase = match &self.pools[pool].cells {
            Some(_) if level == 0 => service.start(rng),
            _ => self.random_phase(pool, level, rng),
        };
        self.raise(pool, level, phase)
    }

    /// Hands a job to a server of `pool` that holds `level` jobs and has this phase, the one that the job
    /// starts in if the server is idle. Returns what [`Self::arrive`] does.
    #[inline]
    pub(super) fn raise(&mut self, pool: usize, level: usize, phase: usize) -> u64 {
        let servers = &mut self.pools[pool];
        self.busy[servers.first_phase + phase] += u64::from(level == 0);
        if let Some(cells) = &mut servers.cells {
            if level > 0 {
                cells.remove(level, phase);
            }
            cells.add(level + 1, phase, 1);
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
        let several = self.pools[pool].cells.is_some();
        let next = if several && level > 1 { service.start(rng) } else { 0 };
        self.lower(pool, level, phase, next)
    }

    /// The same with the phase that the next job, if any, starts in.
    #[inline]
    pub(super) fn lower(&mut self, pool: usize, level: usize, phase: usize, next: usize) -> u64 {
        let servers = &mut self.pools[pool];
        self.busy[servers.first_phase + phase] -= 1;
        self.busy[servers.first_phase + next] += u64::from(level > 1);
        if let Some(cells) = &mut servers.cells {
            cells.remove(level, phase);
            if level > 1 {
                cells.add(level - 1, next, 1);
            }
        }
        if let Some(together) = &mut self.together {
            together.lower(level);
        }
        servers.tails.lower(level)
    }

    /// Moves the job in service at a server of `pool` that holds `level` jobs to another phase.
    pub(super) fn change_phase(&mut self, pool: usize, level: usize, from: usize, to: usize) {
        let servers = &mut self.pools[pool];
        if let Some(cells) = &mut servers.cells {
            cells.remove(level, from);
            cells.add(level, to, 1);
            self.busy[servers.first_phase + from] -= 1;
            self.busy[servers.first_phase + to] += 1;
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
