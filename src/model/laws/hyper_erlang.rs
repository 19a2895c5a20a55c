//! The hyper-Erlang law: a mixture of Erlang laws.

use super::super::{LawError, PhaseType};

impl PhaseType {
    /// Erlang of `stages[b]` stages of rate `rates[b]` with probability `probabilities[b]`.
    ///
    /// # Errors
    /// If the lists differ in length, the probabilities do not sum to 1, a branch has no stage, a rate
    /// is not positive and finite, or there are more than [`PhaseType::MOST_PHASES`] stages in all.
    pub fn hyper_erlang(probabilities: &[f64], stages: &[usize], rates: &[f64]) -> Result<Self, LawError> {
        if probabilities.len() != stages.len() || rates.len() != stages.len() {
            return Err(LawError::Shape("each branch needs a probability, its stages and a rate".into()));
        }
        let total = stages.iter().fold(0_usize, |sum, &s| sum.saturating_add(s));
        if stages.contains(&0) || total > Self::MOST_PHASES {
            return Err(LawError::Shape(format!(
                "each branch needs a stage, and all together at most {}",
                Self::MOST_PHASES
            )));
        }
        let (mut initial, mut exit) = (vec![0.0; total], vec![0.0; total]);
        let mut moves = vec![vec![0.0; total]; total];
        let mut first = 0;
        for ((&p, &count), &rate) in probabilities.iter().zip(stages).zip(rates) {
            let last = first + count - 1;
            initial[first] = p;
            for stage in first..last {
                moves[stage][stage + 1] = rate;
            }
            exit[last] = rate;
            first = last + 1;
        }
        Self::general(initial, moves, exit)
    }
}
