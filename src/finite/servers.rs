//! The servers one by one: each has a queue of time stamps, and serves it first come, first served.
//!
//! This reading of the model is slow and obvious. It shares no choice and no clock with the sampler of
//! counts, so that each checks the other, and it alone knows how long a job waited.

mod reading;
mod seats;

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use rand::Rng;
use rand_distr::{Distribution, Exp1};

use super::estimate::Replication;
use super::job_times::Watches;
use super::ledger::Ledger;
use super::mailboxes::Mailboxes;
use super::roster::{Pick, Roster};
use super::streams::{stream, unit};
use super::summary::Path;
use super::{Control, FiniteError, Sampler, Settings, Summary, replicate, settings, start};
use crate::model::Model;
use seats::{Seat, seats};

/// Memory that one replication may take for servers and jobs.
const MEMORY_LIMIT: u64 = 1 << 30;

/// A server with its places on lists and its alarm, rounded up.
const BYTES_PER_SERVER: u64 = 160;

/// A time stamp, in a queue that doubles when it is full.
const BYTES_PER_JOB: u64 = 16;

/// Events between two looks at whether to stop early.
const PATIENCE: u32 = 1 << 17;

/// Samples `model` with n servers that are kept apart, and follows every job. The same law as
/// [`super::simulate`], other random numbers; [`Summary::job_times`] comes on top. Time and memory grow
/// with n.
///
/// # Errors
/// As [`super::simulate`]; and [`FiniteError::Memory`] if servers and jobs would take more than 1 GiB
/// for one replication.
pub fn simulate_servers(
    model: &Model,
    settings: &Settings,
    control: &dyn Control,
) -> Result<Summary, FiniteError> {
    let sizes = settings::check(model, settings)?;
    let start = start::start(model, &settings.initial, &sizes)?;
    let jobs = start.busy.iter().flatten().fold(0u64, |sum, &servers| sum.saturating_add(servers));
    check_memory(settings.n, jobs)?;
    let start = seats(&start, &sizes);
    replicate(Sampler::Servers, settings, sizes, control, |number| {
        replication(model, settings, &start, number, control)
    })
}

fn check_memory(n: u64, jobs: u64) -> Result<(), FiniteError> {
    let needed = n.saturating_mul(BYTES_PER_SERVER).saturating_add(jobs.saturating_mul(BYTES_PER_JOB));
    if needed > MEMORY_LIMIT {
        return Err(FiniteError::Memory { n, jobs, mebibytes: needed >> 20, limit: MEMORY_LIMIT >> 20 });
    }
    Ok(())
}

fn replication(
    model: &Model,
    settings: &Settings,
    start: &[Seat],
    number: u32,
    control: &dyn Control,
) -> Result<(Replication, Path), FiniteError> {
    if control.cancelled() {
        return Err(FiniteError::Interrupted);
    }
    let rng = stream(settings.seed, settings.n, number);
    let mut farm = Farm::new(model, settings, start, rng);
    let mut path = Path { replication: number, ..Path::default() };
    let early = settings.sample_times.partition_point(|&time| time <= settings.warmup);
    let (early, late) = settings.sample_times.split_at(early);
    for (times, end) in [(early, settings.warmup), (late, settings.horizon)] {
        for &time in times {
            farm.run(time, control)?;
            let (tails, jobs) = farm.snapshot(settings.levels as usize);
            path.messages.push(farm.messages());
            path.tails.push(tails);
            path.phases.push(farm.by_phase(settings.levels as usize));
            path.mean_jobs.push(jobs);
        }
        farm.run(end, control)?;
        if end < settings.horizon {
            farm.restart(end);
        }
    }
    let mut run = farm.close(settings.levels as usize);
    // The books are closed; jobs on the watch are followed to their ends in a system that goes on.
    while farm.watches.running() {
        farm.step(control)?;
    }
    run.job_times = Some(farm.watches.read(model));
    Ok((run, path))
}

/// When a phase of the job in service at a server ends; the earliest is the greatest.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Alarm {
    time: f64,
    server: u32,
}

impl Eq for Alarm {}

impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> Ordering {
        other.time.total_cmp(&self.time).then(other.server.cmp(&self.server))
    }
}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What one server is doing.
#[derive(Debug, Clone, Default)]
struct Server {
    /// When the jobs came, the one in service first.
    jobs: VecDeque<f64>,
    /// Phase of the job in service.
    phase: usize,
}

/// One replication under way.
#[derive(Debug)]
struct Farm<'a, R> {
    model: &'a Model,
    settings: &'a Settings,
    roster: Roster<'a>,
    /// Messages, where there are several routers.
    mailboxes: Option<Mailboxes<'a>>,
    servers: Vec<Server>,
    jobs: u64,
    alarms: BinaryHeap<Alarm>,
    next_arrival: f64,
    ledger: Ledger,
    watches: Watches,
    rng: R,
    patience: u32,
}

impl<'a, R: Rng> Farm<'a, R> {
    /// Servers with these pools and levels at time 0; jobs in service start there and then.
    fn new(model: &'a Model, settings: &'a Settings, start: &[Seat], rng: R) -> Self {
        let routers = model.policy.routers.as_ref();
        let mut farm = Self {
            model,
            settings,
            roster: Roster::new(model, start.iter().map(|s| (s.pool, s.level))),
            mailboxes: routers.map(|routers| Mailboxes::new(routers, start.iter().map(|s| s.router))),
            servers: vec![Server::default(); start.len()],
            jobs: start.iter().map(|s| s.level as u64).sum(),
            alarms: BinaryHeap::with_capacity(start.len()),
            next_arrival: 0.0,
            ledger: Ledger::new(&model.pools, start.iter().map(|s| s.level)),
            watches: Watches::new(model, settings.warmup, settings.horizon),
            rng,
            patience: PATIENCE,
        };
        for (server, &Seat { pool, level, phase, .. }) in (0..).zip(start) {
            farm.servers[server as usize].jobs.extend(std::iter::repeat_n(0.0, level));
            (0..level.min(farm.slots(pool))).for_each(|_| farm.watches.started(pool, 0.0, 0.0));
            match phase {
                _ if level == 0 => {}
                Some(phase) => farm.start_phase(server, phase, 0.0),
                None => farm.start_service(server, 0.0),
            }
        }
        farm.next_arrival = farm.arrival_after(0.0);
        farm
    }

    /// Forgets what was measured before `now`.
    fn restart(&mut self, now: f64) {
        self.ledger.restart(now);
        self.mailboxes.iter_mut().for_each(|m| m.sent.restart());
    }

    /// Runs to time `until`.
    fn run(&mut self, until: f64, control: &dyn Control) -> Result<(), FiniteError> {
        while self.next_event() <= until {
            self.step(control)?;
        }
        Ok(())
    }

    fn next_event(&self) -> f64 {
        self.alarms.peek().map_or(self.next_arrival, |alarm| alarm.time.min(self.next_arrival))
    }

    /// The next event, whatever it is.
    #[inline]
    fn step(&mut self, control: &dyn Control) -> Result<(), FiniteError> {
        self.patience -= 1;
        if self.patience == 0 {
            self.patience = PATIENCE;
            if control.cancelled() {
                return Err(FiniteError::Interrupted);
            }
        }
        match self.alarms.peek() {
            Some(&alarm) if alarm.time < self.next_arrival => {
                self.alarms.pop();
                self.end_phase(alarm.server, alarm.time);
                Ok(())
            }
            _ => {
                let now = self.next_arrival;
                self.next_arrival = self.arrival_after(now);
                self.arrive(now)
            }
        }
    }

    fn arrive(&mut self, now: f64) -> Result<(), FiniteError> {
        let Pick { server, fallback } = match &mut self.mailboxes {
            Some(mailboxes) => mailboxes.pick(&self.roster, &mut self.rng),
            None => self.roster.pick(&mut self.rng),
        };
        let pool = self.roster.pool(server);
        let level = self.roster.level(server);
        self.ledger.fallbacks.add(u64::from(fallback));
        if !self.roster.has_room(server) {
            self.ledger.lost(pool);
            return Ok(());
        }
        self.jobs += 1;
        check_memory(self.settings.n, self.jobs)?;
        self.ledger.accepted(server, pool, level, now);
        self.watches.accepted(now);
        self.roster.set_level(server, level + 1);
        self.servers[server as usize].jobs.push_back(now);
        if level < self.slots(pool) {
            self.watches.started(pool, now, now);
        }
        if level == 0 {
            self.start_service(server, now);
        }
        Ok(())
    }

    /// Takes the first job of a server's queue into service.
    fn start_service(&mut self, server: u32, now: f64) {
        let pool = self.roster.pool(server);
        let phase = choose(self.model.pools[pool].law.initial().iter().copied(), &mut self.rng);
        self.start_phase(server, phase, now);
    }

    fn start_phase(&mut self, server: u32, phase: usize, now: f64) {
        self.servers[server as usize].phase = phase;
        let rate = self.phase_rate(server, phase);
        let time = now + exponential(rate, &mut self.rng);
        self.alarms.push(Alarm { time, server });
    }

    /// The rate of a server's alarm in a phase: that of its highest speed, so that an arrival leaves the
    /// alarm as it is.
    fn phase_rate(&self, server: u32, phase: usize) -> f64 {
        let pool = &self.model.pools[self.roster.pool(server)];
        pool.speed_at(pool.buffer.unwrap_or(u32::MAX)) * pool.law.rate(phase)
    }

    /// Does an alarm count that rings at the highest speed, at a server that holds `level` jobs?
    fn counts(&mut self, pool: usize, level: usize) -> bool {
        let pool = &self.model.pools[pool];
        if pool.speed.len() < 2 {
            return true;
        }
        let speed = pool.speed_at(u32::try_from(level).unwrap_or(u32::MAX));
        unit(&mut self.rng) * pool.speed_at(pool.buffer.unwrap_or(u32::MAX)) < speed
    }

    /// Jobs that a server of the pool takes without letting any of them wait.
    fn slots(&self, pool: usize) -> usize {
        self.model.pools[pool].slots as usize
    }

    fn end_phase(&mut self, server: u32, now: f64) {
        let pool = self.roster.pool(server);
        let law = &self.model.pools[pool].law;
        let phase = self.servers[server as usize].phase;
        if !self.counts(pool, self.roster.level(server)) {
            return self.start_phase(server, phase, now);
        }
        // The end of the job comes first, then the phases.
        let ways = std::iter::once(law.exit()[phase]).chain(law.moves()[phase].iter().copied());
        match choose(ways, &mut self.rng) {
            0 => self.depart(server, pool, now),
            next => {
                self.ledger.changed_phase();
                self.start_phase(server, next - 1, now);
            }
        }
    }

    fn depart(&mut self, server: u32, pool: usize, now: f64) {
        let level = self.roster.level(server);
        if let Some(arrival) = self.servers[server as usize].jobs.pop_front() {
            self.watches.ended(pool, arrival, now);
        }
        self.jobs -= 1;
        self.ledger.departed(server, pool, level, now);
        self.roster.set_level(server, level - 1);
        // The job that comes into the last slot waits no longer.
        if let Some(&arrival) = self.servers[server as usize].jobs.get(self.slots(pool) - 1) {
            self.watches.started(pool, arrival, now);
        }
        if level > 1 {
            self.start_service(server, now);
        } else if let Some(mailboxes) = &mut self.mailboxes {
            mailboxes.became_idle(server, &mut self.rng);
        }
    }

    fn arrival_after(&mut self, now: f64) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        let rate = self.model.arrival_rate * self.roster.size() as f64;
        now + exponential(rate, &mut self.rng)
    }
}

/// An index at random with probability proportional to its weight.
fn choose<R: Rng>(weights: impl Iterator<Item = f64> + Clone, rng: &mut R) -> usize {
    let mut left = unit(rng) * weights.clone().sum::<f64>();
    let mut chosen = 0;
    for (i, weight) in weights.enumerate().filter(|(_, weight)| *weight > 0.0) {
        chosen = i;
        left -= weight;
        if left < 0.0 {
            break;
        }
    }
    chosen
}

/// An exponential time; for ever at rate 0.
fn exponential<R: Rng>(rate: f64, rng: &mut R) -> f64 {
    let standard: f64 = Exp1.sample(rng);
    if rate > 0.0 { standard / rate } else { f64::INFINITY }
}
