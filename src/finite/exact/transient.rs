//! The law of a chain at given times, by uniformisation (Jensen 1953).

use super::sparse::Generator;

/// Terms below this fraction of the largest are left out.
const NEGLIGIBLE: f64 = 1e-18;

/// A law that moves on in time.
#[derive(Debug)]
pub(super) struct Transient<'a> {
    generator: &'a Generator,
    out: Vec<f64>,
    /// The rate of the Poisson process whose points are the steps.
    pub(super) rate: f64,
    /// Steps taken.
    pub(super) steps: u64,
    /// The law now.
    pub(super) law: Vec<f64>,
    term: Vec<f64>,
    next: Vec<f64>,
}

impl<'a> Transient<'a> {
    /// Starts from `law`.
    pub(super) fn new(generator: &'a Generator, law: Vec<f64>) -> Self {
        let out: Vec<f64> = (0..generator.states()).map(|i| generator.out(i)).collect();
        let (term, next) = (law.clone(), law.clone());
        Self { generator, out, rate: generator.fastest(), steps: 0, law, term, next }
    }

    /// Lets `time` pass: the law after a Poisson number of steps of the chain that is looked at with
    /// the rate of its fastest state.
    pub(super) fn advance(&mut self, time: f64) {
        let (first, weights) = poisson(self.rate * time);
        self.term.copy_from_slice(&self.law);
        self.law.fill(0.0);
        for step in 0..first + weights.len() {
            if step > 0 {
                self.step();
            }
            if let Some(weight) = step.checked_sub(first).map(|i| weights[i]) {
                self.law.iter_mut().zip(&self.term).for_each(|(p, t)| *p += weight * t);
            }
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        for ((next, term), out) in self.next.iter_mut().zip(&self.term).zip(&self.out) {
            *next = term * (1.0 - out / self.rate);
        }
        for (i, &p) in self.term.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            for &(to, rate) in self.generator.row(i) {
                self.next[to as usize] += p * rate / self.rate;
            }
        }
        std::mem::swap(&mut self.term, &mut self.next);
    }
}

/// Poisson probabilities that matter: the number the first one belongs to, and the probabilities from
/// there on, which sum to 1. Built from the likeliest number outwards, so nothing under- or overflows.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn poisson(mean: f64) -> (usize, Vec<f64>) {
    let mode = mean.floor() as usize;
    let mut below = Vec::new();
    let mut weight = 1.0;
    for k in (1..=mode).rev() {
        weight *= k as f64 / mean;
        if weight < NEGLIGIBLE {
            break;
        }
        below.push(weight);
    }
    let first = mode - below.len();
    let mut weights: Vec<f64> = below.into_iter().rev().chain([1.0]).collect();
    weight = 1.0;
    for k in mode + 1.. {
        weight *= mean / k as f64;
        if weight < NEGLIGIBLE {
            break;
        }
        weights.push(weight);
    }
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= total);
    (first, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_weights_have_the_right_mean_and_variance() {
        for mean in [0.0, 0.3, 7.0, 1e5 + 0.5] {
            let (first, weights) = poisson(mean);
            let numbers: Vec<f64> = (0..weights.len()).map(|i| (first + i) as f64).collect();
            let moment =
                |of: &dyn Fn(f64) -> f64| numbers.iter().zip(&weights).map(|(k, w)| of(*k) * w).sum::<f64>();
            assert!((moment(&|k| k) - mean).abs() <= 1e-12 * mean);
            assert!((moment(&|k| (k - mean).powi(2)) - mean).abs() <= 1e-10 * mean);
        }
    }

    #[test]
    fn two_states_relax_as_an_exponential() {
        let mut generator = Generator::new();
        generator.push([(1, 2.0)].into_iter());
        generator.push([(0, 3.0)].into_iter());
        let mut transient = Transient::new(&generator, vec![1.0, 0.0]);
        for i in 1..=5 {
            transient.advance(0.2);
            let exact = 0.6 + 0.4 * (-f64::from(i)).exp();
            assert!((transient.law[0] - exact).abs() < 1e-14);
        }
    }
}
