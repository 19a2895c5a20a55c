//! The exponential law.

use super::super::{LawError, PhaseType};

impl PhaseType {
    /// Exponential with the given rate.
    ///
    /// # Errors
    /// If the rate is not positive and finite.
    pub fn exponential(rate: f64) -> Result<Self, LawError> {
        Self::coxian(&[rate], &[])
    }
}
