//! Laws fitted to measured service times.

use super::super::{LawError, PhaseType};
use super::search;

/// Measured service times, in increasing order.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    times: Vec<f64>,
    logs: Vec<f64>,
    mean: f64,
}

#[allow(clippy::cast_precision_loss)]
impl Sample {
    /// Takes service times in any order.
    ///
    /// # Errors
    /// If there are fewer than two, one is negative or not finite, or all are zero.
    pub fn new(mut times: Vec<f64>) -> Result<Self, LawError> {
        if times.len() < 2 {
            return Err(LawError::Shape(format!(
                "a fit needs at least 2 service times, not {}",
                times.len()
            )));
        }
        if let Some(&value) = times.iter().find(|t| !(t.is_finite() && **t >= 0.0)) {
            let allowed = "0 or positive, and finite";
            return Err(LawError::Parameter { name: "a service time", value, allowed });
        }
        times.sort_by(f64::total_cmp);
        let logs = times.iter().map(|t| t.ln()).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        if !(mean > 0.0 && mean.is_finite()) {
            return Err(LawError::Shape(format!("the mean of the service times is {mean}")));
        }
        Ok(Self { times, logs, mean })
    }

    /// The service times, in increasing order.
    #[must_use]
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Their mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Their k-th moment, in units of time to the k.
    #[must_use]
    pub fn moment(&self, k: i32) -> f64 {
        self.times.iter().map(|t| t.powi(k)).sum::<f64>() / self.times.len() as f64
    }

    /// Variance (divided by the number of times) over mean squared.
    #[must_use]
    pub fn scv(&self) -> f64 {
        let squares = self.times.iter().map(|t| (t / self.mean - 1.0).powi(2)).sum::<f64>();
        squares / self.times.len() as f64
    }

    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    /// Times with their logarithms.
    pub(super) fn iter(&self) -> impl Iterator<Item = (f64, f64)> {
        self.times.iter().copied().zip(self.logs.iter().copied())
    }

    /// At most `most` of the times, evenly spread over their order.
    pub(super) fn thinned(&self, most: usize) -> Self {
        if self.len() <= most {
            return self.clone();
        }
        let times: Vec<f64> = (0..most).map(|i| self.times[(2 * i + 1) * self.len() / (2 * most)]).collect();
        Self::new(times).unwrap_or_else(|_| self.clone())
    }
}

/// A family of laws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// One rate.
    Exponential,
    /// Equal stages.
    Erlang,
    /// A mixture of exponentials.
    Hyperexponential,
    /// A mixture of Erlang laws.
    HyperErlang,
    /// Coxian with two phases.
    Coxian2,
    /// The law of `moments` with the sample's mean and SCV; not a maximum of the likelihood.
    Moments,
}

impl Family {
    /// Its name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Erlang => "Erlang",
            Self::Hyperexponential => "hyperexponential",
            Self::HyperErlang => "hyper-Erlang",
            Self::Coxian2 => "Coxian-2",
            Self::Moments => "moments",
        }
    }
}

/// The parameters of a fitted law, as the model file writes them.
#[derive(Debug, Clone, PartialEq)]
pub enum Fitted {
    /// `exponential`.
    Exponential {
        /// Per unit of time.
        rate: f64,
    },
    /// `erlang`.
    Erlang {
        /// How many.
        stages: usize,
        /// Of each stage.
        rate: f64,
    },
    /// `hyperexponential`.
    Hyperexponential {
        /// Of each branch.
        probabilities: Vec<f64>,
        /// Of each branch.
        rates: Vec<f64>,
    },
    /// A `phase-type` law whose phases are those of the branches, one branch after the other.
    HyperErlang {
        /// Of each branch.
        probabilities: Vec<f64>,
        /// Of each branch.
        stages: Vec<usize>,
        /// Of each stage of a branch.
        rates: Vec<f64>,
    },
    /// `coxian`.
    Coxian {
        /// Of each phase.
        rates: Vec<f64>,
        /// Probability to go on after each phase but the last.
        continuation: Vec<f64>,
    },
    /// `moments`.
    Moments {
        /// In units of time.
        mean: f64,
        /// Squared coefficient of variation.
        scv: f64,
    },
}

/// A law fitted to data.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFit {
    /// Which family.
    pub family: Family,
    /// Its parameters.
    pub fitted: Fitted,
    /// The law.
    pub law: PhaseType,
    /// Log-likelihood of the data.
    pub log_likelihood: f64,
    /// Parameters that were fitted, numbers of stages included.
    pub parameters: usize,
    /// Bayesian information criterion, parameters times ln N minus twice the log-likelihood: the
    /// smaller, the better.
    pub bic: f64,
}

impl DataFit {
    /// The best law of every family, in the order of [`Family`].
    ///
    /// # Errors
    /// If a fitted law cannot be formed, which means that the data span more than a double can.
    pub fn all(sample: &Sample) -> Result<Vec<Self>, LawError> {
        search::all(sample)
    }

    /// Of the fits by maximum likelihood the one with the smallest BIC; on a tie the first.
    #[must_use]
    pub fn chosen(fits: &[Self]) -> Option<&Self> {
        let likely = fits.iter().filter(|f| f.family != Family::Moments && f.bic.is_finite());
        likely.min_by(|a, b| a.bic.total_cmp(&b.bic))
    }

    #[allow(clippy::cast_precision_loss)]
    pub(super) fn new(
        sample: &Sample,
        family: Family,
        fitted: Fitted,
        law: PhaseType,
        log_likelihood: f64,
        parameters: usize,
    ) -> Self {
        let bic = parameters as f64 * (sample.len() as f64).ln() - 2.0 * log_likelihood;
        Self { family, fitted, law, log_likelihood, parameters, bic }
    }
}
