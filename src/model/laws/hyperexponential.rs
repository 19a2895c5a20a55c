//! The hyperexponential law, as a mixture and as a Coxian law.

use super::super::{LawError, PhaseType};

impl PhaseType {
    /// Hyperexponential: exponential with rate `rates[m]` with probability `probabilities[m]`.
    ///
    /// # Errors
    /// If the lists differ in length, the probabilities do not sum to 1, or a rate is not positive.
    pub fn hyperexponential(probabilities: &[f64], rates: &[f64]) -> Result<Self, LawError> {
        let m = rates.len();
        Self::general(probabilities.to_vec(), vec![vec![0.0; m]; m], rates.to_vec())
    }

    /// The same law as a Coxian law with as many phases.
    ///
    /// An exponential time of rate g is one of a larger rate G, followed with probability 1 - g/G by
    /// another of rate g: all branches can share the fastest phase, all but one the next, and so on
    /// (A. Cumani, Microelectronics and Reliability 22, 1982). The phases change their meaning.
    ///
    /// # Errors
    /// As [`PhaseType::hyperexponential`].
    pub fn hyperexponential_as_coxian(probabilities: &[f64], rates: &[f64]) -> Result<Self, LawError> {
        Self::hyperexponential(probabilities, rates)?;
        let mut branches: Vec<(f64, f64)> =
            rates.iter().copied().zip(probabilities.iter().copied()).filter(|b| b.1 > 0.0).collect();
        branches.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut continuation = Vec::with_capacity(branches.len());
        for m in 0..branches.len() - 1 {
            let fast = branches[m].0;
            let before: f64 = branches[m..].iter().map(|b| b.1).sum();
            for branch in &mut branches[m..] {
                branch.1 *= (fast - branch.0) / fast;
            }
            let after: f64 = branches[m + 1..].iter().map(|b| b.1).sum();
            continuation.push(if before > 0.0 { (after / before).min(1.0) } else { 0.0 });
        }
        Self::coxian(&branches.iter().map(|b| b.0).collect::<Vec<_>>(), &continuation)
    }
}
