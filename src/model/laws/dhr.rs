//! Laws with a decreasing hazard rate (DHR): Lomax, gamma and Weibull, as mixtures of exponentials.
//!
//! All three are completely monotone: the law of an exponential time whose rate X is random. The
//! random rate is known in each case, and [`mixing`](super::mixing) replaces it by a few atoms.

use super::super::{LawError, PhaseType};
use super::mixing::{Atom, few_atoms};
use statrs::function::gamma::{checked_gamma_ur, ln_gamma};
use std::f64::consts::PI;

/// A law with a decreasing hazard rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decreasing {
    /// Survival (1 + t / scale)^-shape; finite mean for a shape above 1.
    Lomax {
        /// Tail exponent.
        shape: f64,
        /// In units of time.
        scale: f64,
    },
    /// Density proportional to t^(shape - 1) exp(-t / scale), shape below 1.
    Gamma {
        /// Number of "stages".
        shape: f64,
        /// In units of time.
        scale: f64,
    },
    /// Survival exp(-(t / scale)^shape), shape below 1.
    Weibull {
        /// Stretching exponent.
        shape: f64,
        /// In units of time.
        scale: f64,
    },
}

impl Decreasing {
    /// Phases of the mixture unless asked otherwise.
    pub const PHASES: usize = 16;
    /// Most phases of the mixture: more do not make it better in double precision.
    pub const MOST_PHASES: usize = 64;

    /// Mean, in units of time.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Lomax { shape, scale } => scale / (shape - 1.0),
            Self::Gamma { shape, scale } => scale * shape,
            Self::Weibull { shape, scale } => scale * ln_gamma(1.0 + 1.0 / shape).exp(),
        }
    }

    /// Survival function P(X > t).
    #[must_use]
    pub fn survival(&self, t: f64) -> f64 {
        if t <= 0.0 {
            return 1.0;
        }
        match *self {
            Self::Lomax { shape, scale } => (-shape * (t / scale).ln_1p()).exp(),
            Self::Gamma { shape, scale } => checked_gamma_ur(shape, t / scale).unwrap_or(f64::NAN),
            Self::Weibull { shape, scale } => (-(t / scale).powf(shape)).exp(),
        }
    }

    /// The range of shapes that are fitted, as words and as a test.
    #[must_use]
    pub fn shapes(&self) -> (&'static str, bool) {
        match *self {
            Self::Lomax { shape, .. } => {
                ("from 1.1 to 100; the mean is infinite for 1 or less", (1.1..=100.0).contains(&shape))
            }
            Self::Gamma { shape, .. } => (
                "at least 0.1 and below 1: the hazard rate decreases only for a shape below 1",
                (0.1..1.0).contains(&shape),
            ),
            Self::Weibull { shape, .. } => (
                "at least 0.2 and below 1: the hazard rate decreases only for a shape below 1",
                (0.2..1.0).contains(&shape),
            ),
        }
    }

    /// A hyperexponential law close to this one, of equal mean, and the largest distance of the two
    /// survival functions.
    ///
    /// # Errors
    /// If the shape is out of range, the scale is not positive and finite, or the number of phases is
    /// not from 2 to [`Decreasing::MOST_PHASES`].
    pub fn mixture(&self, phases: usize) -> Result<(PhaseType, f64), LawError> {
        let (Self::Lomax { shape, scale } | Self::Gamma { shape, scale } | Self::Weibull { shape, scale }) =
            *self;
        let (allowed, ok) = self.shapes();
        if !ok {
            return Err(LawError::Parameter { name: "the shape", value: shape, allowed });
        }
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(LawError::Parameter {
                name: "the scale",
                value: scale,
                allowed: "positive and finite",
            });
        }
        if !(2..=Self::MOST_PHASES).contains(&phases) {
            return Err(LawError::Shape(format!(
                "a mixture has 2 to {} phases, not {phases}",
                Self::MOST_PHASES
            )));
        }
        let unit = match self {
            Self::Lomax { .. } => Self::Lomax { shape, scale: 1.0 },
            Self::Gamma { .. } => Self::Gamma { shape, scale: 1.0 },
            Self::Weibull { .. } => Self::Weibull { shape, scale: 1.0 },
        };
        let mean = unit.mean();
        let mut atoms = match self {
            Self::Lomax { .. } => gamma_rates(shape),
            Self::Gamma { .. } => inverse_beta_rates(shape),
            Self::Weibull { .. } => stable_rates(shape),
        };
        atoms.iter_mut().for_each(|a| a.rate *= mean);
        let (law, distance) = few_atoms(&atoms, phases, |t| unit.survival(t * mean))?;
        Ok((law.with_mean(self.mean())?, distance))
    }
}

/// Values from `low` to `high` at most `step` apart, with their spacing.
fn grid(low: f64, high: f64, step: f64) -> (impl Iterator<Item = f64>, f64) {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let count = ((high - low) / step).ceil() as u32;
    let step = (high - low) / f64::from(count);
    ((0..=count).map(move |i| low + f64::from(i) * step), step)
}

/// Lomax of scale 1: the rate is Gamma(shape). Trapezoidal rule in the logarithm of the rate.
fn gamma_rates(shape: f64) -> Vec<Atom> {
    let width = shape.sqrt();
    let low = shape.ln() - (45.0 / (shape - 1.0)).max(12.0 / width);
    let (values, step) = grid(low, shape.ln() + 7.0, (0.3 / width).min(0.1));
    let log_norm = step.ln() - ln_gamma(shape);
    values.map(|y| Atom { rate: y.exp(), weight: (shape * y - y.exp() + log_norm).exp() }).collect()
}

/// Gamma of scale 1: the rate is 1 / V with V of law Beta(shape, 1 - shape). Trapezoidal rule in the
/// logit of V; what is left below is of rate 1.
fn inverse_beta_rates(shape: f64) -> Vec<Atom> {
    let (values, step) = grid((-45.0 / (1.0 - shape)).max(-45.0), 45.0 / shape, 0.1);
    let norm = step * (PI * shape).sin() / PI;
    let mut atoms: Vec<Atom> = values
        .map(|z| Atom {
            rate: 1.0 + z.exp(),
            weight: norm
                * if z > 0.0 {
                    (-shape * z).exp() / (1.0 + (-z).exp())
                } else {
                    ((1.0 - shape) * z).exp() / (1.0 + z.exp())
                },
        })
        .collect();
    let rest = 1.0 - atoms.iter().map(|a| a.weight).sum::<f64>();
    atoms.push(Atom { rate: 1.0, weight: rest.max(0.0) });
    atoms
}

/// Weibull of scale 1: the rate is positive stable of index k = shape. By M. Kanter (Annals of
/// Probability 3, 1975) it is
///
/// ```text
/// sin(k U) sin((1-k) U)^p sin(U)^(-1/k) E^-p,   p = (1-k)/k,
/// ```
///
/// with U uniform on (0, pi) and E exponential. Double exponential quadrature in U, trapezoidal rule
/// in the logarithm of E.
fn stable_rates(shape: f64) -> Vec<Atom> {
    let p = (1.0 - shape) / shape;
    let (angles, angle_step) = grid(-3.0, 3.0, 0.075);
    let angles: Vec<(f64, f64)> = angles
        .map(|x| {
            // The distances to both ends, so that neither sine loses its digits.
            let q = PI * x.sinh();
            let (u, rest) = (PI / (1.0 + (-q).exp()), PI / (1.0 + q.exp()));
            let weight = angle_step * x.cosh() * u * rest / PI;
            let sine = u.min(rest).sin();
            let log = (shape * u).sin().ln() + p * ((1.0 - shape) * u).sin().ln() - sine.ln() / shape;
            (log, weight)
        })
        .collect();
    let (logs, step) = grid(-40.0, 6.0, (0.5 / p).min(0.5));
    let mut atoms = Vec::new();
    for s in logs {
        let mass = step * (s - s.exp()).exp();
        for &(log, weight) in &angles {
            let atom = Atom { rate: (log - p * s).exp(), weight: mass * weight };
            // Neither its mass nor its part of the mean is seen.
            if atom.weight > 1e-16 || atom.weight > 1e-16 * atom.rate {
                atoms.push(atom);
            }
        }
    }
    atoms
}
