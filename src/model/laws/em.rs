//! Maximum likelihood by expectation maximisation (EM): hyper-Erlang and Coxian-2.

use super::data::Sample;
use statrs::function::gamma::ln_gamma;

/// EM stops when a step adds less than this to the log-likelihood.
const ENOUGH: f64 = 1e-6;
/// Rates above this many times the reciprocal mean would only chase service times of zero.
const FASTEST: f64 = 1e6;

/// A branch of a hyper-Erlang law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Branch {
    pub(super) probability: f64,
    pub(super) stages: usize,
    pub(super) rate: f64,
}

#[allow(clippy::cast_precision_loss)]
impl Branch {
    /// Logarithm of probability times density, without the terms that depend on x.
    fn log_front(&self) -> f64 {
        let r = self.stages as f64;
        self.probability.ln() + r * self.rate.ln() - ln_gamma(r)
    }

    fn log_density(&self, front: f64, x: f64, log: f64) -> f64 {
        // 0 times the logarithm of 0 is 0 here.
        let power = if self.stages == 1 { 0.0 } else { (self.stages - 1) as f64 * log };
        front + power - self.rate * x
    }
}

/// Log-likelihood of a hyper-Erlang law.
pub(super) fn hyper_erlang_likelihood(sample: &Sample, branches: &[Branch]) -> f64 {
    let fronts: Vec<f64> = branches.iter().map(Branch::log_front).collect();
    let mut logs = vec![0.0; branches.len()];
    sample.iter().map(|(x, log)| log_sum(branches, &fronts, x, log, &mut logs)).sum()
}

/// The logarithm of the density; `logs` gets those of the branches.
fn log_sum(branches: &[Branch], fronts: &[f64], x: f64, log: f64, logs: &mut [f64]) -> f64 {
    for ((l, b), &front) in logs.iter_mut().zip(branches).zip(fronts) {
        *l = b.log_density(front, x, log);
    }
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY { top } else { top + logs.iter().map(|l| (l - top).exp()).sum::<f64>().ln() }
}

/// EM for a hyper-Erlang law with the stages of `branches`, which it starts from (A. Thümmler,
/// P. Buchholz, M. Telek, IEEE Transactions on Dependable and Secure Computing 3, 2006).
/// Returns the log-likelihood.
#[allow(clippy::cast_precision_loss)]
pub(super) fn hyper_erlang(sample: &Sample, branches: &mut [Branch], most_steps: u32) -> f64 {
    let count = sample.len() as f64;
    let mut logs = vec![0.0; branches.len()];
    let mut before = f64::NEG_INFINITY;
    for _ in 0..most_steps {
        let fronts: Vec<f64> = branches.iter().map(Branch::log_front).collect();
        let mut sums = vec![(0.0, 0.0); branches.len()];
        let mut likelihood = 0.0;
        for (x, log) in sample.iter() {
            let all = log_sum(branches, &fronts, x, log, &mut logs);
            likelihood += all;
            for (sum, l) in sums.iter_mut().zip(&logs) {
                let share = (l - all).exp();
                *sum = (sum.0 + share, sum.1 + share * x);
            }
        }
        if !likelihood.is_finite() || likelihood - before < ENOUGH {
            break;
        }
        before = likelihood;
        for (branch, (share, time)) in branches.iter_mut().zip(sums) {
            branch.probability = (share / count).max(1e-12);
            let rate = branch.stages as f64 * share / time;
            if rate > 0.0 {
                branch.rate = rate.min(FASTEST / sample.mean());
            }
        }
        let total: f64 = branches.iter().map(|b| b.probability).sum();
        branches.iter_mut().for_each(|b| b.probability /= total);
    }
    hyper_erlang_likelihood(sample, branches)
}

/// A Coxian law with two phases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Coxian2 {
    pub(super) rates: [f64; 2],
    /// Probability of the second phase.
    pub(super) go_on: f64,
}

impl Coxian2 {
    /// Densities of a service of one and of two phases.
    fn densities(&self, x: f64) -> (f64, f64) {
        let [first, second] = self.rates;
        let z = (first - second).abs() * x;
        let difference = if z > 0.0 { -(-z).exp_m1() / z } else { 1.0 };
        let two = first * second * x * (-first.min(second) * x).exp() * difference;
        ((1.0 - self.go_on) * first * (-first * x).exp(), self.go_on * two)
    }

    /// Log-likelihood.
    pub(super) fn likelihood(&self, sample: &Sample) -> f64 {
        sample
            .iter()
            .map(|(x, _)| {
                let (one, two) = self.densities(x);
                (one + two).ln()
            })
            .sum()
    }

    /// EM from this law on (S. Asmussen, O. Nerman, M. Olsson, Scandinavian Journal of Statistics 23,
    /// 1996, for two phases in closed form).
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn improved(mut self, sample: &Sample, most_steps: u32) -> Self {
        let count = sample.len() as f64;
        let mut before = f64::NEG_INFINITY;
        for _ in 0..most_steps {
            let (mut both, mut first, mut second, mut likelihood) = (0.0, 0.0, 0.0, 0.0);
            for (x, _) in sample.iter() {
                let (one, two) = self.densities(x);
                let share = two / (one + two);
                likelihood += (one + two).ln();
                // Given that it took two phases and x in all, the first took this part of x.
                let part = share * x * mean_part((self.rates[0] - self.rates[1]) * x);
                both += share;
                first += (1.0 - share) * x + part;
                second += share * x - part;
            }
            if !likelihood.is_finite() || likelihood - before < ENOUGH {
                break;
            }
            before = likelihood;
            let most = FASTEST / sample.mean();
            self.go_on = (both / count).clamp(0.0, 1.0);
            let (one, two) = (count / first, both / second);
            if !(one > 0.0 && two > 0.0) {
                break;
            }
            self.rates = [one.min(most), two.min(most)];
        }
        self
    }
}

/// Mean of the law on [0, 1] with density proportional to exp(-z t).
fn mean_part(z: f64) -> f64 {
    if z.abs() < 1e-2 { 0.5 - z / 12.0 + z.powi(3) / 720.0 } else { 1.0 / z - 1.0 / z.exp_m1() }
}
