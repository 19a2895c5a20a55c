//! Lists of numbers in service laws: rates, probabilities, rows of a generator.

use toml::Spanned;

use super::super::error::{SpecError, quote};
use super::super::service::NumbersFile;
use super::pools::{SUM_MENDED, of, rounded};
use super::{Check, RATE, RATES};
use crate::model::PhaseType;

impl Check<'_> {
    /// One number for each phase, and not too many.
    pub(super) fn phases<T>(&self, list: &Spanned<Vec<T>>, key: &str, pool: &str) -> Result<(), SpecError> {
        let (count, most) = (list.get_ref().len(), PhaseType::MOST_PHASES);
        if count == 0 {
            let error = self.value(&list.span(), format!("{} is empty", of(key, pool)));
            return Err(error.allowed("must have an entry for each phase, at least one"));
        }
        if count > most {
            let error = self.value(&list.span(), format!("{} has {count} entries", of(key, pool)));
            return Err(error.allowed(format!("a law may have at most {most} phases")));
        }
        Ok(())
    }

    /// Rates of phases.
    pub(super) fn rates(&self, list: &NumbersFile, pool: &str) -> Result<Vec<f64>, SpecError> {
        self.phases(list, "`rates`", pool)?;
        let what = format!("a rate of pool {}", quote(pool));
        let allowed = format!("must be {RATE}");
        list.get_ref().iter().map(|x| self.real(x, &what, &allowed, |x| RATES.contains(&x))).collect()
    }

    /// Numbers from 0 to 1.
    pub(super) fn chances(&self, list: &NumbersFile, what: &str, pool: &str) -> Result<Vec<f64>, SpecError> {
        let what = format!("{what} of pool {}", quote(pool));
        let ok = |x| (0.0..=1.0).contains(&x);
        list.get_ref().iter().map(|x| self.real(x, &what, "must be from 0 to 1", ok)).collect()
    }

    /// Probabilities that sum to 1.
    pub(super) fn probabilities(
        &self,
        list: &NumbersFile,
        key: &str,
        pool: &str,
    ) -> Result<Vec<f64>, SpecError> {
        self.phases(list, key, pool)?;
        let chances = self.chances(list, &format!("an entry of {key}"), pool)?;
        let sum: f64 = chances.iter().sum();
        if (sum - 1.0).abs() > SUM_MENDED {
            let title = format!("{} sum to {}", of(key, pool), rounded(sum));
            let error = self.value(&list.span(), title).allowed("the probabilities must sum to 1");
            return Err(error.help("they may be off by 1e-9, and are then divided by their sum"));
        }
        Ok(chances)
    }

    /// The rows of a generator of `phases` phases.
    pub(super) fn generator(
        &self,
        rows: &Spanned<Vec<NumbersFile>>,
        phases: usize,
        pool: &str,
    ) -> Result<Vec<Vec<f64>>, SpecError> {
        let name = of("`generator`", pool);
        if rows.get_ref().len() != phases {
            let count = rows.get_ref().len();
            let title = format!("{name} has height {count} and `initial` length {phases}");
            let error = self.value(&rows.span(), title);
            return Err(error.allowed("must have a row and a column for each phase"));
        }
        rows.get_ref().iter().enumerate().map(|(i, row)| self.row(row, i, phases, pool)).collect()
    }

    fn row(&self, row: &NumbersFile, i: usize, phases: usize, pool: &str) -> Result<Vec<f64>, SpecError> {
        let name = format!("row {} of the generator of pool {}", i + 1, quote(pool));
        let cells = row.get_ref();
        if cells.len() != phases {
            let title = format!("{name} has length {}", cells.len());
            return Err(self
                .value(&row.span(), title)
                .allowed(format!("must have length {phases}, an entry for each phase")));
        }
        let mut entries = Vec::with_capacity(phases);
        for (j, x) in cells.iter().enumerate() {
            let what = if i == j { "the diagonal" } else { "an entry off the diagonal" };
            let what = format!("{what} of {name}");
            entries.push(if i == j {
                let allowed = "must be negative: minus the total rate out of the phase, 1e-100 to 1e100";
                self.real(x, &what, allowed, |x| RATES.contains(&-x))?
            } else {
                let allowed = format!("must be a rate: 0, or {RATE}");
                self.real(x, &what, &allowed, |x| x == 0.0 || RATES.contains(&x))?
            });
        }
        let (out, sum) = (-entries[i], entries.iter().sum::<f64>());
        if sum > 1e-12 * out {
            let error = self.value(&row.span(), format!("{name} sums to {}", rounded(sum)));
            return Err(error
                .allowed("must sum to 0 or less")
                .help("what a row lacks to 0 is the rate at which its phase ends the service"));
        }
        Ok(entries)
    }
}
