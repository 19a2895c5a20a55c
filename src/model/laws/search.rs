//! The search for the law of each family that fits data best.

use super::super::{LawError, PhaseType};
use super::data::{DataFit, Family, Fitted, Sample};
use super::em::{self, Branch, Coxian2};
use super::moments::MomentFit;
use statrs::function::gamma::ln_gamma;

/// Times that starts are tried on.
const SCREENED: usize = 400;

/// The best law of every family.
pub(super) fn all(sample: &Sample) -> Result<Vec<DataFit>, LawError> {
    let mut fits = vec![exponential(sample)?, erlang(sample)?];
    fits.extend(best(sample, Family::Hyperexponential)?);
    fits.extend(best(sample, Family::HyperErlang)?);
    fits.push(coxian2(sample)?);
    fits.extend(moments(sample)?);
    Ok(fits)
}

fn exponential(sample: &Sample) -> Result<DataFit, LawError> {
    let rate = 1.0 / sample.mean();
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
    let logs: f64 = sample.iter().map(|(_, log)| log).sum();
    let likelihood = |stages: usize| {
        let k = stages as f64;
        let powers = if stages == 1 { 0.0 } else { (k - 1.0) * logs };
        count * (k * (k / sample.mean()).ln() - ln_gamma(k) - k) + powers
    };
    let better = |a: usize, b: usize| if likelihood(b) > likelihood(a) { b } else { a };
    let stages = (1..=MOST_STAGES).fold(1, better);
    let rate = stages as f64 / sample.mean();
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
/// of each number of branches that look best.
fn best(sample: &Sample, family: Family) -> Result<Option<DataFit>, LawError> {
    const FINALS: usize = 2;
    let part = sample.thinned(SCREENED);
    let mut tried: Vec<(f64, Vec<Branch>)> = Vec::new();
    for stages in settings(family) {
        for mut branches in starts(&part, &stages) {
            let likelihood = em::hyper_erlang(&part, &mut branches, 60);
            tried.push((likelihood, branches));
        }
    }
    tried.sort_by(|a, b| b.0.total_cmp(&a.0));
    let of = |count| tried.iter().filter(move |t| t.1.len() == count && t.0.is_finite()).take(FINALS);
    let mut found: Option<DataFit> = None;
    for (_, start) in of(2).chain(of(3)) {
        let mut branches = start.clone();
        let likelihood = em::hyper_erlang(sample, &mut branches, most_steps(sample));
        branches.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        let fit = mixture(sample, family, &branches, likelihood)?;
        if found.as_ref().is_none_or(|f| fit.bic < f.bic) {
            found = Some(fit);
        }
    }
    Ok(found)
}

/// Steps of EM on all data: fewer for very many times, which would take minutes.
#[allow(clippy::cast_possible_truncation)]
fn most_steps(sample: &Sample) -> u32 {
    (200_000_000 / sample.len()).clamp(50, 2000) as u32
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
                let times = &sample.times()[from.min(count - 1)..to];
                let mean = (times.iter().sum::<f64>() / times.len() as f64).max(1e-5 * sample.mean());
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
    let (mean, scv) = (sample.mean(), sample.scv().max(0.5));
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
    let part = sample.thinned(SCREENED);
    let tried = starts.into_iter().map(|s| s.improved(&part, 300));
    let start = tried.map(|s| (s.likelihood(&part), s)).max_by(|a, b| a.0.total_cmp(&b.0));
    let start = start.map_or(Coxian2 { rates: [2.0 / mean, 2.0 / mean], go_on: 0.5 }, |(_, s)| s);
    let law = start.improved(sample, most_steps(sample));
    let (rates, continuation) = (law.rates.to_vec(), vec![law.go_on]);
    let phases = PhaseType::coxian(&rates, &continuation)?;
    let fitted = Fitted::Coxian { rates, continuation };
    Ok(DataFit::new(sample, Family::Coxian2, fitted, phases, law.likelihood(sample), 3))
}

/// The law of the sample's mean and SCV, if the SCV is not too small for one.
fn moments(sample: &Sample) -> Result<Option<DataFit>, LawError> {
    let (mean, scv) = (sample.mean(), sample.scv());
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
