//! Linear systems (gamma I - J) x = b with the structure of several routers, in time linear in the states.
//!
//! At frozen rates of use c_r = lambda_r / z_r and of random routing rho, J is a generator: in each pool
//! one chain of levels per holder, where the chain of router r is fed by servers with one job and no
//! message, and feeds the chain without messages. So the chains are solved one after the other, but for
//! one unknown per pool. What is left are the changes of the rates themselves:
//!
//! ```text
//! J x = (frozen part) x - sum over r of d_r (c_r / z_r) sigma_r + d_rho drho
//! sigma_r = sum of x over what router r holds,   drho = -(sum of w_r over E) S,   S = sum of mu_j x_j1
//! ```
//!
//! with d_r and d_rho where servers go. Summed over what router r holds, the equations do not have c_r in
//! them, however large it is: sigma_r follows from S, and S from one scalar equation.

use super::field::{Field, Mode, PoolCells};

/// A factorised tridiagonal matrix: row k is -up[k-1] x[k-1] + diagonal x[k] - down[k] x[k+1].
#[derive(Debug)]
struct Chain {
    /// What is added of the row before.
    lower: Vec<f64>,
    diagonal: Vec<f64>,
    down: Vec<f64>,
}

impl Chain {
    fn new(mut diagonal: Vec<f64>, up: &[f64], down: Vec<f64>) -> Self {
        let mut lower = vec![0.0; diagonal.len()];
        for k in 1..diagonal.len() {
            lower[k] = up[k - 1] / diagonal[k - 1];
            diagonal[k] -= lower[k] * down[k - 1];
        }
        Self { lower, diagonal, down }
    }

    /// Solves in place for the entries `at(0)`, `at(1)`, ... of b.
    fn solve(&self, b: &mut [f64], at: impl Fn(usize) -> usize) {
        let levels = self.diagonal.len();
        for k in 1..levels {
            b[at(k)] += self.lower[k] * b[at(k - 1)];
        }
        for k in (0..levels).rev() {
            let above = if k + 1 < levels { self.down[k] * b[at(k + 1)] } else { 0.0 };
            b[at(k)] = (b[at(k)] + above) / self.diagonal[k];
        }
    }
}

/// One pool at frozen rates.
#[derive(Debug)]
struct PoolFactor {
    start: usize,
    levels: usize,
    /// The chain of each router's messages, from level 0.
    held: Vec<Chain>,
    /// Servers without a message, from level 1.
    free: Chain,
    /// How the pool responds to one more server with one job and no message.
    response: Vec<f64>,
    /// What is left of that server once the response has come back to it.
    left: f64,
}

/// gamma I - J, factorised.
#[derive(Debug)]
pub(super) struct Factor<'f> {
    field: &'f Field,
    q: &'f [f64],
    rho: f64,
    /// Rate of use of one message of each router; 0 where it does not change.
    uses: Vec<f64>,
    held: Vec<f64>,
    pools: Vec<PoolFactor>,
    /// Gamma, plus the rate at which one message is withdrawn.
    leak: f64,
    /// Change of S with sigma_r.
    by_held: Vec<f64>,
    /// Sum of w_r over the empty routers.
    at_once: f64,
    /// Factor of S in its equation.
    scalar: f64,
}

impl<'f> Factor<'f> {
    /// Factorises; `None` outside the domain, or while a router is opening.
    pub fn new(field: &'f Field, q: &'f [f64], gamma: f64) -> Option<Self> {
        let routers = field.modes.len();
        let held: Vec<f64> = (0..routers).map(|r| field.held(r, q)).collect();
        let mut uses = vec![0.0; routers];
        for r in 0..routers {
            match field.modes[r] {
                Mode::Opening => return None,
                Mode::Open if field.streams[r] > 0.0 && !field.single(r) => {
                    if held[r].is_nan() || held[r] <= 0.0 {
                        return None;
                    }
                    uses[r] = field.streams[r] / held[r];
                }
                _ => {}
            }
        }
        let rho = field.random_rate(q);
        let pools = field.pools.iter().map(|pool| PoolFactor::new(field, pool, &uses, rho, gamma)).collect();
        let empty = (0..routers).filter(|&r| field.modes[r] == Mode::Empty);
        let mut factor = Self {
            at_once: empty.map(|r| field.messages[r]).sum(),
            leak: gamma + if field.keep { 0.0 } else { rho },
            by_held: vec![0.0; routers],
            scalar: 1.0,
            field,
            q,
            rho,
            uses,
            held,
            pools,
        };
        let mut b = vec![0.0; q.len()];
        for r in (0..routers).filter(|&r| factor.uses[r] > 0.0) {
            b.fill(0.0);
            factor.add_direction(r, 1.0, &mut b);
            factor.solve_frozen(&mut b);
            factor.by_held[r] = field.sent(&b);
            factor.scalar -= factor.by_held[r] * factor.per_sent(r);
        }
        b.fill(0.0);
        field.add_random(q, 1.0, &mut b);
        factor.solve_frozen(&mut b);
        factor.scalar += field.sent(&b) * factor.at_once;
        (factor.scalar != 0.0 && factor.scalar.is_finite()).then_some(factor)
    }

    /// Change of sigma_r with S: messages that come, and those that are withdrawn less often.
    fn per_sent(&self, r: usize) -> f64 {
        let withdrawn = if self.field.keep { 0.0 } else { self.held[r] * self.at_once };
        (self.field.messages[r] + withdrawn) / self.leak
    }

    /// Adds what a change of sigma_r does through the rate of use: each message is used less often.
    fn add_direction(&self, r: usize, sigma: f64, b: &mut [f64]) {
        let factor = self.uses[r] / self.held[r] * sigma;
        self.field.each_message(r, |from, to| {
            b[from] += factor * self.q[from];
            b[to] -= factor * self.q[from];
        });
    }

    /// Solves in place.
    pub fn solve(&self, b: &mut [f64]) {
        let mut frozen = b.to_vec();
        self.solve_frozen(&mut frozen);
        let mut sent = self.field.sent(&frozen);
        let mut sigma = vec![0.0; self.uses.len()];
        let active = || (0..self.uses.len()).filter(|&r| self.uses[r] > 0.0);
        for r in active() {
            self.field.each_message(r, |from, _| sigma[r] += b[from]);
            sigma[r] /= self.leak;
            sent += self.by_held[r] * sigma[r];
        }
        sent /= self.scalar;
        for r in active() {
            self.add_direction(r, sigma[r] + self.per_sent(r) * sent, b);
        }
        self.field.add_random(self.q, -self.at_once * sent, b);
        self.solve_frozen(b);
    }

    /// Solves with the rates frozen.
    fn solve_frozen(&self, b: &mut [f64]) {
        self.pools.iter().for_each(|pool| pool.solve(self.field, &self.uses, self.rho, b));
    }
}

impl PoolFactor {
    fn new(field: &Field, pool: &PoolCells, uses: &[f64], rho: f64, gamma: f64) -> Self {
        let levels = pool.levels as usize;
        let service = |k: usize| if k == 0 || k == levels && pool.absorbing { 0.0 } else { pool.rate };
        let random = |k: usize| if k < levels { rho } else { 0.0 };
        let highest = if field.keep { levels } else { 0 };
        let chain = |r: usize| {
            let diagonal = (0..=highest).map(|k| gamma + service(k) + random(k) + uses[r]).collect();
            let up: Vec<f64> = (0..highest).map(random).collect();
            Chain::new(diagonal, &up, (1..=highest).map(service).collect())
        };
        let comes = |r: usize| if field.modes[r] == Mode::Empty { 0.0 } else { field.messages[r] };
        let routers = field.modes.len();
        let leaves: f64 = (0..routers).map(comes).sum::<f64>() * service(1);
        let diagonal = (1..=levels).map(|k| gamma + random(k) + if k == 1 { leaves } else { service(k) });
        let up: Vec<f64> = (1..levels).map(random).collect();
        let free = Chain::new(diagonal.collect(), &up, (2..=levels).map(service).collect());
        let held = (0..routers).map(chain).collect();
        let mut factor =
            Self { start: pool.range.start, levels, held, free, response: Vec::new(), left: 1.0 };
        // One more server with one job and no message sends messages.
        let mut b = vec![0.0; pool.range.end];
        (0..routers).for_each(|r| b[factor.start + r] = service(1) * comes(r));
        factor.solve_without_feedback(field, uses, rho, &mut b);
        factor.left = 1.0 - b[factor.free_at(field, 0)];
        factor.response = b.split_off(factor.start);
        factor
    }

    /// The state of a server with a message at router r, by level.
    fn held_at(&self, field: &Field, r: usize, level: usize) -> usize {
        match level {
            0 => self.start + r,
            k => self.free_at(field, k - 1) + r + 1,
        }
    }

    /// The state of a server without a message, by level counted from level 1.
    fn free_at(&self, field: &Field, above_first: usize) -> usize {
        let routers = field.modes.len();
        let holders = if field.keep { routers + 1 } else { 1 };
        self.start + routers + above_first * holders
    }

    fn solve(&self, field: &Field, uses: &[f64], rho: f64, b: &mut [f64]) {
        self.solve_without_feedback(field, uses, rho, b);
        let ones = b[self.free_at(field, 0)] / self.left;
        b[self.start..].iter_mut().zip(&self.response).for_each(|(b, response)| *b += ones * response);
    }

    /// Solves where servers with one job and no message send none.
    fn solve_without_feedback(&self, field: &Field, uses: &[f64], rho: f64, b: &mut [f64]) {
        for (r, chain) in self.held.iter().enumerate() {
            chain.solve(b, |k| self.held_at(field, r, k));
            for k in 0..chain.diagonal.len() {
                // A job by message, and behind the back of a message that is withdrawn.
                let withdrawn = if field.keep { 0.0 } else { rho };
                let flow = (uses[r] + withdrawn) * b[self.held_at(field, r, k)];
                b[self.free_at(field, k.min(self.levels - 1))] += flow;
            }
        }
        self.free.solve(b, |k| self.free_at(field, k));
    }
}
