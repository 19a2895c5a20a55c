//! Pull with several routers at finite n: who holds whose message, as counts.
//!
//! Beside the servers by pool, level and phase, the state is how many of them have a message at each
//! router: of the idle servers all, of the busy ones none, unless messages that are out of date are kept.
//! Servers of one pool with one level, phase and holder are exchangeable, so that is the whole state. An
//! event costs what it takes to look through the cells of one router, or the routers of one cell.

use rand::Rng;

use super::counts::Counts;
use super::estimate::Meter;
use super::process::{Clocks, Observer, PATIENCE, System, holding_time};
use super::replication::{Jumps, Traffic};
use super::service::PhaseEnd;
use super::start::Start;
use super::streams::{below, unit};
use crate::model::{Message, Routers};

/// The parts of a model that do not change.
#[derive(Debug)]
pub(super) struct RouterTables {
    /// Share of the arrivals of this router and those before it.
    streams: Vec<f64>,
    /// The same of the messages.
    messages: Vec<f64>,
    keep: bool,
}

/// Running sums.
fn cumulative(shares: &[f64]) -> Vec<f64> {
    let sums = shares.iter().scan(0.0, |sum, x| {
        *sum += x;
        Some(*sum)
    });
    sums.collect()
}

/// An index with probability its share, given running sums of shares.
#[inline]
fn draw<R: Rng>(sums: &[f64], rng: &mut R) -> usize {
    let u = unit(rng) * sums.last().copied().unwrap_or(0.0);
    sums.partition_point(|&sum| sum <= u).min(sums.len() - 1)
}

impl RouterTables {
    pub(super) fn new(routers: &Routers) -> Self {
        Self {
            streams: cumulative(&routers.streams),
            messages: cumulative(&routers.messages),
            keep: routers.message == Message::Keep,
        }
    }
}

/// One replication under way.
#[derive(Debug)]
pub(super) struct RouterProcess<'a, R> {
    tables: &'a RouterTables,
    system: &'a System,
    counts: Counts,
    clocks: Clocks,
    /// Servers with a message out, by pool, cell ([`Self::cell`]) and router.
    held: Vec<Vec<Vec<u64>>>,
    /// Messages at each router.
    messages: Vec<u64>,
    rng: R,
    /// When the next event happens. It is kept over a pause, so that pausing changes no path.
    next: f64,
    patience: u32,
    traffic: Traffic,
}

/// A server, by what it is.
#[derive(Debug, Clone, Copy)]
struct Server {
    pool: usize,
    level: usize,
    /// Phase of the job in service; 0 without one.
    phase: usize,
    holder: Option<usize>,
}

impl<'a, R: Rng> RouterProcess<'a, R> {
    pub(super) fn new(tables: &'a RouterTables, system: &'a System, start: &Start, mut rng: R) -> Self {
        let counts = Counts::new(start, &system.sizes, &system.buffers, &system.services, &mut rng);
        let held: Vec<Vec<Vec<u64>>> = start.held.iter().map(|idle| vec![idle.clone()]).collect();
        let routers = 0..tables.streams.len();
        let messages = routers.map(|r| start.held.iter().map(|idle| idle[r]).sum()).collect();
        let mut clocks = Clocks::new(system);
        let next = holding_time(clocks.set(counts.busy()), &mut rng);
        let traffic = Traffic::default();
        Self { tables, system, counts, clocks, held, messages, rng, next, patience: PATIENCE, traffic }
    }

    fn arrival<O: Observer>(&mut self, now: f64, observer: &mut O) {
        self.traffic.arrived += 1;
        let router = draw(&self.tables.streams, &mut self.rng);
        let mut server = if self.messages[router] > 0 {
            self.sender(router)
        } else {
            observer.fell_back();
            self.any_server()
        };
        let is_used = self.messages[router] > 0;
        let is_withdrawn = !is_used && server.level == 0 && !self.tables.keep;
        if is_used || is_withdrawn {
            self.take_message(server);
            server.holder = None;
            self.traffic.sent += u64::from(is_withdrawn);
        }
        let Server { pool, level, .. } = server;
        if level >= self.counts.pools[pool].buffer {
            observer.lost(pool);
            return;
        }
        let phase = if level == 0 { self.system.services[pool].start(&mut self.rng) } else { server.phase };
        self.move_message(server, level + 1, phase);
        let before = self.counts.raise(pool, level, phase);
        observer.accepted(now, pool, level, before);
    }

    /// The end of a phase in this pool, or a ring of its clock in vain.
    fn service<O: Observer>(&mut self, now: f64, pool: usize, phase: usize, observer: &mut O) {
        let level = self.counts.random_level(pool, phase, &mut self.rng);
        if self.system.passes(pool, level, &mut self.rng) {
            return;
        }
        let server = Server { pool, level, phase, holder: self.random_holder(pool, level, phase) };
        let service = &self.system.services[pool];
        match service.end(phase, &mut self.rng) {
            PhaseEnd::Next(to) => {
                self.move_message(server, level, to);
                self.counts.change_phase(pool, level, phase, to);
                observer.changed_phase();
            }
            PhaseEnd::Exit => {
                let next = if level > 1 { service.start(&mut self.rng) } else { 0 };
                if level == 1 && server.holder.is_none() {
                    let router = draw(&self.tables.messages, &mut self.rng);
                    self.held[pool][0][router] += 1;
                    self.messages[router] += 1;
                    self.traffic.sent += 1;
                } else {
                    self.move_message(server, level - 1, next);
                }
                let before = self.counts.lower(pool, level, phase, next);
                observer.departed(now, pool, level, before);
            }
        }
    }

    /// The server of a uniformly random message at this router, which has some.
    fn sender(&mut self, router: usize) -> Server {
        let mut rank = below(&mut self.rng, self.messages[router]);
        for (pool, cells) in self.held.iter().enumerate() {
            for (cell, by_router) in cells.iter().enumerate() {
                if rank < by_router[router] {
                    let phases = self.system.services[pool].phases();
                    let (level, phase) = match cell.checked_sub(1) {
                        Some(busy) => (busy / phases + 1, busy % phases),
                        None => (0, 0),
                    };
                    return Server { pool, level, phase, holder: Some(router) };
                }
                rank -= by_router[router];
            }
        }
        // Not reached: the counts add up to the router's messages.
        Server { pool: 0, level: 0, phase: 0, holder: Some(router) }
    }

    /// A uniformly random server of the whole system.
    fn any_server(&mut self) -> Server {
        let mut rank = below(&mut self.rng, self.counts.all().size());
        let mut chosen = 0;
        for (j, pool) in self.counts.pools.iter().enumerate() {
            chosen = j;
            if rank < pool.tails.size() {
                break;
            }
            rank -= pool.tails.size();
        }
        let level = self.counts.pools[chosen].tails.level_of(rank);
        let phase = self.counts.random_phase(chosen, level, &mut self.rng);
        Server { pool: chosen, level, phase, holder: self.random_holder(chosen, level, phase) }
    }

    /// The place of a level and a phase among the cells of a pool: idle servers, then level by level.
    fn cell(&self, pool: usize, level: usize, phase: usize) -> usize {
        level.checked_sub(1).map_or(0, |k| 1 + k * self.system.services[pool].phases() + phase)
    }

    /// The holder of the message of a uniformly random server of one pool, level and phase.
    fn random_holder(&mut self, pool: usize, level: usize, phase: usize) -> Option<usize> {
        let by_router = self.held[pool].get(self.cell(pool, level, phase))?;
        let mut rank = below(&mut self.rng, self.counts.exactly(pool, level, phase));
        for (r, &servers) in by_router.iter().enumerate() {
            if rank < servers {
                return Some(r);
            }
            rank -= servers;
        }
        None
    }

    /// The message of this server is gone.
    fn take_message(&mut self, server: Server) {
        if let Some(r) = server.holder {
            let cell = self.cell(server.pool, server.level, server.phase);
            self.held[server.pool][cell][r] -= 1;
            self.messages[r] -= 1;
        }
    }

    /// A server changes its level and phase, and takes the message that it may have out with it.
    fn move_message(&mut self, server: Server, level: usize, phase: usize) {
        let Some(r) = server.holder else { return };
        let from = self.cell(server.pool, server.level, server.phase);
        let to = self.cell(server.pool, level, phase);
        let cells = &mut self.held[server.pool];
        if to >= cells.len() {
            cells.resize_with(to + 1, || vec![0; self.messages.len()]);
        }
        cells[from][r] -= 1;
        cells[to][r] += 1;
    }
}

impl<R: Rng> Jumps for RouterProcess<'_, R> {
    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn run(&mut self, until: f64, meter: &mut Meter, cancelled: &dyn Fn() -> bool) -> bool {
        let mut rate = self.clocks.set(self.counts.busy());
        while self.next <= until {
            let now = self.next;
            let u = unit(&mut self.rng) * rate;
            match self.clocks.ringing(u, self.counts.busy()) {
                Some((pool, phase)) => self.service(now, pool, phase, meter),
                None => self.arrival(now, meter),
            }
            rate = self.clocks.set(self.counts.busy());
            self.next = now + holding_time(rate, &mut self.rng);
            self.patience -= 1;
            if self.patience == 0 {
                self.patience = PATIENCE;
                if cancelled() {
                    return false;
                }
            }
        }
        true
    }

    fn messages(&self) -> &[u64] {
        &self.messages
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.traffic)
    }
}
