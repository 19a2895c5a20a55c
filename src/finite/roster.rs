//! Which server takes a job, read literally: the servers of each pool and level stand on a list; a tier
//! is the lists it names; the fallback draws servers one by one and compares what they hold.

use rand::Rng;

use super::streams::below;
use crate::model::{Model, Tier, Tiers};

/// All servers, each on the list of its pool and level.
#[derive(Debug, Clone)]
pub(super) struct Roster<'a> {
    model: &'a Model,
    /// By pool and level, the servers there.
    lists: Vec<Vec<Vec<u32>>>,
    /// By server: its pool, level, and place on the list.
    servers: Vec<Place>,
    /// All servers in some order; a sample without replacement is shuffled to its front.
    order: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    pool: usize,
    level: usize,
    index: usize,
}

/// The server that a job is sent to. It may be full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) server: u32,
    /// No tier had a server.
    pub(super) fallback: bool,
}

impl<'a> Roster<'a> {
    /// Servers given as pool and level; there is one at least, and fewer than 2^32.
    pub(super) fn new(model: &'a Model, servers: impl Iterator<Item = (usize, usize)>) -> Self {
        let lists = vec![Vec::new(); model.pools.len()];
        let mut roster = Self { model, lists, servers: Vec::new(), order: Vec::new() };
        for (server, (pool, level)) in (0..).zip(servers) {
            roster.servers.push(Place { pool, level, index: 0 });
            roster.order.push(server);
            roster.enter(server, level);
        }
        roster
    }

    /// The number of servers.
    pub(super) fn size(&self) -> usize {
        self.servers.len()
    }

    /// A server by its rank in an order that does not matter.
    pub(super) fn server(&self, rank: usize) -> u32 {
        self.order[rank]
    }

    /// The pool of a server.
    #[inline]
    pub(super) fn pool(&self, server: u32) -> usize {
        self.servers[server as usize].pool
    }

    /// Jobs at a server.
    #[inline]
    pub(super) fn level(&self, server: u32) -> usize {
        self.servers[server as usize].level
    }

    /// Has a server room for one more job?
    #[inline]
    pub(super) fn has_room(&self, server: u32) -> bool {
        let Place { pool, level, .. } = self.servers[server as usize];
        self.model.pools[pool].buffer.is_none_or(|buffer| level < buffer as usize)
    }

    /// By level, the servers of a pool.
    pub(super) fn lists(&self, pool: usize) -> &[Vec<u32>] {
        &self.lists[pool]
    }

    /// Moves a server to the list of another level.
    #[inline]
    pub(super) fn set_level(&mut self, server: u32, level: usize) {
        let Place { pool, level: before, index } = self.servers[server as usize];
        let list = &mut self.lists[pool][before];
        list.swap_remove(index);
        if let Some(&moved) = list.get(index) {
            self.servers[moved as usize].index = index;
        }
        self.enter(server, level);
    }

    fn enter(&mut self, server: u32, level: usize) {
        let place = &mut self.servers[server as usize];
        let lists = &mut self.lists[place.pool];
        if level >= lists.len() {
            lists.resize_with(level + 1, Vec::new);
        }
        place.level = level;
        place.index = lists[level].len();
        lists[level].push(server);
    }

    /// Picks the server of a job: the one place where the policy is read.
    #[inline]
    pub(super) fn pick<R: Rng>(&mut self, rng: &mut R) -> Pick {
        let by_tier = match &self.model.policy.tiers {
            Tiers::List(tiers) => tiers.iter().find_map(|tier| self.in_tier(tier, rng)),
            every @ Tiers::EveryLevel => {
                let highest = self.lists.iter().map(Vec::len).max().unwrap_or(0);
                (0..highest).find_map(|k| self.in_tier(&every.get(k)?, rng))
            }
        };
        match by_tier {
            Some(server) => Pick { server, fallback: false },
            None => Pick { server: self.sample(rng), fallback: true },
        }
    }

    /// A random server of a tier by weight, if it has any.
    fn in_tier<R: Rng>(&self, tier: &Tier, rng: &mut R) -> Option<u32> {
        let lists = (0..self.lists.len()).flat_map(|j| {
            let levels = tier.levels_in(j);
            let end = (levels.end as usize).min(self.lists[j].len());
            // Full servers are in no tier.
            let end = self.model.pools[j].buffer.map_or(end, |buffer| end.min(buffer as usize));
            let from = (levels.start as usize).min(end);
            let weight = move |k: usize| tier.weight(j, u32::try_from(k).unwrap_or(u32::MAX)) as usize;
            (from..end).map(move |k| (&self.lists[j][k], weight(k)))
        });
        let total = lists.clone().map(|(list, weight)| list.len() * weight).sum::<usize>();
        if total == 0 {
            return None;
        }
        let mut rank = pick_index(rng, total);
        for (list, weight) in lists {
            match list.get(rank / weight) {
                Some(&server) => return Some(server),
                None => rank -= list.len() * weight,
            }
        }
        None
    }

    /// The server with the fewest jobs among d sampled ones, ties uniformly. Under `skip_full` one
    /// without room only if none has room. Without replacement at most all n servers are sampled.
    fn sample<R: Rng>(&mut self, rng: &mut R) -> u32 {
        let fallback = self.model.policy.fallback;
        let n = self.order.len();
        let draws = if fallback.replacement { fallback.d as usize } else { n.min(fallback.d as usize) };
        let mut best = (self.order[0], (true, usize::MAX));
        let mut ties = 0;
        for i in 0..draws {
            let server = if fallback.replacement {
                self.order[pick_index(rng, n)]
            } else {
                self.order.swap(i, i + pick_index(rng, n - i));
                self.order[i]
            };
            let rank = (fallback.skip_full && !self.has_room(server), self.level(server));
            if ties == 0 || rank < best.1 {
                best = (server, rank);
                ties = 1;
            } else if rank == best.1 {
                ties += 1;
                if pick_index(rng, ties) == 0 {
                    best.0 = server;
                }
            }
        }
        best.0
    }
}

/// A uniformly random index below `bound`.
#[inline]
fn pick_index<R: Rng>(rng: &mut R, bound: usize) -> usize {
    usize::try_from(below(rng, bound as u64)).unwrap_or(0)
}
