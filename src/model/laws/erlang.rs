//! The Erlang law.

use super::super::{LawError, PhaseType};

impl PhaseType {
    /// Erlang: `stages` exponential stages of the same rate, one after the other. Its mean is
    /// stages / rate and its SCV 1 / stages, the least possible with so many phases.
    ///
    /// # Errors
    /// If there is no stage, there are more than [`PhaseType::MOST_PHASES`], or the rate is not
    /// positive and finite.
    pub fn erlang(stages: usize, rate: f64) -> Result<Self, LawError> {
        if stages == 0 || stages > Self::MOST_PHASES {
            return Err(LawError::Shape(format!(
                "an Erlang law needs 1 to {} stages, not {stages}",
                Self::MOST_PHASES
            )));
        }
        Self::coxian(&vec![rate; stages], &vec![1.0; stages - 1])
    }
}
