//! The drift with several routers, and its Jacobian ([`super::linear`] solves with it).
//!
//! Router r gets jobs at rate lambda_r and a share w_r of the messages; z_r is the mass of servers whose
//! message it holds. With D the rate at which messages are sent, E the routers without messages, and rho
//! the rate at which every single server gets randomly routed jobs:
//!
//! ```text
//! rho = sum over r in E of (lambda_r - w_r D)
//! a message at r not in E is used at rate lambda_r / z_r
//! a message that would go to r in E is used at once: its server goes on with a job
//! ```
//!
//! Derived; the sliding condition w_r D < lambda_r is that of a fast birth-death chain of the messages at
//! router r, positive recurrent below it (the argument for one router, router by router).

use super::linear::Factor;
use super::space::{Cell, Space};
use crate::fluid::drift::{Drift, Scratch};
use crate::fluid::rosenbrock::Implicit;
use crate::model::{Move, Routers, Top};
use nalgebra::DMatrix;

/// What a router is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It has messages.
    Open,
    /// It has none; those that come are used at once.
    Empty,
    /// It has just begun to have some. Their mass is too small to divide by: they are used in proportion
    /// to the rates at which they come.
    Opening,
}

/// The use of a message: where the server is, and where it goes.
#[derive(Debug, Clone, Copy)]
struct Arc {
    from: usize,
    to: usize,
}

/// The drift in one mode of all routers.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub modes: Vec<Mode>,
    /// Rate of jobs at each router, per server.
    pub streams: Vec<f64>,
    /// Share of the messages that each router gets.
    pub messages: Vec<f64>,
    pub cells: Vec<Cell>,
    /// Services, messages that empty routers use at once left out.
    services: Vec<Move>,
    /// Uses of the messages of each router.
    uses: Vec<Vec<Arc>>,
    /// Randomly routed jobs that move a server.
    random: Vec<Arc>,
    /// Where messages come from: servers with one job and no message out, and their service rate, by pool.
    pub sources: Vec<(usize, f64)>,
    pub pools: Vec<PoolCells>,
    /// Can a busy server have a message out?
    pub keep: bool,
}

/// The states of one pool.
#[derive(Debug, Clone)]
pub(super) struct PoolCells {
    pub range: std::ops::Range<usize>,
    /// Share of all servers.
    pub share: f64,
    /// The largest level represented.
    pub levels: u32,
    /// Do servers at that level never come back?
    pub absorbing: bool,
    /// Service rate.
    pub rate: f64,
}

impl Field {
    pub fn new(space: &Space, routers: &Routers, arrival_rate: f64, modes: Vec<Mode>) -> Self {
        let cells = space.cells();
        let streams: Vec<f64> = routers.streams.iter().map(|s| s * arrival_rate).collect();
        let (mut services, mut random, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        let mut uses = vec![Vec::new(); space.routers];
        for (from, &Cell { pool: j, level, holder }) in cells.iter().enumerate() {
            let pool = &space.states.pools[j];
            let room = pool.has_room(level);
            let up = if room { level + 1 } else { level };
            if room {
                let kept = holder.filter(|_| space.keep);
                random.push(Arc { from, to: space.busy(j, up, kept) });
            }
            if let Some(r) = holder {
                uses[r].push(Arc { from, to: space.busy(j, up, None) });
            }
            let absorbing = level == pool.levels && pool.top == Top::Absorbing;
            if level == 0 || absorbing {
                continue;
            }
            let rate = pool.law.exit()[0];
            match (level, holder) {
                (1, None) => {
                    sources.push((from, rate));
                    let to_router = |r| Move { from, to: space.idle(j, r), rate: rate * routers.messages[r] };
                    let open = (0..space.routers).filter(|&r| modes[r] != Mode::Empty);
                    services.extend(open.map(to_router).filter(|m| m.rate > 0.0));
                }
                (1, Some(r)) => services.push(Move { from, to: space.idle(j, r), rate }),
                _ => services.push(Move { from, to: space.busy(j, level - 1, holder), rate }),
            }
        }
        let pools = space.states.pools.iter().enumerate().map(|(j, pool)| PoolCells {
            range: space.pool(j),
            share: pool.share,
            levels: pool.levels,
            absorbing: pool.top == Top::Absorbing,
            rate: pool.law.exit()[0],
        });
        let (messages, pools) = (routers.messages.clone(), pools.collect());
        let keep = space.keep;
        Self { modes, streams, messages, cells, services, uses, random, sources, pools, keep }
    }

    /// The rate at which messages are sent.
    pub fn sent(&self, q: &[f64]) -> f64 {
        self.sources.iter().map(|&(s, rate)| rate * q[s]).sum()
    }

    /// The rate at which messages come to router r, less that at which it could use them.
    pub fn surplus(&self, r: usize, q: &[f64]) -> f64 {
        self.messages[r] * self.sent(q) - self.streams[r]
    }

    /// The rate at which every single server gets randomly routed jobs.
    pub fn random_rate(&self, q: &[f64]) -> f64 {
        let sent = self.sent(q);
        let of = |r: usize| self.streams[r] - self.messages[r] * sent;
        (0..self.modes.len()).filter(|&r| self.modes[r] == Mode::Empty).map(of).sum()
    }

    /// Messages at router r.
    pub fn held(&self, r: usize, q: &[f64]) -> f64 {
        self.uses[r].iter().map(|arc| q[arc.from]).sum()
    }

    /// Every use of a message of router r: where its server is, and where it goes.
    pub fn each_message(&self, r: usize, mut tell: impl FnMut(usize, usize)) {
        self.uses[r].iter().for_each(|arc| tell(arc.from, arc.to));
    }

    /// Adds what randomly routed jobs do at rate `rate` to `out`.
    pub fn add_random(&self, q: &[f64], rate: f64, out: &mut [f64]) {
        for arc in &self.random {
            out[arc.from] -= rate * q[arc.from];
            out[arc.to] += rate * q[arc.from];
        }
    }

    /// Can only one kind of server have a message at router r? Then nothing is ever divided by its mass.
    pub fn single(&self, r: usize) -> bool {
        self.uses[r].len() == 1
    }

    /// The fastest rate that is not that of the use of messages.
    pub fn rate_scale(&self) -> f64 {
        let fastest = self.services.iter().map(|m| m.rate).fold(0.0, f64::max);
        let sources = self.sources.iter().map(|s| s.1).fold(fastest, f64::max);
        (sources + self.streams.iter().sum::<f64>()).max(f64::MIN_POSITIVE)
    }

    /// The uses of messages at q: (state before, state after, flow); `false` outside the domain.
    pub fn each_use(&self, q: &[f64], mut tell: impl FnMut(usize, usize, f64)) -> bool {
        let sent = self.sent(q);
        for (r, &mode) in self.modes.iter().enumerate() {
            let stream = self.streams[r];
            match mode {
                Mode::Empty => {}
                Mode::Open if stream == 0.0 => {}
                Mode::Open if self.single(r) => {
                    self.uses[r].iter().for_each(|arc| tell(arc.from, arc.to, stream));
                }
                Mode::Open => {
                    let held = self.held(r, q);
                    if held.is_nan() || held <= 0.0 {
                        return false;
                    }
                    let rate = stream / held;
                    self.uses[r].iter().for_each(|arc| tell(arc.from, arc.to, rate * q[arc.from]));
                }
                Mode::Opening if sent > 0.0 => {
                    let idle = self.uses[r].iter().filter(|arc| self.cells[arc.from].level == 0);
                    for (arc, &(s, rate)) in idle.zip(&self.sources) {
                        tell(arc.from, arc.to, stream * rate * q[s] / sent);
                    }
                }
                Mode::Opening => {}
            }
        }
        true
    }

    /// The Jacobian at q in column order; `None` outside the domain or while a router is opening.
    pub fn jacobian(&self, q: &[f64]) -> Option<DMatrix<f64>> {
        let n = q.len();
        let mut jacobian = DMatrix::zeros(n, n);
        let mut constant = |from: usize, to: usize, rate: f64| {
            jacobian[(from, from)] -= rate;
            jacobian[(to, from)] += rate;
        };
        self.services.iter().for_each(|m| constant(m.from, m.to, m.rate));
        let rho = self.random_rate(q);
        self.random.iter().for_each(|arc| constant(arc.from, arc.to, rho));
        for (r, &mode) in self.modes.iter().enumerate() {
            match mode {
                Mode::Opening => return None,
                Mode::Open if self.streams[r] > 0.0 && !self.single(r) => {
                    let held = self.held(r, q);
                    if held.is_nan() || held <= 0.0 {
                        return None;
                    }
                    let rate = self.streams[r] / held;
                    for arc in &self.uses[r] {
                        jacobian[(arc.from, arc.from)] -= rate;
                        jacobian[(arc.to, arc.from)] += rate;
                        // The rate falls by rate / held with every message more.
                        let change = rate * q[arc.from] / held;
                        for other in &self.uses[r] {
                            jacobian[(arc.from, other.from)] += change;
                            jacobian[(arc.to, other.from)] -= change;
                        }
                    }
                }
                _ => {}
            }
        }
        let empty = (0..self.modes.len()).filter(|&r| self.modes[r] == Mode::Empty);
        let used_at_once: f64 = empty.map(|r| self.messages[r]).sum();
        for arc in &self.random {
            for &(s, rate) in &self.sources {
                let change = used_at_once * rate * q[arc.from];
                jacobian[(arc.from, s)] += change;
                jacobian[(arc.to, s)] -= change;
            }
        }
        Some(jacobian)
    }

    /// Sets negative entries to zero at the cost of the pool's fullest state; the most negative one.
    pub fn clip(&self, q: &mut [f64]) -> f64 {
        let mut worst: f64 = 0.0;
        for pool in &self.pools {
            let part = &mut q[pool.range.clone()];
            let mut debt = 0.0;
            for x in part.iter_mut().filter(|x| **x < 0.0) {
                worst = worst.min(*x);
                debt += std::mem::take(x);
            }
            if debt < 0.0
                && let Some(largest) = part.iter_mut().max_by(|a, b| a.total_cmp(b))
            {
                *largest += debt;
            }
        }
        worst
    }

    /// The largest deviation of a pool's mass from its share.
    pub fn mass_defect(&self, q: &[f64]) -> f64 {
        let of = |pool: &PoolCells| (q[pool.range.clone()].iter().sum::<f64>() - pool.share).abs();
        self.pools.iter().map(of).fold(0.0, f64::max)
    }

    /// Uses up the messages of router r: each of its servers is handed a job.
    pub fn use_up(&self, r: usize, q: &mut [f64]) {
        for arc in &self.uses[r] {
            q[arc.to] += std::mem::take(&mut q[arc.from]);
        }
    }
}

impl Drift for Field {
    fn len(&self) -> usize {
        self.cells.len()
    }

    fn eval(&self, q: &[f64], dq: &mut [f64], _: &mut Scratch) -> bool {
        dq.fill(0.0);
        let mut flow = |from: usize, to: usize, flow: f64| {
            dq[from] -= flow;
            dq[to] += flow;
        };
        for m in &self.services {
            flow(m.from, m.to, m.rate * q[m.from]);
        }
        let rho = self.random_rate(q);
        if rho != 0.0 {
            self.random.iter().for_each(|arc| flow(arc.from, arc.to, rho * q[arc.from]));
        }
        let inside = self.each_use(q, flow);
        if !inside {
            dq.fill(f64::NAN);
        }
        inside
    }
}

impl Implicit for Field {
    fn with_solver<T>(
        &self,
        q: &[f64],
        gamma: f64,
        stages: impl FnOnce(&dyn Fn(&mut [f64]) -> bool) -> Option<T>,
    ) -> Option<T> {
        let factor = Factor::new(self, q, gamma)?;
        stages(&|r: &mut [f64]| {
            factor.solve(r);
            r.iter().all(|x| x.is_finite())
        })
    }

    fn restore_mass(&self, q: &mut [f64]) {
        for pool in &self.pools {
            let part = &mut q[pool.range.clone()];
            let excess = part.iter().sum::<f64>() - pool.share;
            if let Some(largest) = part.iter_mut().max_by(|a, b| a.total_cmp(b)) {
                *largest -= excess;
            }
        }
    }
}
