//! Pull with several routers at finite n: who holds whose message, as counts.
//!
//! Beside the servers by pool and level, the state is how many of them have a message at each router: of
//! the idle servers all, of the busy ones none, unless messages that are out of date are kept. Servers
//! of one pool with one level and one holder are exchangeable, so that is the whole state. An event costs
//! what it takes to look through the pools and levels of one router, or the routers of one level.

use rand::Rng;

use super::Settings;
use super::counts::Counts;
use super::estimate::Meter;
use super::process::{Observer, PATIENCE, System, holding_time};
use super::replication::{Jumps, Traffic};
use super::start::Start;
use super::streams::{below, unit};
use crate::model::{Initial, Message, Model, Routers};

/// The parts of a model that do not change.
#[derive(Debug)]
pub(super) struct RouterTables {
    /// Share of the arrivals of this router and those before it.
    streams: Vec<f64>,
    /// The same of the messages.
    messages: Vec<f64>,
    keep: bool,
    /// Service rate of each pool.
    rates: Vec<f64>,
    arrivals: f64,
    /// Idle servers of each pool at time 0 by the router that holds their message.
    start: Vec<Vec<u64>>,
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
    /// The tables for n servers, `sizes` of each pool.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn new(
        model: &Model,
        routers: &Routers,
        settings: &Settings,
        sizes: &[u64],
        start: &Start,
    ) -> Self {
        let busy = start.busy.iter().map(|busy| busy.first().copied().unwrap_or(0));
        let idle = sizes.iter().zip(busy).map(|(size, busy)| size - busy);
        let start = idle.enumerate().map(|(j, idle)| split(model, routers, &settings.initial, j, idle));
        Self {
            streams: cumulative(&routers.streams),
            messages: cumulative(&routers.messages),
            keep: routers.message == Message::Keep,
            rates: model.pools.iter().map(|p| p.law.exit()[0]).collect(),
            arrivals: model.arrival_rate * settings.n as f64,
            start: start.collect(),
        }
    }
}

/// Splits the idle servers of one pool over the routers: rounded so that they add up.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn split(model: &Model, routers: &Routers, initial: &Initial, pool: usize, idle: u64) -> Vec<u64> {
    let mut sums = cumulative(&initial.held_messages(model, routers, pool));
    let total = sums.last().copied().unwrap_or(0.0);
    if total <= 0.0 {
        // Fewer servers are idle than one: rounding left some over.
        sums = cumulative(&routers.messages);
    }
    let total = sums.last().copied().unwrap_or(1.0);
    let ends = sums.iter().map(|sum| (sum / total * idle as f64).round() as u64);
    let counts = ends.scan(0, |before, end| {
        let here = end - *before;
        *before = end;
        Some(here)
    });
    counts.collect()
}

/// One replication under way.
#[derive(Debug)]
pub(super) struct RouterProcess<'a, R> {
    tables: &'a RouterTables,
    system: &'a System,
    counts: Counts,
    /// Servers with a message out, by pool, level and router.
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
    holder: Option<usize>,
}

impl<'a, R: Rng> RouterProcess<'a, R> {
    pub(super) fn new(tables: &'a RouterTables, system: &'a System, start: &Start, mut rng: R) -> Self {
        let counts = Counts::new(start, &system.sizes, &system.buffers, &system.services, &mut rng);
        let held: Vec<Vec<Vec<u64>>> = tables.start.iter().map(|idle| vec![idle.clone()]).collect();
        let routers = 0..tables.streams.len();
        let messages = routers.map(|r| tables.start.iter().map(|idle| idle[r]).sum()).collect();
        let mut process = Self {
            tables,
            system,
            counts,
            held,
            messages,
            rng,
            next: 0.0,
            patience: PATIENCE,
            traffic: Traffic::default(),
        };
        process.next = holding_time(process.rate(), &mut process.rng);
        process
    }

    /// The rate of all events.
    #[allow(clippy::cast_precision_loss)]
    fn rate(&self) -> f64 {
        let services = self.tables.rates.iter().zip(self.counts.busy());
        self.tables.arrivals + services.map(|(rate, &busy)| rate * busy as f64).sum::<f64>()
    }

    fn arrival<O: Observer>(&mut self, now: f64, observer: &mut O) {
        self.traffic.arrived += 1;
        let router = draw(&self.tables.streams, &mut self.rng);
        let server = if self.messages[router] > 0 {
            let server = self.sender(router);
            self.take_message(server);
            Server { holder: None, ..server }
        } else {
            observer.fell_back();
            let server = self.any_server();
            if server.level == 0 && !self.tables.keep {
                self.take_message(server);
                self.traffic.sent += 1;
                Server { holder: None, ..server }
            } else {
                server
            }
        };
        let Server { pool, level, holder } = server;
        if level >= self.counts.pools[pool].buffer {
            observer.lost(pool);
            return;
        }
        if let Some(r) = holder {
            self.move_message(pool, level, level + 1, r);
        }
        let before = self.counts.arrive(pool, level, &self.system.services[pool], &mut self.rng);
        observer.accepted(now, pool, level, before);
    }

    /// The departure that the point `u` of the interval of all service rates falls on.
    #[allow(clippy::cast_precision_loss)]
    fn departure<O: Observer>(&mut self, now: f64, mut u: f64, observer: &mut O) {
        let busy = self.counts.busy();
        // Rounding can put u at the very end: that is the last pool with anybody at work.
        let Some(mut pool) = busy.iter().rposition(|&servers| servers > 0) else { return };
        for (j, (rate, &servers)) in self.tables.rates.iter().zip(busy).enumerate() {
            let here = rate * servers as f64;
            if u < here {
                pool = j;
                break;
            }
            u -= here;
        }
        let level = self.counts.random_level(pool, 0, &mut self.rng);
        let holder = self.random_holder(pool, level);
        match holder {
            Some(r) => self.move_message(pool, level, level - 1, r),
            None if level == 1 => {
                let router = draw(&self.tables.messages, &mut self.rng);
                self.held[pool][0][router] += 1;
                self.messages[router] += 1;
                self.traffic.sent += 1;
            }
            None => {}
        }
        let before = self.counts.depart(pool, level, 0, &self.system.services[pool], &mut self.rng);
        observer.departed(now, pool, level, before);
    }

    /// The server of a uniformly random message at this router, which has some.
    fn sender(&mut self, router: usize) -> Server {
        let mut rank = below(&mut self.rng, self.messages[router]);
        for (pool, levels) in self.held.iter().enumerate() {
            for (level, by_router) in levels.iter().enumerate() {
                if rank < by_router[router] {
                    return Server { pool, level, holder: Some(router) };
                }
                rank -= by_router[router];
            }
        }
        // Not reached: the counts add up to the router's messages.
        Server { pool: 0, level: 0, holder: Some(router) }
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
        Server { pool: chosen, level, holder: self.random_holder(chosen, level) }
    }

    /// The holder of the message of a uniformly random server of one pool and level.
    fn random_holder(&mut self, pool: usize, level: usize) -> Option<usize> {
        let by_router = self.held[pool].get(level)?;
        let mut rank = below(&mut self.rng, self.counts.pools[pool].tails.exactly(level));
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
            self.held[server.pool][server.level][r] -= 1;
            self.messages[r] -= 1;
        }
    }

    /// A server with a message at router r changes its level.
    fn move_message(&mut self, pool: usize, from: usize, to: usize, r: usize) {
        let levels = &mut self.held[pool];
        if to >= levels.len() {
            levels.resize_with(to + 1, || vec![0; self.messages.len()]);
        }
        levels[from][r] -= 1;
        levels[to][r] += 1;
    }
}

impl<R: Rng> Jumps for RouterProcess<'_, R> {
    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn run(&mut self, until: f64, meter: &mut Meter, cancelled: &dyn Fn() -> bool) -> bool {
        while self.next <= until {
            let now = self.next;
            let u = unit(&mut self.rng) * self.rate();
            if u < self.tables.arrivals {
                self.arrival(now, meter);
            } else {
                self.departure(now, u - self.tables.arrivals, meter);
            }
            self.next = now + holding_time(self.rate(), &mut self.rng);
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
