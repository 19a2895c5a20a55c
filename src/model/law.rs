//! Phase-type service laws: the one representation of a service time.
//!
//! A job starts in phase m with probability `initial[m]`; phase m lasts an exponential time and is
//! left for phase r at rate `moves[m][r]`, or for good at rate `exit[m]`. The exponential law is the
//! case of one phase. In the usual notation initial is alpha, moves and exit make the generator T,
//! and exit = -T 1. The named laws are constructors in `laws`.

mod elimination;
mod functions;
mod walk;

use elimination::Elimination;
use thiserror::Error;

/// Why numbers do not make a service law.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum LawError {
    /// A rate that must be positive and finite is not.
    #[error("the rate of phase {phase} is {rate}; rates must be positive and finite")]
    Rate {
        /// Phase, counted from 1.
        phase: usize,
        /// What was given.
        rate: f64,
    },
    /// A parameter outside its range.
    #[error("{name} is {value}; it must be {allowed}")]
    Parameter {
        /// What the parameter is called.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A probability outside [0, 1], or probabilities that do not sum to 1.
    #[error("{0}")]
    Probability(String),
    /// Lists of different lengths, or no phase at all.
    #[error("{0}")]
    Shape(String),
    /// Some phase is never left, so a job could stay for ever.
    #[error("a job can stay for ever: from phase {phase} the end is never reached")]
    NeverEnds {
        /// Phase, counted from 1.
        phase: usize,
    },
}

/// The law of a service time as the time to absorption of a small Markov chain.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseType {
    initial: Vec<f64>,
    moves: Vec<Vec<f64>>,
    exit: Vec<f64>,
    mean: f64,
}

impl PhaseType {
    /// The most phases that the named laws are given. A pool has as many server states on each level.
    pub const MOST_PHASES: usize = 2000;

    /// A general phase-type law. `moves[m][r]` is the rate from phase m to phase r (the diagonal is
    /// ignored), `exit[m]` the rate at which phase m ends the service.
    ///
    /// # Errors
    /// If the shapes differ, a rate is negative or not finite, a phase has no way out, or the initial
    /// probabilities do not sum to 1 within 1e-9 (they are divided by their sum).
    pub fn general(initial: Vec<f64>, mut moves: Vec<Vec<f64>>, exit: Vec<f64>) -> Result<Self, LawError> {
        let m = initial.len();
        if m == 0 || exit.len() != m || moves.len() != m || moves.iter().any(|row| row.len() != m) {
            return Err(LawError::Shape(
                "a law with M phases needs M initial probabilities and M rates".into(),
            ));
        }
        if let Some(p) = initial.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return Err(LawError::Probability(format!(
                "an initial probability is {p}; it must lie in [0, 1]"
            )));
        }
        let total: f64 = initial.iter().sum();
        // A little more than 1e-9, for the rounding of the sum itself.
        if (total - 1.0).abs() > 1e-9 + 1e-12 {
            return Err(LawError::Probability(format!("the initial probabilities sum to {total}, not to 1")));
        }
        for (i, row) in moves.iter_mut().enumerate() {
            row[i] = 0.0;
            let all = exit[i] + row.iter().sum::<f64>();
            let bad = row.iter().chain(std::iter::once(&exit[i])).find(|r| !(r.is_finite() && **r >= 0.0));
            if let Some(&rate) = bad {
                return Err(LawError::Rate { phase: i + 1, rate });
            }
            if !(all > 0.0 && all.is_finite()) {
                return Err(LawError::Rate { phase: i + 1, rate: all });
            }
        }
        let initial = initial.iter().map(|p| p / total).collect();
        let mut law = Self { initial, moves, exit, mean: 0.0 };
        if let Some(phase) = law.never_ends() {
            return Err(LawError::NeverEnds { phase: phase + 1 });
        }
        law.mean = law.moment(1);
        if !(law.mean.is_finite() && law.mean > 0.0) {
            return Err(LawError::Shape(format!("the mean service time is {}", law.mean)));
        }
        Ok(law)
    }

    /// The same law with its time scale changed so that its mean is `mean`.
    ///
    /// # Errors
    /// If the new mean is not positive and finite.
    pub fn with_mean(&self, mean: f64) -> Result<Self, LawError> {
        let factor = self.mean / mean;
        let moves = self.moves.iter().map(|row| row.iter().map(|r| r * factor).collect()).collect();
        Self::general(self.initial.clone(), moves, self.exit.iter().map(|r| r * factor).collect())
    }

    /// The number of phases.
    #[must_use]
    pub fn phases(&self) -> usize {
        self.initial.len()
    }

    /// Probability that a job starts in each phase.
    #[must_use]
    pub fn initial(&self) -> &[f64] {
        &self.initial
    }

    /// Rate from phase to phase; the diagonal is 0.
    #[must_use]
    pub fn moves(&self) -> &[Vec<f64>] {
        &self.moves
    }

    /// Rate at which each phase ends the service.
    #[must_use]
    pub fn exit(&self) -> &[f64] {
        &self.exit
    }

    /// Total rate out of a phase.
    #[must_use]
    pub fn rate(&self, phase: usize) -> f64 {
        self.exit[phase] + self.moves[phase].iter().sum::<f64>()
    }

    /// Mean service time.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Squared coefficient of variation: variance over mean squared.
    ///
    /// The mean remaining service is a martingale plus time, so the variance is that of its start plus
    /// the mean of its squared jumps: a sum of squares, exact also where the SCV is small.
    #[must_use]
    pub fn scv(&self) -> f64 {
        let elimination = Elimination::new(self, 0.0);
        let rest = elimination.right(vec![1.0; self.phases()]);
        let start = self.initial.iter().zip(&rest).map(|(p, e)| p * (e - self.mean).powi(2));
        let jumps = elimination.left(self.initial.clone()).into_iter().enumerate().map(|(i, time)| {
            let moves = self.moves[i].iter().zip(&rest).filter(|(rate, _)| **rate > 0.0);
            let moves = moves.map(|(rate, e)| rate * (e - rest[i]).powi(2)).sum::<f64>();
            time * (moves + self.exit[i] * rest[i].powi(2))
        });
        start.chain(jumps).map(|x| x / (self.mean * self.mean)).sum()
    }

    /// The k-th moment E X^k = k! alpha (-T)^-k 1, in units of time to the k.
    #[must_use]
    pub fn moment(&self, k: u32) -> f64 {
        let elimination = Elimination::new(self, 0.0);
        let mut v = vec![1.0; self.phases()];
        for i in 1..=k {
            v = elimination.right(v);
            v.iter_mut().for_each(|x| *x *= f64::from(i));
        }
        v.iter().zip(&self.initial).map(|(a, b)| a * b).sum()
    }

    /// Mean time that a job spends in each phase: v = alpha (-T)^-1. The entries sum to the mean.
    #[must_use]
    pub fn time_in_phases(&self) -> Vec<f64> {
        Elimination::new(self, 0.0).left(self.initial.clone())
    }

    /// Mean service that is left in each phase: (-T)^-1 1.
    #[must_use]
    pub fn mean_left(&self) -> Vec<f64> {
        Elimination::new(self, 0.0).right(vec![1.0; self.phases()])
    }

    /// The Laplace transform E exp(-s X) for s >= 0.
    #[must_use]
    pub fn laplace(&self, s: f64) -> f64 {
        let v = Elimination::new(self, s).right(self.exit.clone());
        v.iter().zip(&self.initial).map(|(a, b)| a * b).sum()
    }

    /// The equilibrium law: of the remaining service of a job that is looked at at a random time
    /// while in service. Its density is survival over mean, its generator that of this law.
    ///
    /// # Errors
    /// If the mean is so extreme that shares of it cannot be formed.
    pub fn equilibrium(&self) -> Result<Self, LawError> {
        let initial = self.time_in_phases().iter().map(|v| (v / self.mean).min(1.0)).collect();
        Self::general(initial, self.moves.clone(), self.exit.clone())
    }

    /// A phase from which the end cannot be reached, if there is one.
    fn never_ends(&self) -> Option<usize> {
        let m = self.phases();
        let mut ends: Vec<bool> = self.exit.iter().map(|&r| r > 0.0).collect();
        let mut found: Vec<usize> = (0..m).filter(|&i| ends[i]).collect();
        while let Some(to) = found.pop() {
            for (from, row) in self.moves.iter().enumerate() {
                if !ends[from] && row[to] > 0.0 {
                    ends[from] = true;
                    found.push(from);
                }
            }
        }
        ends.iter().position(|e| !e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_that_never_ends_is_refused() {
        let stuck = PhaseType::general(vec![1.0, 0.0], vec![vec![0.0, 1.0], vec![1.0, 0.0]], vec![0.0, 0.0]);
        assert_eq!(stuck, Err(LawError::NeverEnds { phase: 1 }));
        assert!(PhaseType::exponential(-1.0).is_err() && PhaseType::exponential(f64::NAN).is_err());
    }
}
