//! A law with a given mean and squared coefficient of variation (SCV).

use super::super::{LawError, PhaseType};
use std::fmt;

/// Which law was taken for two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MomentFit {
    /// SCV 1.
    Exponential,
    /// SCV from 1/2 to 1: Coxian with two phases that take half of the mean each (R. Marie).
    Coxian2,
    /// SCV above 1: two branches that carry half of the mean each.
    Hyperexponential,
    /// SCV below 1/2: k - 1 or k stages of one rate.
    MixedErlang {
        /// k.
        stages: usize,
    },
}

impl fmt::Display for MomentFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exponential => f.write_str("exponential"),
            Self::Coxian2 => f.write_str("Coxian-2"),
            Self::Hyperexponential => f.write_str("hyperexponential with balanced means"),
            Self::MixedErlang { stages } => write!(f, "Erlang of {} or {stages} stages", stages - 1),
        }
    }
}

impl PhaseType {
    /// The least SCV that [`PhaseType::MOST_PHASES`] phases reach.
    pub const LEAST_SCV: f64 = 5e-4;

    /// A law with this mean and SCV, and which one it is. Both are met to rounding.
    ///
    /// # Errors
    /// If the mean is not positive and finite, or the SCV is below [`PhaseType::LEAST_SCV`] or not
    /// finite.
    pub fn from_moments(mean: f64, scv: f64) -> Result<(Self, MomentFit), LawError> {
        if !(mean > 0.0 && mean.is_finite()) {
            return Err(LawError::Parameter {
                name: "the mean",
                value: mean,
                allowed: "positive and finite",
            });
        }
        if !(scv >= Self::LEAST_SCV && scv.is_finite()) {
            return Err(LawError::Parameter {
                name: "the SCV",
                value: scv,
                allowed: "at least 1/2000 (a law of M phases has SCV 1/M or more) and finite",
            });
        }
        let (law, fit) = if scv == 1.0 {
            (Self::exponential(1.0)?, MomentFit::Exponential)
        } else if scv > 1.0 {
            // Both weights without cancellation: w + (1 - w) = 1, w (1 - w) = 1 / (2 (scv + 1)).
            let root = ((scv - 1.0) / (scv + 1.0)).sqrt();
            let (w, rest) = (0.5 * (1.0 + root), 1.0 / ((scv + 1.0) * (1.0 + root)));
            (Self::hyperexponential(&[w, rest], &[2.0 * w, 2.0 * rest])?, MomentFit::Hyperexponential)
        } else if scv >= 0.5 {
            (Self::coxian(&[2.0, 1.0 / scv], &[0.5 / scv])?, MomentFit::Coxian2)
        } else {
            mixed_erlang(scv)?
        };
        Ok((law.with_mean(mean)?, fit))
    }
}

/// Erlang of k - 1 stages with probability pi, of k otherwise, all of rate k - pi, where
/// 1/k <= scv <= 1/(k-1) (H. C. Tijms, Stochastic Models, 1994).
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn mixed_erlang(scv: f64) -> Result<(PhaseType, MomentFit), LawError> {
    // An SCV that was meant as 1/k may lie a rounding error to either side of it.
    let stages = (1.0 / scv - 1e-9).ceil() as usize;
    let k = stages as f64;
    let pi = ((k * scv - (k * (1.0 + scv - k * scv)).max(0.0).sqrt()) / (1.0 + scv)).clamp(0.0, 1.0);
    let mut continuation = vec![1.0; stages - 1];
    if let Some(last) = continuation.last_mut() {
        *last = 1.0 - pi;
    }
    let law = PhaseType::coxian(&vec![k - pi; stages], &continuation)?;
    Ok((law, MomentFit::MixedErlang { stages }))
}
