//! A phase-type law from its generator matrix.

use super::super::{LawError, PhaseType};

/// Row sums of a generator may exceed 0 by this much, relative to the diagonal: rounding of decimals.
const SLACK: f64 = 1e-12;

impl PhaseType {
    /// The law of initial vector alpha and generator T: rates between phases off the diagonal, minus
    /// the total rate of each phase on it. What a row lacks to 0 is the rate at which its phase ends.
    ///
    /// # Errors
    /// If T is not square or alpha of another length, a diagonal entry is not negative, another entry
    /// is negative, a row sums to more than 0, the end is not reached from some phase, or alpha does
    /// not sum to 1.
    pub fn from_generator(initial: &[f64], generator: &[Vec<f64>]) -> Result<Self, LawError> {
        let m = initial.len();
        if generator.len() != m || generator.iter().any(|row| row.len() != m) {
            return Err(LawError::Shape(format!("{m} initial probabilities need a generator of {m} by {m}")));
        }
        let mut exit = Vec::with_capacity(m);
        for (i, row) in generator.iter().enumerate() {
            let out = -row[i];
            if !(out > 0.0 && out.is_finite()) {
                return Err(LawError::Rate { phase: i + 1, rate: out });
            }
            let moves: f64 = row.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, r)| r).sum();
            let rest = out - moves;
            if rest < -SLACK * out {
                return Err(LawError::Shape(format!("row {} of the generator sums to more than 0", i + 1)));
            }
            exit.push(if rest.abs() <= SLACK * out { 0.0 } else { rest });
        }
        Self::general(initial.to_vec(), generator.to_vec(), exit)
    }
}
