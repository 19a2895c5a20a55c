//! Laws fitted to measured service times.

use super::super::{LawError, PhaseType};
use super::em::{self, Branch, Coxian2};
use super::moments::MomentFit;
use statrs::function::gamma::ln_gamma;

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
    fn thinned(&self, most: usize) -> Self {
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
        let mut fits = vec![exponential(sample)?, erlang(sample)?];
        fits.extend(best(sample, Family::Hyperexponential)?);
        fits.extend(best(sample, Family::HyperErlang)?);
        fits.push(coxian2(sample)?);
        fits.extend(moments(sample)?);
        Ok(fits)
    }

    /// Of the fits by maximum likelihood the one with the smallest BIC; on a tie the first.
    #[must_use]
    pub fn chosen(fits: &[Self]) -> Option<&Self> {
        let likely = fits.iter().filter(|f| f.family != Family::Moments && f.bic.is_finite());
        likely.min_by(|a, b| a.bic.total_cmp(&b.bic))
    }

    #[allow(clippy::cast_precision_loss)]
    fn new(
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

fn exponential(sample: &Sample) -> Result<DataFit, LawError> {
    let rate = 1.0 / sample.mean;
    let branch = Branch { probability: 1.0, stages: 1, rate };
    let likelihood = em::hyper_erlang_likelihood(sample, &[branch]);
    let law = PhaseType::exponential(rate)?;
    Ok(DataFit::new(sample, Family::Exponential, Fitted::Exponential { rate }, law, likelihood, 1))
}

/// For each number of stages the best rate is stages over mean.
#[allow(clippy::cast_precision_loss)]
fn erlang(sample: &Sample) -> Result<DataFit, LawError> {
    /// More stages than this are a deterministic time in all but name.
    const MOST_STAGES: usize = 100;
    let count = sample.len() as f64;
    let logs: f64 = sample.logs.iter().sum();
    let likelihood = |stages: usize| {
        let k = stages as f64;
        let powers = if stages == 1 { 0.0 } else { (k - 1.0) * logs };
        count * (k * (k / sample.mean).ln() - ln_gamma(k) - k) + powers
    };
    let better = |a: usize, b: usize| if likelihood(b) > likelihood(a) { b } else { a };
    let stages = (1..=MOST_STAGES).fold(1, better);
    let rate = stages as f64 / sample.mean;
    let law = PhaseType::erlang(stages, rate)?;
    Ok(DataFit::new(sample, Family::Erlang, Fitted::Erlang { stages, rate }, law, likelihood(stages), 2))
}

/// Numbers of stages that are tried, in increasing order.
fn settings(family: Family) -> Vec<Vec<usize>> {
    /// Stages in all.
    const MOST: usize = 10;
    if family == Family::Hyperexponential {
        return vec![vec![1, 1], vec![1, 1, 1]];
    }
    let mut list = Vec::new();
    for a in 1..MOST {
        for b in a.max(2)..=MOST.saturating_sub(a) {
            list.push(vec![a, b]);
            list.extend((b..=MOST.saturating_sub(a + b)).map(|c| vec![a, b, c]));
        }
    }
    list
}

/// Mixtures of Erlang laws: EM from several starts on a part of the data, then on all data for those
/// that look best.
fn best(sample: &Sample, family: Family) -> Result<Option<DataFit>, LawError> {
    const SCREENED: usize = 400;
    const FINALS: usize = 3;
    let part = sample.thinned(SCREENED);
    let mut tried: Vec<(f64, Vec<Branch>)> = Vec::new();
    for stages in settings(family) {
        for mut branches in starts(&part, &stages) {
            let likelihood = em::hyper_erlang(&part, &mut branches, 60);
            tried.push((likelihood, branches));
        }
    }
    tried.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut found: Option<DataFit> = None;
    for (_, mut branches) in tried.into_iter().filter(|t| t.0.is_finite()).take(FINALS) {
        let likelihood = em::hyper_erlang(sample, &mut branches, 2000);
        branches.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        let fit = mixture(sample, family, &branches, likelihood)?;
        if found.as_ref().is_none_or(|f| fit.bic < f.bic) {
            found = Some(fit);
        }
    }
    Ok(found)
}

fn mixture(
    sample: &Sample,
    family: Family,
    branches: &[Branch],
    likelihood: f64,
) -> Result<DataFit, LawError> {
    let probabilities: Vec<f64> = branches.iter().map(|b| b.probability).collect();
    let rates: Vec<f64> = branches.iter().map(|b| b.rate).collect();
    let stages: Vec<usize> = branches.iter().map(|b| b.stages).collect();
    let law = PhaseType::hyper_erlang(&probabilities, &stages, &rates)?;
    let (fitted, parameters) = if family == Family::Hyperexponential {
        (Fitted::Hyperexponential { probabilities, rates }, 2 * branches.len() - 1)
    } else {
        (Fitted::HyperErlang { probabilities, stages, rates }, 3 * branches.len() - 1)
    };
    Ok(DataFit::new(sample, family, fitted, law, likelihood, parameters))
}

/// Each branch starts from the mean of a part of the ordered times: short times to the first branch,
/// or to the last.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn starts(sample: &Sample, stages: &[usize]) -> Vec<Vec<Branch>> {
    let cuts: &[&[f64]] = if stages.len() == 2 { &[&[0.5], &[0.9]] } else { &[&[0.33, 0.67], &[0.6, 0.95]] };
    let mut orders = vec![stages.to_vec()];
    if stages.first() != stages.last() {
        orders.push(stages.iter().rev().copied().collect());
    }
    let count = sample.len();
    let mut list = Vec::new();
    for order in &orders {
        for cut in cuts {
            let ends = cut.iter().chain(std::iter::once(&1.0));
            let mut from = 0;
            let mut branches = Vec::new();
            for (&stages, end) in order.iter().zip(ends) {
                let to = ((end * count as f64) as usize).clamp((from + 1).min(count), count);
                let times = &sample.times[from.min(count - 1)..to];
                let mean = (times.iter().sum::<f64>() / times.len() as f64).max(1e-5 * sample.mean);
                let probability = times.len() as f64 / count as f64;
                branches.push(Branch { probability, stages, rate: stages as f64 / mean });
                from = to;
            }
            list.push(branches);
        }
    }
    list
}

/// Coxian with two phases: EM from several starts.
fn coxian2(sample: &Sample) -> Result<DataFit, LawError> {
    let (mean, scv) = (sample.mean, sample.scv().max(0.5));
    let mut starts = vec![
        Coxian2 { rates: [2.0 / mean, 1.0 / (scv * mean)], go_on: 0.5 / scv },
        Coxian2 { rates: [3.0 / mean, 1.5 / mean], go_on: 0.9 },
        Coxian2 { rates: [1.5 / mean, 3.0 / mean], go_on: 0.9 },
        Coxian2 { rates: [4.0 / mean, 0.5 / mean], go_on: 0.3 },
    ];
    if scv > 1.0 {
        let root = ((scv - 1.0) / (scv + 1.0)).sqrt();
        let (fast, slow) = ((1.0 + root) / mean, (1.0 - root) / mean);
        starts.push(Coxian2 { rates: [fast, slow], go_on: 0.5 * (1.0 - root) * (1.0 - slow / fast) });
    }
    let part = sample.thinned(400);
    let tried = starts.into_iter().map(|s| s.improved(&part, 300));
    let start = tried.map(|s| (s.likelihood(&part), s)).max_by(|a, b| a.0.total_cmp(&b.0));
    let start = start.map_or(Coxian2 { rates: [2.0 / mean, 2.0 / mean], go_on: 0.5 }, |(_, s)| s);
    let law = start.improved(sample, 3000);
    let (rates, continuation) = (law.rates.to_vec(), vec![law.go_on]);
    let phases = PhaseType::coxian(&rates, &continuation)?;
    let fitted = Fitted::Coxian { rates, continuation };
    Ok(DataFit::new(sample, Family::Coxian2, fitted, phases, law.likelihood(sample), 3))
}

/// The law of the sample's mean and SCV, if the SCV is not too small for one.
fn moments(sample: &Sample) -> Result<Option<DataFit>, LawError> {
    let (mean, scv) = (sample.mean, sample.scv());
    if scv < PhaseType::LEAST_SCV {
        return Ok(None);
    }
    let (law, which) = PhaseType::from_moments(mean, scv)?;
    let rate = law.rate(0);
    let likelihood = match which {
        MomentFit::Coxian2 => {
            let go_on = law.moves()[0][1] / rate;
            Coxian2 { rates: [rate, law.rate(1)], go_on }.likelihood(sample)
        }
        MomentFit::MixedErlang { stages } => {
            let short = law.exit()[stages - 2] / rate;
            let branches = [(short, stages - 1), (1.0 - short, stages)];
            let branches = branches.map(|(probability, stages)| Branch { probability, stages, rate });
            em::hyper_erlang_likelihood(sample, &branches)
        }
        MomentFit::Exponential | MomentFit::Hyperexponential => {
            let branches = (0..law.phases()).map(|m| (law.initial()[m], law.rate(m)));
            let branches: Vec<Branch> =
                branches.map(|(probability, rate)| Branch { probability, stages: 1, rate }).collect();
            em::hyper_erlang_likelihood(sample, &branches)
        }
    };
    Ok(Some(DataFit::new(sample, Family::Moments, Fitted::Moments { mean, scv }, law, likelihood, 2)))
}
