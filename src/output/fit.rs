//! What `fit` found, for people, programs and model files.

use super::table::{Table, number};
use crate::model::{DataFit, Fitted, Sample};
use serde::Serialize;

/// Laws fitted to service times.
#[derive(Debug, Clone, Serialize)]
pub struct FitDocument {
    /// The times.
    pub data: DataPart,
    /// What reproduces the result.
    pub run: FitRun,
    /// One for each family.
    pub fits: Vec<FitPart>,
    /// The family with the smallest BIC among those fitted by maximum likelihood.
    pub chosen: String,
    /// Its law as a line of a model file.
    pub toml: String,
}

/// The service times in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct DataPart {
    /// The file.
    pub file: String,
    /// How many.
    pub times: usize,
    /// Their mean.
    pub mean: f64,
    /// Variance over mean squared.
    pub scv: f64,
    /// First, second and third moment.
    pub moments: [f64; 3],
    /// The smallest, the median and the largest.
    pub range: [f64; 3],
}

/// Which program, called how.
#[derive(Debug, Clone, Serialize)]
pub struct FitRun {
    /// Version of the program.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
}

/// One fitted law.
#[derive(Debug, Clone, Serialize)]
pub struct FitPart {
    /// Its family.
    pub family: String,
    /// Log-likelihood of the data.
    pub log_likelihood: f64,
    /// Parameters that were fitted.
    pub parameters: usize,
    /// Bayesian information criterion.
    pub bic: f64,
    /// Mean of the law.
    pub mean: f64,
    /// Its SCV.
    pub scv: f64,
    /// Its number of phases.
    pub phases: usize,
    /// The law as a line of a model file.
    pub toml: String,
}

impl FitDocument {
    /// From the fits of `sample`, which was read from `file`.
    #[must_use]
    pub fn new(file: String, sample: &Sample, fits: &[DataFit], chosen: &DataFit, run: FitRun) -> Self {
        let times = sample.times();
        let at = |i: usize| times.get(i).copied().unwrap_or(f64::NAN);
        Self {
            data: DataPart {
                file,
                times: times.len(),
                mean: sample.mean(),
                scv: sample.scv(),
                moments: [1, 2, 3].map(|k| sample.moment(k)),
                range: [at(0), at(times.len() / 2), at(times.len().saturating_sub(1))],
            },
            run,
            fits: fits.iter().map(FitPart::new).collect(),
            chosen: chosen.family.label().into(),
            toml: toml(&chosen.fitted),
        }
    }

    /// For people.
    #[must_use]
    pub fn table(&self) -> String {
        let d = &self.data;
        let [least, median, largest] = d.range.map(number);
        let [_, second, third] = d.moments.map(number);
        let mut text = format!("{}: {} service times\n", d.file, d.times);
        text += &format!("  mean {}, SCV {}\n", number(d.mean), number(d.scv));
        text += &format!("  second moment {second}, third moment {third}\n");
        text += &format!("  smallest {least}, median {median}, largest {largest}\n\n");
        let mut table =
            Table::new(["law", "log-likelihood", "parameters", "BIC", "mean", "SCV", "phases", ""]);
        for f in &self.fits {
            let mark = if f.family == self.chosen { "chosen" } else { "" };
            table.row([
                f.family.clone(),
                format!("{:.3}", f.log_likelihood),
                f.parameters.to_string(),
                format!("{:.3}", f.bic),
                number(f.mean),
                number(f.scv),
                f.phases.to_string(),
                mark.into(),
            ]);
        }
        text += &table.render();
        text +=
            "\nAll but `moments` are fitted by maximum likelihood; of those, the smallest BIC is chosen.\n";
        text + &format!("For the model file:\n\n{}\n", self.toml)
    }

    /// One law a row.
    ///
    /// # Errors
    /// If a record cannot be written to memory, which does not happen.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut rows = csv::Writer::from_writer(Vec::new());
        rows.write_record([
            "law",
            "log_likelihood",
            "parameters",
            "bic",
            "mean",
            "scv",
            "phases",
            "chosen",
            "toml",
        ])?;
        for f in &self.fits {
            rows.write_record([
                f.family.as_str(),
                &f.log_likelihood.to_string(),
                &f.parameters.to_string(),
                &f.bic.to_string(),
                &f.mean.to_string(),
                &f.scv.to_string(),
                &f.phases.to_string(),
                if f.family == self.chosen { "true" } else { "false" },
                &f.toml,
            ])?;
        }
        let bytes = rows.into_inner().map_err(|e| e.into_error())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl FitPart {
    fn new(fit: &DataFit) -> Self {
        Self {
            family: fit.family.label().into(),
            log_likelihood: fit.log_likelihood,
            parameters: fit.parameters,
            bic: fit.bic,
            mean: fit.law.mean(),
            scv: fit.law.scv(),
            phases: fit.law.phases(),
            toml: toml(&fit.fitted),
        }
    }
}

/// A law as a line of a model file; read back, it has the same bits.
#[must_use]
pub fn toml(law: &Fitted) -> String {
    match law {
        Fitted::Exponential { rate } => format!("service.exponential.rate = {rate:?}"),
        Fitted::Erlang { stages, rate } => {
            format!("service.erlang = {{ stages = {stages}, rate = {rate:?} }}")
        }
        Fitted::Hyperexponential { probabilities, rates } => {
            format!("service.hyperexponential = {{ probabilities = {probabilities:?}, rates = {rates:?} }}")
        }
        Fitted::Coxian { rates, continuation } => {
            format!("service.coxian = {{ rates = {rates:?}, continue = {continuation:?} }}")
        }
        Fitted::Moments { mean, scv } => {
            format!("service.moments = {{ mean = {mean:?}, scv = {scv:?} }}")
        }
        Fitted::HyperErlang { probabilities, stages, rates } => {
            let total: usize = stages.iter().sum();
            let (mut initial, mut generator) = (Vec::new(), Vec::new());
            for ((&p, &count), &rate) in probabilities.iter().zip(stages).zip(rates) {
                for stage in 0..count {
                    let mut row = vec![0.0; total];
                    row[initial.len()] = -rate;
                    if stage + 1 < count {
                        row[initial.len() + 1] = rate;
                    }
                    initial.push(if stage == 0 { p } else { 0.0 });
                    generator.push(row);
                }
            }
            format!("service.phase-type = {{ initial = {initial:?}, generator = {generator:?} }}")
        }
    }
}
