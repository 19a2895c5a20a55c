//! What a law on the states of the chain says: means, measures, distributions.

use super::chain::Chain;
use super::to_f64;
use crate::finite::accounts::{Account, PoolAccount};
use crate::model::Routers;

/// By state, the probabilities that a job is sent to a server with a free slot, a busy, a full one.
pub(super) fn met(chain: &Chain) -> Vec<[f64; 3]> {
    let of = |state: usize| {
        let mut met = [0.0; 3];
        for sent in chain.route(state).sent {
            let cell = chain.places.cell(sent.place);
            let busy = cell.level >= chain.places.model.pools[cell.pool].slots;
            met[if cell.full { 2 } else { usize::from(busy) }] += sent.share;
        }
        met
    };
    (0..chain.states.len()).map(of).collect()
}

/// Mean numbers of servers per cell, and of messages per router.
pub(super) struct Reading<'a> {
    chain: &'a Chain<'a>,
    servers: Vec<f64>,
    messages: Vec<f64>,
}

impl<'a> Reading<'a> {
    /// The means under a law.
    pub(super) fn new(chain: &'a Chain<'a>, law: &[f64]) -> Self {
        let mut means = vec![0.0; Self::width(chain)];
        Self::means(chain, law, &mut means);
        Self::of(chain, means)
    }

    /// Means known already.
    pub(super) fn of(chain: &'a Chain<'a>, mut servers: Vec<f64>) -> Self {
        let messages = servers.split_off(chain.places.cells.len());
        Self { chain, servers, messages }
    }

    /// How many means there are.
    pub(super) fn width(chain: &Chain) -> usize {
        chain.places.cells.len() + chain.places.routers().map_or(0, Routers::len)
    }

    /// Writes the mean numbers of servers per cell, then those of messages per router.
    pub(super) fn means(chain: &Chain, law: &[f64], means: &mut [f64]) {
        means.fill(0.0);
        let (servers, messages) = means.split_at_mut(chain.places.cells.len());
        // Rare states, which have the most jobs, first: small means keep their digits.
        for (state, p) in chain.states.iter().zip(law).rev() {
            for &(place, count) in state {
                servers[chain.places.cell_number(place)] += p * f64::from(count);
                if let Some(r) = chain.places.router(place) {
                    messages[r] += p * f64::from(count);
                }
            }
        }
    }

    /// By pool and level, mean numbers of servers.
    fn by_level(&self) -> impl Iterator<Item = Vec<f64>> {
        let level = |cells: std::ops::Range<usize>| self.servers[cells].iter().sum::<f64>();
        self.chain.space.pools.iter().map(move |p| (0..=p.levels).map(|k| level(p.level(k))).collect())
    }

    /// Jobs per server.
    pub(super) fn mean_jobs(&self, n: u64) -> f64 {
        let jobs: f64 = self
            .servers
            .iter()
            .zip(&self.chain.places.cells)
            .map(|(s, cell)| s * f64::from(cell.level))
            .rev()
            .sum();
        jobs / to_f64(n)
    }

    /// Tails as fractions of n servers, summed from the top.
    pub(super) fn tails(&self, n: u64) -> Vec<Vec<f64>> {
        let pool = self.chain.space.pools.iter().enumerate();
        pool.map(|(j, _)| self.chain.space.tails(j, &self.servers).iter().map(|x| x / to_f64(n)).collect())
            .collect()
    }

    /// The same by the phase of the job in service, one list a level; nothing for pools with one phase.
    pub(super) fn phases(&self, n: u64) -> Vec<Vec<Vec<f64>>> {
        let space = &self.chain.space;
        let mut phases: Vec<_> = (0..space.pools.len()).map(|j| space.by_phase(j, &self.servers)).collect();
        phases.iter_mut().flatten().flatten().for_each(|x| *x /= to_f64(n));
        phases
    }

    /// Messages at each router as fractions of n; nothing with one router.
    pub(super) fn messages(&self, n: u64) -> Vec<f64> {
        self.messages.iter().map(|z| z / to_f64(n)).collect()
    }

    /// Fractions of the pool's servers by level.
    pub(super) fn levels(&self) -> Vec<Vec<f64>> {
        let shares = |by_level: Vec<f64>| {
            let size: f64 = by_level.iter().sum();
            if size > 0.0 { by_level.iter().map(|x| x / size).collect() } else { Vec::new() }
        };
        self.by_level().map(shares).collect()
    }

    /// What is expected to happen in one unit of time.
    pub(super) fn account(&self, law: &[f64], n: u64) -> Account {
        let (chain, model) = (self.chain, self.chain.places.model);
        let arrivals = model.arrival_rate * to_f64(n);
        let sampled = f64::from(model.policy.fallback.d);
        let mut account = Account {
            time: 1.0,
            fallbacks: 0.0,
            sampled: if model.policy.fallback.replacement { sampled } else { sampled.min(to_f64(n)) },
            messages: chain.places.routers().map(|_| 0.0),
            pools: self.by_level().zip(&model.pools).map(|(x, p)| pool_account(&x, p.slots)).collect(),
        };
        for (c, cell) in chain.places.cells.iter().enumerate().filter(|(_, cell)| cell.level > 0) {
            let states = &chain.space.pools[cell.pool];
            let completed = self.servers[c] * chain.exit(c);
            let pool = &mut account.pools[cell.pool];
            pool.completed += completed;
            pool.became_idle += if cell.level <= states.slots { completed } else { 0.0 };
        }
        for (state, p) in law.iter().enumerate().rev().filter(|(_, p)| **p > 0.0) {
            let routing = chain.route(state);
            account.fallbacks += arrivals * p * routing.fallback;
            if let Some(messages) = &mut account.messages {
                *messages += p * (chain.messages(state) + arrivals * routing.withdrawn);
            }
            for sent in routing.sent {
                let cell = chain.places.cell(sent.place);
                let pool = &mut account.pools[cell.pool];
                let rate = arrivals * p * sent.share;
                let met = match cell.level < model.pools[cell.pool].slots {
                    _ if cell.full => &mut pool.lost,
                    true => &mut pool.met_idle,
                    false => &mut pool.met_busy,
                };
                *met += rate;
            }
        }
        account
    }
}

/// Servers and jobs of a pool from its servers by level.
fn pool_account(by_level: &[f64], slots: u32) -> PoolAccount {
    let sum = |from: u32, jobs: &dyn Fn(f64) -> f64| {
        let levels = (0u32..).zip(by_level).skip(from as usize).map(|(k, x)| jobs(f64::from(k)) * x);
        levels.collect::<Vec<_>>().iter().rev().sum::<f64>()
    };
    PoolAccount {
        servers: sum(0, &|_| 1.0),
        busy: sum(1, &|_| 1.0),
        jobs: sum(1, &|k| k),
        waiting: sum(slots + 1, &|k| k - f64::from(slots)),
        ..PoolAccount::default()
    }
}

/// Probabilities that 0, 1, ... n servers are idle.
pub(super) fn idle_servers(chain: &Chain, law: &[f64], n: u64) -> Vec<f64> {
    let mut all = vec![0.0; usize::try_from(n).unwrap_or(0) + 1];
    for (state, p) in chain.states.iter().zip(law).rev() {
        let idle = state.iter().filter(|&&(place, _)| chain.places.cell(place).level == 0);
        all[idle.map(|s| s.1 as usize).sum::<usize>()] += p;
    }
    all
}

/// Probabilities of 0, 1, ... jobs in the system, as far as they exceed 1e-16.
pub(super) fn jobs(chain: &Chain, law: &[f64]) -> Vec<f64> {
    let mut all = vec![0.0; chain.jobs.last().map_or(0, |&t| t as usize + 1)];
    chain.jobs.iter().zip(law).for_each(|(&t, p)| all[t as usize] += p);
    all.truncate(all.iter().rposition(|p| *p > 1e-16).map_or(0, |t| t + 1));
    all
}
