//! Pull with several routers, every server and its message kept apart: the rule, word by word.

use std::collections::HashMap;

use super::chain::PoolSketch;
use super::exponential;
use fluidlimit::model::{Message, Model, PhaseType, Policy, Routers};
use nalgebra::{DMatrix, DVector};

pub fn pull(streams: &[f64], messages: &[f64], message: Message) -> Policy {
    Policy::pull_by(Routers { streams: streams.to_vec(), messages: messages.to_vec(), message })
}

/// Arrival rate, number of servers, pools, and the speeds of all pools: exponential service and other.
pub fn systems() -> Vec<(f64, u64, Vec<PoolSketch>, Vec<f64>)> {
    let exp = exponential;
    let coxian = PhaseType::coxian(&[2.0, 0.5], &[0.3]).unwrap();
    let erlang = PhaseType::erlang(2, 2.0).unwrap();
    vec![
        (0.8, 2, vec![(1.0, Some(3), exp(1.0))], vec![]),
        (1.3, 2, vec![(0.5, Some(2), exp(0.7)), (0.5, Some(3), exp(1.5))], vec![]),
        (0.9, 3, vec![(1.0, Some(2), exp(1.0))], vec![]),
        (0.8, 2, vec![(1.0, Some(2), coxian)], vec![]),
        (0.9, 2, vec![(0.5, Some(2), exp(0.7)), (0.5, Some(2), erlang)], vec![0.5, 1.5]),
    ]
}

/// One server: its jobs, the phase of the one in service (0 without one), the router with its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Server {
    pub level: u32,
    pub phase: usize,
    pub holder: Option<usize>,
}

pub type State = Vec<Server>;

pub struct Chain<'m> {
    pub model: &'m Model,
    pub routers: &'m Routers,
    pub pools: Vec<usize>,
    pub states: Vec<State>,
    pub moves: Vec<Vec<(usize, f64)>>,
}

/// Rates at which jobs meet idle, busy and full servers, and at which messages are sent.
#[derive(Default)]
pub struct Rates {
    pub idle: f64,
    pub wait: f64,
    pub block: f64,
    pub sent: f64,
}

impl<'m> Chain<'m> {
    /// All states that are reached from the idle system with all messages at router 0.
    pub fn new(model: &'m Model, n: u64) -> Self {
        let pools: Vec<usize> =
            (0..).zip(model.pool_sizes(n)).flat_map(|(j, size)| (0..size).map(move |_| j)).collect();
        let start: State = pools.iter().map(|_| Server { level: 0, phase: 0, holder: Some(0) }).collect();
        let routers = model.policy.routers.as_ref().unwrap();
        let mut chain = Self { model, routers, pools, states: vec![start.clone()], moves: vec![] };
        let mut index = HashMap::from([(start, 0)]);
        while chain.moves.len() < chain.states.len() {
            let (moves, _) = chain.transitions(&chain.states[chain.moves.len()]);
            let mut numbered = vec![];
            for (to, rate) in moves.into_iter().filter(|(_, rate)| *rate > 0.0) {
                let next = chain.states.len();
                let i = *index.entry(to.clone()).or_insert(next);
                if i == next {
                    chain.states.push(to);
                }
                numbered.push((i, rate));
            }
            chain.moves.push(numbered);
        }
        chain
    }

    /// Transitions out of a state, and the rates of what is counted.
    #[allow(clippy::cast_precision_loss)]
    pub fn transitions(&self, state: &State) -> (Vec<(State, f64)>, Rates) {
        let (mut moves, mut rates) = (vec![], Rates::default());
        let n = state.len() as f64;
        let with = |s: usize, server: Server| {
            let mut to = state.clone();
            to[s] = server;
            to
        };
        let pool = |s: usize| &self.model.pools[self.pools[s]];
        // The next job starts: phases with their probabilities.
        let entry = |s: usize| pool(s).law.initial().iter().copied().enumerate();
        let full = |s: usize| !pool(s).has_room(state[s].level);
        let keep = self.routers.message == Message::Keep;
        for (r, stream) in self.routers.streams.iter().enumerate() {
            let jobs = self.model.arrival_rate * n * stream;
            let known: Vec<usize> = (0..state.len()).filter(|&s| state[s].holder == Some(r)).collect();
            let sent_to: Vec<usize> =
                if known.is_empty() { (0..state.len()).collect() } else { known.clone() };
            for &s in &sent_to {
                let rate = jobs / sent_to.len() as f64;
                let Server { level, phase, holder } = state[s];
                match level {
                    0 => rates.idle += rate,
                    _ if full(s) => rates.block += rate,
                    _ => rates.wait += rate,
                }
                let by_message = !known.is_empty();
                let taken_back = !by_message && level == 0 && !keep;
                rates.sent += if taken_back { rate } else { 0.0 };
                let holder = if by_message || taken_back { None } else { holder };
                if full(s) {
                    moves.push((with(s, Server { level, phase, holder }), rate));
                } else if level == 0 {
                    for (phase, p) in entry(s) {
                        moves.push((with(s, Server { level: 1, phase, holder }), rate * p));
                    }
                } else {
                    moves.push((with(s, Server { level: level + 1, phase, holder }), rate));
                }
            }
        }
        for (s, &Server { level, phase, holder }) in state.iter().enumerate().filter(|(_, s)| s.level > 0) {
            let speed = pool(s).speed_at(level);
            for (to, rate) in pool(s).law.moves()[phase].iter().enumerate() {
                moves.push((with(s, Server { level, phase: to, holder }), speed * rate));
            }
            let exit = speed * pool(s).law.exit()[phase];
            if level > 1 {
                for (phase, p) in entry(s) {
                    moves.push((with(s, Server { level: level - 1, phase, holder }), exit * p));
                }
            } else if holder.is_some() {
                moves.push((with(s, Server { level: 0, phase: 0, holder }), exit));
            } else {
                rates.sent += exit;
                for (r, w) in self.routers.messages.iter().enumerate() {
                    moves.push((with(s, Server { level: 0, phase: 0, holder: Some(r) }), exit * w));
                }
            }
        }
        moves.retain(|(to, _)| to != state);
        (moves, rates)
    }

    pub fn stationary(&self) -> DVector<f64> {
        let n = self.states.len();
        let mut matrix = DMatrix::zeros(n, n);
        for (i, moves) in self.moves.iter().enumerate() {
            for &(to, rate) in moves {
                matrix[(to, i)] += rate;
                matrix[(i, i)] -= rate;
            }
        }
        matrix.row_mut(0).fill(1.0);
        let mut right = DVector::zeros(n);
        right[0] = 1.0;
        matrix.lu().solve(&right).unwrap()
    }

    pub fn mean(&self, law: &DVector<f64>, of: impl Fn(&State) -> f64) -> f64 {
        self.states.iter().zip(law.iter()).map(|(s, p)| p * of(s)).sum()
    }

    /// Shares of the jobs that meet idle, busy and full servers, and messages per job, by name.
    #[allow(clippy::cast_precision_loss)]
    pub fn measures(&self, law: &DVector<f64>) -> Vec<(&'static str, f64)> {
        let arrivals = self.model.arrival_rate * self.pools.len() as f64;
        let rate = |of: fn(&Rates) -> f64| self.mean(law, |s| of(&self.transitions(s).1)) / arrivals;
        vec![
            ("p_idle", rate(|r| r.idle)),
            ("p_wait", rate(|r| r.wait)),
            ("p_block", rate(|r| r.block)),
            ("messages_per_job", rate(|r| r.sent)),
        ]
    }

    /// The fraction of all servers that belong to this pool and hold `level` jobs or more.
    #[allow(clippy::cast_precision_loss)]
    pub fn tail(&self, law: &DVector<f64>, pool: usize, level: u32) -> f64 {
        let here = |s: &State| (0..s.len()).filter(|&i| self.pools[i] == pool && s[i].level >= level).count();
        self.mean(law, |s| here(s) as f64) / self.pools.len() as f64
    }
}
