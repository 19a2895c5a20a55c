//! Service laws as tables: how a job in service moves on.

use rand::Rng;
use rand_distr::{Binomial, Distribution};

use super::streams::unit;
use crate::model::PhaseType;

/// What happens to a job in service when its phase ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PhaseEnd {
    /// The job is done.
    Exit,
    /// It goes on in this phase.
    Next(usize),
}

/// One phase: its total rate, and where it leads with cumulative rates.
#[derive(Debug, Clone)]
struct Phase {
    rate: f64,
    ends: Vec<(f64, PhaseEnd)>,
}

/// The service law of a pool.
#[derive(Debug, Clone)]
pub(super) struct Service {
    phases: Vec<Phase>,
    /// Phases that a job may start in, with cumulative probabilities.
    starts: Vec<(f64, usize)>,
}

/// Running sums of the positive weights.
fn cumulative<T>(weights: impl Iterator<Item = (f64, T)>) -> Vec<(f64, T)> {
    weights
        .filter(|(weight, _)| *weight > 0.0)
        .scan(0.0, |sum, (weight, what)| {
            *sum += weight;
            Some((*sum, what))
        })
        .collect()
}

/// One of the outcomes, at random by their weights. A sure outcome costs no random number.
#[inline]
fn draw<T: Copy, R: Rng>(table: &[(f64, T)], rng: &mut R) -> Option<T> {
    let (last, rest) = table.split_last()?;
    if rest.is_empty() {
        return Some(last.1);
    }
    let u = unit(rng) * last.0;
    Some(rest.iter().find(|(sum, _)| u < *sum).unwrap_or(last).1)
}

impl Service {
    /// The tables of a law at this speed.
    pub(super) fn new(law: &PhaseType, speed: f64) -> Self {
        let phases = (0..law.phases())
            .map(|m| {
                let next = law.moves()[m].iter().enumerate().map(|(to, &rate)| (rate, PhaseEnd::Next(to)));
                let ends = cumulative(std::iter::once((law.exit()[m], PhaseEnd::Exit)).chain(next));
                Phase { rate: speed * law.rate(m), ends }
            })
            .collect();
        Self { phases, starts: cumulative(law.initial().iter().copied().zip(0..)) }
    }

    /// The number of phases.
    pub(super) fn phases(&self) -> usize {
        self.phases.len()
    }

    /// The phase that a job starts in.
    #[inline]
    pub(super) fn start<R: Rng>(&self, rng: &mut R) -> usize {
        draw(&self.starts, rng).unwrap_or(0)
    }

    /// The phases that `servers` independent jobs start in, one binomial number per phase.
    pub(super) fn start_many<R: Rng>(&self, servers: u64, rng: &mut R, mut put: impl FnMut(usize, u64)) {
        let mut left = servers;
        let mut below = 0.0;
        for (i, &(sum, phase)) in self.starts.iter().enumerate() {
            let is_last = i + 1 == self.starts.len();
            let share = ((sum - below) / (1.0 - below)).clamp(0.0, 1.0);
            let here = match Binomial::new(left, share) {
                Ok(binomial) if !is_last => binomial.sample(rng),
                _ => left,
            };
            if here > 0 {
                put(phase, here);
            }
            left -= here;
            below = sum;
        }
    }

    /// How a phase ends.
    #[inline]
    pub(super) fn end<R: Rng>(&self, phase: usize, rng: &mut R) -> PhaseEnd {
        draw(&self.phases[phase].ends, rng).unwrap_or(PhaseEnd::Exit)
    }

    /// Total rate out of each phase.
    pub(super) fn rates(&self) -> impl Iterator<Item = f64> {
        self.phases.iter().map(|phase| phase.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finite::streams::stream;

    #[test]
    fn many_starts_are_as_many_and_split_by_the_law() {
        let law = PhaseType::hyperexponential(&[0.5, 0.2, 0.3], &[1.0, 2.0, 3.0]).unwrap();
        let mut split = [0u64; 3];
        Service::new(&law, 1.0)
            .start_many(1_000_000, &mut stream(1, 1, 1), |phase, servers| split[phase] += servers);
        assert_eq!(split.iter().sum::<u64>(), 1_000_000);
        for (count, share) in split.iter().zip([0.5, 0.2, 0.3]) {
            #[allow(clippy::cast_precision_loss)]
            let error = *count as f64 - 1e6 * share;
            assert!(error.abs() < 5.0 * (1e6 * share * (1.0 - share)).sqrt());
        }
    }

    #[test]
    fn impossible_ends_are_not_in_the_tables() {
        let erlang = Service::new(&PhaseType::erlang(2, 2.0).unwrap(), 1.0);
        let mut rng = stream(1, 1, 1);
        assert_eq!(erlang.end(0, &mut rng), PhaseEnd::Next(1));
        assert_eq!(erlang.end(1, &mut rng), PhaseEnd::Exit);
        assert_eq!(erlang.start(&mut rng), 0);
    }
}
