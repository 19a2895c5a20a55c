//! The law of a chain at given times, by uniformisation (Jensen 1953).

use super::sparse::Generator;

/// Terms below this fraction of the largest are left out.
const NEGLIGIBLE: f64 = 1e-18;

/// Means of functions of the state at given times, and the work they took.
#[derive(Debug)]
pub(super) struct Transient {
    /// By time, the means.
    pub(super) means: Vec<Vec<f64>>,
    /// The rate of the Poisson process whose points are the steps.
    pub(super) rate: f64,
    /// Steps taken.
    pub(super) steps: usize,
}

/// The means of `width` functions of the state at `times`, which do not decrease, from the law `start`.
/// `read` writes the means under a law, and is linear in it.
///
/// The law at time t is that after a Poisson number, of mean rate times t, of steps of the chain looked
/// at with the rate of its fastest state. One sequence of steps serves all times: only the means
/// are weighted, never the law.
pub(super) fn transient(
    generator: &Generator,
    start: Vec<f64>,
    times: &[f64],
    width: usize,
    read: impl Fn(&[f64], &mut [f64]),
) -> Transient {
    let out: Vec<f64> = (0..generator.states()).map(|i| generator.out(i)).collect();
    let rate = generator.fastest();
    let windows: Vec<(usize, Vec<f64>)> = times.iter().map(|&time| poisson(rate * time)).collect();
    let steps = windows.iter().map(|(first, weights)| first + weights.len()).max().unwrap_or(0);
    let mut means = vec![vec![0.0; width]; times.len()];
    let (mut law, mut next, mut now) = (start, vec![0.0; out.len()], vec![0.0; width]);
    for step in 0..steps {
        let weight = |(first, weights): &(usize, Vec<f64>)| weights.get(step.checked_sub(*first)?).copied();
        if windows.iter().any(|window| weight(window).is_some()) {
            read(&law, &mut now);
            for (means, window) in means.iter_mut().zip(&windows) {
                if let Some(weight) = weight(window) {
                    means.iter_mut().zip(&now).for_each(|(mean, x)| *mean += weight * x);
                }
            }
        }
        if step + 1 < steps {
            advance(generator, &out, rate, &law, &mut next);
            std::mem::swap(&mut law, &mut next);
        }
    }
    Transient { means, rate, steps }
}

/// One step of the chain looked at with this rate.
fn advance(generator: &Generator, out: &[f64], rate: f64, law: &[f64], next: &mut [f64]) {
    for ((next, p), out) in next.iter_mut().zip(law).zip(out) {
        *next = p * (1.0 - out / rate);
    }
    for (i, &p) in law.iter().enumerate().filter(|(_, p)| **p > 0.0) {
        for &(to, one) in generator.row(i) {
            next[to as usize] += p * one / rate;
        }
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
        let mut generator = Generator::default();
        generator.push([(1, 2.0)].into_iter());
        generator.push([(0, 3.0)].into_iter());
        let times = [0.0, 0.2, 0.4, 7.0];
        let found = transient(&generator, vec![1.0, 0.0], &times, 1, |law, means| means[0] = law[0]);
        for (time, means) in times.iter().zip(&found.means) {
            let exact = 0.6 + 0.4 * (-5.0 * time).exp();
            assert!((means[0] - exact).abs() < 1e-14, "{time}");
        }
        // A chain that never moves.
        let mut still = Generator::default();
        still.push(std::iter::empty());
        let found = transient(&still, vec![1.0], &times, 1, |law, means| means[0] = law[0]);
        assert_eq!(found.means, vec![vec![1.0]; 4]);
    }
}
