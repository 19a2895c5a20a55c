//! Phase-type service laws: the one representation of a service time.
//!
//! A job starts in phase m with probability `initial[m]`; phase m lasts an exponential time and is
//! left for phase r at rate `moves[m][r]`, or for good at rate `exit[m]`. The exponential law is the
//! case of one phase. A new law is one constructor.

use nalgebra::{DMatrix, DVector};
use thiserror::Error;

/// Why numbers do not make a phase-type law.
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
    /// Exponential with the given rate.
    ///
    /// # Errors
    /// If the rate is not positive and finite.
    pub fn exponential(rate: f64) -> Result<Self, LawError> {
        Self::coxian(&[rate], &[])
    }

    /// Erlang: `stages` exponential stages of the same rate, one after the other.
    ///
    /// # Errors
    /// If there is no stage or the rate is not positive and finite.
    pub fn erlang(stages: usize, rate: f64) -> Result<Self, LawError> {
        if stages == 0 {
            return Err(LawError::Shape("an Erlang law needs at least one stage".into()));
        }
        Self::coxian(&vec![rate; stages], &vec![1.0; stages - 1])
    }

    /// Hyperexponential: exponential with rate `rates[m]` with probability `probabilities[m]`.
    ///
    /// # Errors
    /// If the lists differ in length, the probabilities do not sum to 1, or a rate is not positive.
    pub fn hyperexponential(probabilities: &[f64], rates: &[f64]) -> Result<Self, LawError> {
        let m = rates.len();
        Self::general(probabilities.to_vec(), vec![vec![0.0; m]; m], rates.to_vec())
    }

    /// Coxian with rates mu_1..mu_M and continuation probabilities p_1..p_(M-1): after phase m the
    /// job goes on to phase m+1 with probability p_m and ends otherwise.
    ///
    /// # Errors
    /// If there are not M - 1 probabilities in [0, 1], or a rate is not positive and finite.
    pub fn coxian(rates: &[f64], continuation: &[f64]) -> Result<Self, LawError> {
        let m = rates.len();
        if m == 0 || continuation.len() + 1 != m {
            return Err(LawError::Shape(format!(
                "{m} rates need {} continuation probabilities, not {}",
                m.saturating_sub(1),
                continuation.len()
            )));
        }
        if let Some(p) = continuation.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return Err(LawError::Probability(format!(
                "a continuation probability is {p}; it must lie in [0, 1]"
            )));
        }
        let mut moves = vec![vec![0.0; m]; m];
        let mut exit = rates.to_vec();
        for (i, &p) in continuation.iter().enumerate() {
            moves[i][i + 1] = rates[i] * p;
            exit[i] = rates[i] * (1.0 - p);
        }
        let mut initial = vec![0.0; m];
        initial[0] = 1.0;
        Self::general(initial, moves, exit)
    }

    /// A general phase-type law. `moves[m][r]` is the rate from phase m to phase r (the diagonal is
    /// ignored), `exit[m]` the rate at which phase m ends the service.
    ///
    /// # Errors
    /// If the shapes differ, a rate is negative or not finite, a phase has no way out, or the initial
    /// probabilities do not sum to 1.
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
        if (total - 1.0).abs() > 1e-9 {
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
    #[must_use]
    pub fn scv(&self) -> f64 {
        self.moment(2) / (self.mean * self.mean) - 1.0
    }

    /// The k-th moment, k! alpha (-T)^-k 1; NaN if the generator is singular.
    fn moment(&self, k: u32) -> f64 {
        let m = self.phases();
        if m == 1 {
            return (1..=k).map(|i| f64::from(i) / self.exit[0]).product();
        }
        let minus_t = DMatrix::from_fn(m, m, |i, j| if i == j { self.rate(i) } else { -self.moves[i][j] });
        let lu = minus_t.lu();
        let mut v = DVector::from_element(m, 1.0);
        for i in 1..=k {
            match lu.solve(&v) {
                Some(next) => v = next * f64::from(i),
                None => return f64::NAN,
            }
        }
        v.iter().zip(&self.initial).map(|(a, b)| a * b).sum()
    }

    /// A phase from which the end cannot be reached, if there is one.
    fn never_ends(&self) -> Option<usize> {
        let m = self.phases();
        let mut ends: Vec<bool> = self.exit.iter().map(|&r| r > 0.0).collect();
        for _ in 0..m {
            for i in 0..m {
                ends[i] = ends[i] || (0..m).any(|r| self.moves[i][r] > 0.0 && ends[r]);
            }
        }
        ends.iter().position(|e| !e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_named_laws_are_the_textbook_ones() {
        let exp = PhaseType::exponential(2.0).unwrap();
        assert!((exp.mean() - 0.5).abs() < 1e-15 && (exp.scv() - 1.0).abs() < 1e-14);
        let erlang = PhaseType::erlang(4, 4.0).unwrap();
        assert!((erlang.mean() - 1.0).abs() < 1e-15 && (erlang.scv() - 0.25).abs() < 1e-14);
        let h2 = PhaseType::hyperexponential(&[0.9, 0.1], &[2.0, 2.0 / 11.0]).unwrap();
        assert!((h2.mean() - 1.0).abs() < 1e-15);
        // Marie's Coxian-2 with mean 1 and SCV c: rates 2 and 1/c, continuation 1/(2c).
        let marie = PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap();
        assert!((marie.mean() - 1.0).abs() < 1e-15 && (marie.scv() - 2.0).abs() < 1e-14);
        assert!((marie.with_mean(3.0).unwrap().mean() - 3.0).abs() < 1e-14);
    }

    #[test]
    fn a_law_that_never_ends_is_refused() {
        let stuck = PhaseType::general(vec![1.0, 0.0], vec![vec![0.0, 1.0], vec![1.0, 0.0]], vec![0.0, 0.0]);
        assert_eq!(stuck, Err(LawError::NeverEnds { phase: 1 }));
        assert!(PhaseType::exponential(-1.0).is_err() && PhaseType::exponential(f64::NAN).is_err());
    }
}
