//! A chain that shares nothing with the crate's finite readings: it keeps every server apart, reads
//! tiers and fallback literally (all samples of d servers are enumerated), and solves for the
//! stationary law or the law at a time. And the small systems it is tried on.

use std::collections::{BTreeMap, HashMap};

use super::exponential;
use fluidlimit::model::{Fallback, LevelSet, Messages, Model, PhaseType, Policy};
use nalgebra::{DMatrix, DVector};

/// Level and phase of every server; an idle server is in phase 0.
pub type State = Vec<(u32, usize)>;

/// Every server kept apart.
pub struct Chain {
    model: Model,
    /// Pool of each server.
    pools: Vec<usize>,
    pub states: Vec<State>,
    /// Transitions by state: where to, and the rate.
    pub moves: Vec<Vec<(usize, f64)>>,
}

impl Chain {
    /// All states that can be reached from the idle system, which is state 0.
    pub fn new(model: &Model, n: u64) -> Self {
        let sizes = model.pool_sizes(n);
        let pools: Vec<usize> =
            sizes.iter().enumerate().flat_map(|(j, &size)| (0..size).map(move |_| j)).collect();
        let idle = vec![(0, 0); pools.len()];
        let mut chain = Self { model: model.clone(), pools, states: vec![idle.clone()], moves: vec![] };
        let mut index = HashMap::from([(idle, 0)]);
        while chain.moves.len() < chain.states.len() {
            let mut moves = vec![];
            for (to, rate) in chain.transitions(&chain.states[chain.moves.len()]) {
                let next = chain.states.len();
                let i = *index.entry(to.clone()).or_insert(next);
                if i == next {
                    chain.states.push(to);
                }
                moves.push((i, rate));
            }
            chain.moves.push(moves);
        }
        chain
    }

    fn law(&self, server: usize) -> &PhaseType {
        &self.model.pools[self.pools[server]].law
    }

    fn has_room(&self, state: &State, server: usize) -> bool {
        self.model.pools[self.pools[server]].has_room(state[server].0)
    }

    #[allow(clippy::cast_precision_loss)]
    fn transitions(&self, state: &State) -> Vec<(State, f64)> {
        let mut all = vec![];
        let with = |server: usize, level, phase| {
            let mut to = state.clone();
            to[server] = (level, phase);
            to
        };
        let arrivals = self.model.arrival_rate * self.pools.len() as f64;
        for (server, probability) in self.routing(state).0.into_iter().enumerate() {
            let (level, phase) = state[server];
            if !self.has_room(state, server) {
                continue;
            }
            if level > 0 {
                all.push((with(server, level + 1, phase), arrivals * probability));
                continue;
            }
            for (m, &p) in self.law(server).initial().iter().enumerate() {
                all.push((with(server, 1, m), arrivals * probability * p));
            }
        }
        for (server, &(level, phase)) in state.iter().enumerate().filter(|(_, s)| s.0 > 0) {
            let law = self.law(server);
            for (m, &rate) in law.moves()[phase].iter().enumerate() {
                all.push((with(server, level, m), rate));
            }
            let exit = law.exit()[phase];
            match level {
                1 => all.push((with(server, 0, 0), exit)),
                _ => {
                    for (m, &p) in law.initial().iter().enumerate() {
                        all.push((with(server, level - 1, m), exit * p));
                    }
                }
            }
        }
        all.retain(|(_, rate)| *rate > 0.0);
        all
    }

    /// Probability that each server is given an arrival (and loses it, if it is full), and whether
    /// the fallback decides.
    #[allow(clippy::cast_precision_loss)]
    fn routing(&self, state: &State) -> (Vec<f64>, bool) {
        let servers = 0..self.pools.len();
        let mut share = vec![0.0; self.pools.len()];
        for i in 0.. {
            // Tiers that name every level end where no server could be.
            let Some(tier) = self.model.policy.tiers.get(i).filter(|_| i < 100) else { break };
            let members: Vec<usize> = servers
                .clone()
                .filter(|&s| tier.contains(self.pools[s], state[s].0) && self.has_room(state, s))
                .collect();
            if !members.is_empty() {
                members.iter().for_each(|&s| share[s] = 1.0 / members.len() as f64);
                return (share, false);
            }
        }
        let Fallback { d, replacement, skip_full } = self.model.policy.fallback;
        let samples = samples(self.pools.len(), d as usize, replacement);
        for sample in &samples {
            let open: Vec<usize> = sample.iter().copied().filter(|&s| self.has_room(state, s)).collect();
            let considered = if skip_full && !open.is_empty() { &open } else { sample };
            let shortest = considered.iter().map(|&s| state[s].0).min().unwrap();
            let ties: Vec<usize> = considered.iter().copied().filter(|&s| state[s].0 == shortest).collect();
            for &s in &ties {
                share[s] += 1.0 / ties.len() as f64 / samples.len() as f64;
            }
        }
        (share, true)
    }

    /// Stationary probabilities.
    pub fn stationary(&self) -> Vec<f64> {
        let size = self.states.len();
        let mut equations = DMatrix::zeros(size, size);
        for (from, moves) in self.moves.iter().enumerate() {
            for &(to, rate) in moves {
                equations[(to, from)] += rate;
                equations[(from, from)] -= rate;
            }
        }
        equations.row_mut(0).fill(1.0);
        let mut right = DVector::zeros(size);
        right[0] = 1.0;
        equations.lu().solve(&right).unwrap().iter().copied().collect()
    }

    /// Probabilities at a time, from idle, by uniformisation.
    pub fn at(&self, time: f64) -> Vec<f64> {
        let total = |moves: &Vec<(usize, f64)>| moves.iter().map(|m| m.1).sum::<f64>();
        let fastest = self.moves.iter().map(total).fold(0.0, f64::max);
        let mut term = vec![0.0; self.states.len()];
        term[0] = (-fastest * time).exp();
        let mut sum = term.clone();
        for step in 1..200 {
            let mut next = vec![0.0; term.len()];
            for (from, moves) in self.moves.iter().enumerate() {
                next[from] += term[from] * (1.0 - total(moves) / fastest);
                for &(to, rate) in moves {
                    next[to] += term[from] * rate / fastest;
                }
            }
            term = next.iter().map(|p| p * fastest * time / f64::from(step)).collect();
            sum.iter_mut().zip(&term).for_each(|(s, t)| *s += t);
        }
        sum
    }

    /// The mean of a function of the state.
    fn mean(&self, law: &[f64], of: impl Fn(&State) -> f64) -> f64 {
        self.states.iter().zip(law).map(|(state, p)| p * of(state)).sum()
    }

    /// The fraction of all servers that are in `pool` with `level` jobs or more.
    #[allow(clippy::cast_precision_loss)]
    pub fn tail(&self, law: &[f64], pool: usize, level: u32) -> f64 {
        let holds = |state: &State| {
            state.iter().zip(&self.pools).filter(|(s, j)| **j == pool && s.0 >= level).count() as f64
        };
        self.mean(law, holds) / self.pools.len() as f64
    }

    /// Measures by name; of pools as `0.p_idle` and so on.
    #[allow(clippy::cast_precision_loss)]
    pub fn measures(&self, law: &[f64]) -> BTreeMap<String, f64> {
        let n = self.pools.len() as f64;
        let mut all = BTreeMap::new();
        for (j, pool) in self.model.pools.iter().enumerate() {
            let routed = |met: &dyn Fn(&State, usize) -> bool| {
                self.mean(law, |state| {
                    let share = self.routing(state).0;
                    (0..share.len())
                        .filter(|&s| self.pools[s] == j && met(state, s))
                        .map(|s| share[s])
                        .sum::<f64>()
                })
            };
            let idle = routed(&|state, s| state[s].0 == 0 && self.has_room(state, s));
            let wait = routed(&|state, s| state[s].0 > 0 && self.has_room(state, s));
            let block = routed(&|state, s| !self.has_room(state, s));
            let size = self.pools.iter().filter(|p| **p == j).count() as f64;
            let jobs: f64 = (1..=pool.buffer.unwrap()).map(|k| self.tail(law, j, k)).sum();
            let busy = self.tail(law, j, 1);
            let accepted = self.model.arrival_rate * (idle + wait);
            let mut put = |name: &str, value: f64| all.insert(format!("{j}.{name}"), value);
            put("p_idle", idle);
            put("p_wait", wait);
            put("p_block", block);
            if size > 0.0 {
                put("mean_jobs", jobs * n / size);
                put("utilisation", busy * n / size);
                put("throughput", accepted * n / size);
            }
            if accepted > 0.0 {
                put("response_time", jobs / accepted);
                put("waiting_time", (jobs - busy) / accepted);
            }
            for (name, value) in [("p_idle", idle), ("p_wait", wait), ("p_block", block)] {
                *all.entry(name.to_owned()).or_insert(0.0) += value;
            }
            *all.entry("mean_jobs".into()).or_insert(0.0) += jobs;
        }
        let accepted = 1.0 - all["p_block"];
        let asked = 2.0
            * f64::from(self.model.policy.fallback.d).min(if self.model.policy.fallback.replacement {
                f64::MAX
            } else {
                n
            });
        let fallback = self.mean(law, |state| f64::from(self.routing(state).1));
        let messages = match self.model.policy.messages {
            Messages::PerIdleServer => all["p_idle"] + if asked > 2.0 { asked * fallback } else { 0.0 },
            Messages::PerSample => asked,
            Messages::PerDeparture => accepted,
            Messages::None => 0.0,
        };
        all.insert("messages_per_job".into(), messages);
        all.insert("p_busy".into(), all["p_wait"] + all["p_block"]);
        all.insert("throughput".into(), self.model.arrival_rate * accepted);
        all.insert("response_time".into(), all["mean_jobs"] / self.model.arrival_rate / accepted);
        all
    }
}

/// All equally likely samples of d out of n servers: ordered ones with replacement, sets without.
fn samples(n: usize, d: usize, replacement: bool) -> Vec<Vec<usize>> {
    let d = if replacement { d } else { d.min(n) };
    let mut all = vec![vec![]];
    for _ in 0..d {
        let longer = |sample: &Vec<usize>| {
            let from = if replacement { 0 } else { sample.last().map_or(0, |s| s + 1) };
            (from..n).map(|s| [sample.as_slice(), &[s]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Policies of every kind, some of them for two pools.
pub fn policies() -> Vec<Policy> {
    let levels = |from, to| LevelSet { from, to };
    let picky = Fallback { d: 2, replacement: false, skip_full: true };
    vec![
        Policy::random(),
        Policy::jsq_d(2, true, false),
        Policy::jsq_d(2, false, false),
        Policy::jsq_d(2, true, true),
        Policy::jsq_d(2, false, true),
        Policy::jsq_d(9, false, false),
        Policy::jsq(),
        Policy::pull(),
        Policy::jiq(2),
        Policy { fallback: picky, ..Policy::pull() },
        Policy::i1f(),
        Policy::threshold(2),
        Policy::fastest_idle_first(&[vec![1], vec![0]]),
        Policy::fastest_idle_first(&[vec![0]]),
        Policy::tiers(&[levels(0, 1), levels(2, 2)], 2),
    ]
}

/// Share, buffer and law of a pool.
pub type PoolSketch = (f64, Option<u32>, PhaseType);

/// Systems small enough to be solved: arrival rate, n, pools.
pub fn systems() -> Vec<(f64, u64, Vec<PoolSketch>)> {
    let coxian = PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap();
    let hyper = PhaseType::hyperexponential(&[0.7, 0.3], &[2.0, 0.6]).unwrap();
    let looping =
        PhaseType::general(vec![0.6, 0.4], vec![vec![0.0, 1.0], vec![0.7, 0.0]], vec![0.5, 1.5]).unwrap();
    let exp = exponential;
    vec![
        (0.8, 2, vec![(1.0, Some(1), exp(1.0))]),
        (0.9, 3, vec![(1.0, Some(2), exp(1.0))]),
        (0.9, 3, vec![(0.4, Some(2), exp(0.5)), (0.6, Some(1), exp(2.0))]),
        (1.1, 2, vec![(0.5, Some(3), exp(0.7)), (0.5, Some(2), exp(1.5))]),
        (1.0, 3, vec![(0.6, Some(0), exp(1.0)), (0.4, Some(3), exp(2.0))]),
        (1.0, 3, vec![(0.4, Some(2), coxian.clone()), (0.6, Some(2), exp(1.2))]),
        (0.9, 2, vec![(0.5, Some(3), hyper), (0.5, Some(1), coxian)]),
        (0.8, 2, vec![(1.0, Some(3), looping)]),
    ]
}
