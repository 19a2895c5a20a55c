//! All states of n servers as numbers of servers per cell, and the rates between them, written from
//! the description: service moves and arrival moves of one server, tiers, fallback.

use std::collections::BTreeMap;

use indexmap::IndexSet;

use super::places::{Cell, Places, held_when_idle, hoarders, holders};
use super::routing::{Routing, Sent, route};
use super::sparse::Generator;
use super::{ExactError, Size};
use crate::finite::start::Start;
use crate::model::{Model, StateSpace, Top};

/// Memory that the states and their rates may take.
pub(super) const MEMORY_LIMIT: u64 = 1 << 30;

/// Work that the states at time 0 may take: states, summed over the servers put into them.
const MOST_PLACED: usize = 10_000_000;

/// Places that one server may have.
const MOST_PLACES: usize = 1 << 20;

/// Occupied places and the servers there, sorted by place.
pub(super) type Occupied = Box<[(u32, u32)]>;

/// The chain of n servers.
#[derive(Debug)]
pub(super) struct Chain<'a> {
    pub(super) places: Places<'a>,
    pub(super) space: StateSpace,
    /// The states, sorted by jobs; state 0 is the idle system.
    pub(super) states: Vec<Occupied>,
    /// Jobs in each state.
    pub(super) jobs: Vec<u32>,
    /// Whether a state can be reached from the idle system.
    pub(super) from_idle: Vec<bool>,
    pub(super) generator: Generator,
    /// States with a server where a long buffer was cut.
    at_cut: Vec<u32>,
    /// Probabilities at time 0.
    pub(super) start: Vec<f64>,
    /// Bytes taken, about.
    pub(super) memory: u64,
}

impl<'a> Chain<'a> {
    /// All states of `sizes` servers that can be reached from the idle system or from the start, which
    /// is given by pool as the servers that hold 1, 2, ... jobs or more. Longer buffers end at `cut`:
    /// jobs sent to a server there are forgotten.
    pub(super) fn new(model: &'a Model, sizes: &[u64], start: &Start, cut: u32) -> Result<Self, ExactError> {
        let n = sizes.iter().sum::<u64>();
        let space = StateSpace::new(model, &vec![cut; sizes.len()], Top::Reflecting);
        let too_large = || ExactError::TooLarge {
            n,
            cut,
            combinations: combinations(&space, holders(model), sizes),
            limit: MEMORY_LIMIT >> 20,
        };
        let most_jobs = u64::from(space.max_level().max(1)).saturating_mul(n);
        if space.len().saturating_mul(holders(model)) > MOST_PLACES || most_jobs > u64::from(u32::MAX) {
            return Err(too_large());
        }
        if hoarders(model).len() > 1 {
            return Err(ExactError::Hoarders);
        }
        let places = Places::new(model, &space);
        let steps = Steps::new(&places, &space, n);
        let mut found = Explored::default();
        let mut idle = Vec::new();
        for (j, (pool, &size)) in space.pools.iter().zip(sizes).enumerate() {
            idle_servers(&mut idle, &places, pool.offset, &held_when_idle(model, j, size));
        }
        found.states.insert(idle.into());
        found.explore(&steps).ok_or_else(too_large)?;
        let reached = found.states.len();
        let mut first = Vec::new();
        for (state, p) in starts(&places, &space, sizes, start).ok_or_else(too_large)? {
            first.push((found.states.insert_full(state).0, p));
        }
        found.explore(&steps).ok_or_else(too_large)?;

        let Explored { states, rows, memory } = found;
        let jobs_in =
            |state: &Occupied| state.iter().map(|&(p, count)| places.cell(p).level * count).sum::<u32>();
        let is_cut = |cell: Cell| {
            let pool = &space.pools[cell.pool];
            pool.is_cut() && cell.level == pool.levels
        };
        let mut order: Vec<u32> = (0..index(states.len())).collect();
        order.sort_by_cached_key(|&i| (states.get_index(i as usize).map_or(0, jobs_in), i));
        let states: Vec<Occupied> =
            order.iter().filter_map(|&i| states.get_index(i as usize).cloned()).collect();
        let at_cut = |state: &Occupied| state.iter().any(|&(p, _)| is_cut(places.cell(p)));
        let mut law = vec![0.0; states.len()];
        first.iter().for_each(|&(i, p)| law[i] += p);
        Ok(Self {
            generator: rows.reordered(&order),
            jobs: states.iter().map(jobs_in).collect(),
            from_idle: order.iter().map(|&i| (i as usize) < reached).collect(),
            at_cut: (0..).zip(&states).filter(|(_, state)| at_cut(state)).map(|(i, _)| i).collect(),
            start: order.iter().map(|&i| law[i as usize]).collect(),
            states,
            places,
            space,
            memory,
        })
    }

    /// How large it is.
    pub(super) fn size(&self, n: u64) -> Size {
        Size {
            n,
            states: self.states.len(),
            transitions: self.generator.transitions(),
            mebibytes: (self.memory >> 20) + 1,
            levels: self.space.pools.iter().map(|p| p.levels).collect(),
        }
    }

    /// How a job picks its server in a state.
    pub(super) fn route(&self, state: usize) -> Routing {
        route(&self.places, &self.states[state])
    }

    /// The rate at which a server in a cell that has a job completes it.
    pub(super) fn exit(&self, cell: usize) -> f64 {
        let Cell { pool, level, .. } = self.places.cells[cell];
        let states = &self.space.pools[pool];
        states.speed_at(level) * states.law.exit()[cell - states.level(level).start]
    }

    /// The rate at which servers send messages in a state, where there are several routers.
    pub(super) fn messages(&self, state: usize) -> f64 {
        let busy = self.states[state].iter().filter(|s| self.places.cell(s.0).level == 1);
        let silent = busy.filter(|s| self.places.router(s.0).is_none());
        silent.map(|s| f64::from(s.1) * self.exit(self.places.cell_number(s.0))).sum()
    }

    /// The probability that some server stands where a long buffer was cut.
    pub(super) fn cut_mass(&self, law: &[f64]) -> f64 {
        self.at_cut.iter().map(|&state| law[state as usize]).sum()
    }
}

/// States in the order they were found, and the rates out of those that were looked at.
#[derive(Default)]
struct Explored {
    states: IndexSet<Occupied>,
    rows: Generator,
    memory: u64,
}

impl Explored {
    /// Looks at all states that were found, and at all that are found by that. `None` if memory runs out.
    fn explore(&mut self, steps: &Steps) -> Option<()> {
        while let Some(state) = self.states.get_index(self.rows.states()) {
            let occupied = state.len();
            let mut moves = BTreeMap::new();
            for (to, rate) in steps.from(state) {
                *moves.entry(index(self.states.insert_full(to).0)).or_insert(0.0) += rate;
            }
            self.memory += bytes(occupied, moves.len());
            self.rows.push(moves.into_iter());
            if self.memory > MEMORY_LIMIT {
                return None;
            }
        }
        Some(())
    }
}

/// What can happen in a state.
struct Steps<'a> {
    places: &'a Places<'a>,
    space: &'a StateSpace,
    /// By place, service moves as (place after, rate of one server).
    services: Vec<Vec<(u32, f64)>>,
    arrivals: f64,
}

impl<'a> Steps<'a> {
    #[allow(clippy::cast_precision_loss)]
    fn new(places: &'a Places, space: &'a StateSpace, n: u64) -> Self {
        let arrivals = places.model.arrival_rate * n as f64;
        Self { places, space, services: places.services(space), arrivals }
    }

    /// Transitions out of a state, some perhaps to the same state.
    fn from(&self, state: &Occupied) -> Vec<(Occupied, f64)> {
        let mut moves = Vec::new();
        for &(place, count) in state {
            for &(to, rate) in &self.services[place as usize] {
                moves.push((moved(state, place, to), rate * f64::from(count)));
            }
        }
        if self.arrivals > 0.0 {
            for Sent { place, share, router } in route(self.places, state).sent {
                let Cell { pool, level, full } = self.places.cell(place);
                let rate = self.arrivals * share;
                let cell = self.places.cell_number(place);
                if full {
                    // The job is lost; a message that brought it here is used up.
                    moves.push((moved(state, place, self.places.place(cell, router)), rate));
                    continue;
                }
                for (to, p) in self.space.pools[pool].after(level, cell) {
                    moves.push((moved(state, place, self.places.place(to, router)), rate * p));
                }
            }
        }
        moves.retain(|m| m.1 > 0.0);
        moves
    }
}

/// The state with one server moved from a place that has any to another.
fn moved(state: &Occupied, from: u32, to: u32) -> Occupied {
    let mut after: Vec<(u32, u32)> =
        state.iter().map(|&(p, count)| (p, count - u32::from(p == from))).filter(|s| s.1 > 0).collect();
    add(&mut after, to, 1);
    after.into()
}

fn add(state: &mut Vec<(u32, u32)>, place: u32, servers: u32) {
    match state.binary_search_by_key(&place, |s| s.0) {
        Ok(i) => state[i].1 += servers,
        Err(i) => state.insert(i, (place, servers)),
    }
}

/// Adds the idle servers of a pool, whose cell this is, by the router that has their message.
fn idle_servers(state: &mut Vec<(u32, u32)>, places: &Places, cell: usize, held: &[u64]) {
    for (r, &servers) in held.iter().enumerate().filter(|(_, servers)| **servers > 0) {
        // Fewer than 2^32 servers, as was checked.
        add(state, places.place(cell, Some(r)), u32::try_from(servers).unwrap_or(u32::MAX));
    }
}

/// The states at time 0 with their probabilities: jobs in service are in the phase given, or start in one
/// drawn by their law. `None` if there are too many.
fn starts(
    places: &Places,
    space: &StateSpace,
    sizes: &[u64],
    start: &Start,
) -> Option<BTreeMap<Occupied, f64>> {
    let mut placed = 0;
    let mut idle = Vec::new();
    for (pool, held) in space.pools.iter().zip(&start.held) {
        idle_servers(&mut idle, places, pool.offset, held);
    }
    let mut all = BTreeMap::from([(Occupied::from(idle), 1.0)]);
    let place = |all: BTreeMap<Occupied, f64>, entry: &[(usize, f64)], servers: u32| {
        let mut next = BTreeMap::new();
        for (state, p) in all {
            for &(cell, share) in entry {
                let mut state = state.to_vec();
                add(&mut state, places.place(cell, None), servers);
                *next.entry(Occupied::from(state)).or_insert(0.0) += p * share;
            }
        }
        next
    };
    let given = start.busy.iter().zip(&start.phases);
    for ((pool, &size), (busy, phases)) in space.pools.iter().zip(sizes).zip(given) {
        let at_least = |k: usize| if k == 0 { size } else { busy.get(k - 1).copied().unwrap_or(0) };
        for (level, k) in (1..).zip(1usize..=busy.len()) {
            let servers = u32::try_from(at_least(k) - at_least(k + 1)).unwrap_or(u32::MAX);
            if let Some(phases) = phases.get(k - 1) {
                for (cell, &servers) in pool.level(level).zip(phases).filter(|(_, s)| **s > 0) {
                    all = place(all, &[(cell, 1.0)], u32::try_from(servers).unwrap_or(u32::MAX));
                }
                continue;
            }
            let entry: Vec<(usize, f64)> = pool.entry(level).collect();
            match entry.len() {
                _ if servers == 0 => {}
                1 => all = place(all, &entry, servers),
                _ => {
                    for _ in 0..servers {
                        all = place(all, &entry, 1);
                        placed += all.len();
                        if placed > MOST_PLACED {
                            return None;
                        }
                    }
                }
            }
        }
    }
    Some(all)
}

/// Bytes that a state takes in the index, in the list of states and in the generator and its copy.
fn bytes(occupied: usize, transitions: usize) -> u64 {
    2 * (32 + 8 * occupied as u64) + 16 + 2 * (8 + 16 * transitions as u64) + 6 * 8
}

/// Ways to spread the servers of each pool over its places: an upper bound of the number of states.
#[allow(clippy::cast_precision_loss)]
fn combinations(space: &StateSpace, holders: usize, sizes: &[u64]) -> f64 {
    let pool = |(pool, &size): (&crate::model::PoolStates, &u64)| {
        (1..pool.len() * holders).map(|i| (size as f64 + i as f64) / i as f64).product::<f64>()
    };
    space.pools.iter().zip(sizes).map(pool).product()
}

fn index(i: usize) -> u32 {
    // Memory runs out long before 2^32 states or cells.
    u32::try_from(i).unwrap_or(u32::MAX)
}
