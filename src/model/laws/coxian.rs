//! The Coxian law.

use super::super::{LawError, PhaseType};

impl PhaseType {
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
}
