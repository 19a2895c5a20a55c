//! `[expect]`: numbers that results are compared with, and the names they go by.

use std::collections::BTreeMap;

use toml::Spanned;

use super::super::Expectation;
use super::super::error::{Problem, SpecError, nearest, quote};
use super::super::file::ExpectFile;
use super::super::place::Span;
use super::Check;
use crate::model::{Measures, Pool, PoolMeasures};

/// Numbers about the fixed point itself.
const SPECTRAL: [&str; 2] = ["relaxation_time", "spectral_abscissa"];

impl Check<'_> {
    pub(super) fn expectations(
        &self,
        file: BTreeMap<Spanned<String>, ExpectFile>,
        pools: &[Pool],
    ) -> Result<Vec<Expectation>, SpecError> {
        let mut list = Vec::with_capacity(file.len());
        for (name, entry) in file {
            self.expected_name(&name, pools)?;
            let name = name.into_inner();
            let of = |key: &str| format!("`{key}` of {}", quote(&name));
            let value = self.real(&entry.value, &of("value"), "must be a finite number", |_| true)?;
            let allowed = "must be above 0 and finite";
            let tolerance = self.real(&entry.tolerance, &of("tolerance"), allowed, |x| x > 0.0)?;
            if entry.source.get_ref().trim().is_empty() {
                let error = self.value(&entry.source.span(), format!("{} is empty", of("source")));
                return Err(error.allowed("must say where the value comes from"));
            }
            list.push(Expectation { name, value, tolerance, source: entry.source.into_inner() });
        }
        Ok(list)
    }

    fn expected_name(&self, name: &Spanned<String>, pools: &[Pool]) -> Result<(), SpecError> {
        let (span, text) = (name.span(), name.get_ref().as_str());
        let words: Vec<&str> = text.split('.').collect();
        match words.as_slice() {
            ["x", pool, k] => {
                let pool = self.pool_named(pool, &span, pools)?;
                let level = counted(k).ok_or_else(|| {
                    self.unknown(&span, text).allowed("must end in a level, a whole number from 1")
                })?;
                match pool.buffer {
                    Some(b) if level > u64::from(b) => Err(self
                        .fail(Problem::Key, &span, format!("pool {} has no level {level}", quote(&pool.name)))
                        .allowed(format!("its buffer has {b}"))),
                    _ => Ok(()),
                }
            }
            ["event", i, "time"] if counted(i).is_some() => Ok(()),
            [measure] if Measures::NAMES.contains(measure) || SPECTRAL.contains(measure) => Ok(()),
            [measure, pool] if PoolMeasures::NAMES.contains(measure) => {
                self.pool_named(pool, &span, pools).map(|_| ())
            }
            [measure, _] if Measures::NAMES.contains(measure) => {
                let title = format!("{} is not measured per pool", quote(measure));
                let per_pool = PoolMeasures::NAMES.join(", ");
                Err(self.fail(Problem::Key, &span, title).allowed(format!("measured per pool: {per_pool}")))
            }
            _ => Err(self.misspelt(&span, text, &words)),
        }
    }

    fn pool_named<'p>(&self, name: &str, span: &Span, pools: &'p [Pool]) -> Result<&'p Pool, SpecError> {
        pools.iter().find(|p| p.name == name).ok_or_else(|| self.no_such_pool(span, name, pools))
    }

    fn misspelt(&self, span: &Span, text: &str, words: &[&str]) -> SpecError {
        let known = Measures::NAMES.into_iter().chain(SPECTRAL);
        let word = words.first().copied().unwrap_or_default();
        let suggestion = nearest(word, known).map(|near| match words {
            [_, rest @ ..] if !rest.is_empty() => format!("{near}.{}", rest.join(".")),
            _ => near.to_owned(),
        });
        self.unknown(span, text).allowed("not a result of the program").suggest(suggestion.as_deref())
    }

    fn unknown(&self, span: &Span, text: &str) -> SpecError {
        let measures = Measures::NAMES.join(", ");
        self.fail(Problem::Key, span, format!("there is no result {}", quote(text)))
            .help("results are named `x.POOL.K`, MEASURE, `MEASURE.POOL`, `event.I.time`, `relaxation_time`, `spectral_abscissa`")
            .help(format!("measures: {measures}"))
    }
}

/// A whole number from 1, written plainly.
fn counted(word: &str) -> Option<u64> {
    let plain = word.chars().all(|c| c.is_ascii_digit()) && !word.starts_with('0');
    if plain { word.parse().ok() } else { None }
}
