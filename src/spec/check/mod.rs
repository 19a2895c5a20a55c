//! From the file's types to a system: every value is looked at once, here.

mod expect;
mod policy;
mod pools;
mod routers;
mod service;
mod settings;
mod vectors;

pub use settings::LARGEST_SIZE;

use std::ops::RangeInclusive;
use std::path::Path;

use toml::Spanned;

use super::System;
use super::canonical;
use super::error::{Problem, SpecError, quote};
use super::file::{ArrivalsFile, File};
use super::number::Number;
use super::place::{Sources, Span};
use super::source::Source;
use crate::model::{Model, Sample};
use pools::Checked;

/// Rates and means that leave room for their products and ratios in a double.
const RATES: RangeInclusive<f64> = 1e-100..=1e100;
/// How [`RATES`] reads.
const RATE: &str = "from 1e-100 to 1e100";

/// The checked system of the model in `source`.
///
/// # Errors
/// The first value that is not allowed.
pub(super) fn system(
    file: File,
    sources: &Sources,
    source: &Source,
    hash: String,
) -> Result<System, SpecError> {
    let check = Check { sources, folder: source.folder() };
    let arrival_rate = check.arrivals(&file.arrivals)?;
    let Checked { pools, services, samples } = check.pools(&file.pools)?;
    let hash = canonical::with_data(hash, samples.iter().map(Sample::times));
    let policy = check.policy(&file.policy, file.pools.get_ref(), &pools)?;
    let mut fluid = check.fluid(&file.fluid, file.pools.get_ref(), &pools)?;
    let finite = check.finite(&file.finite)?;
    let expect = check.expectations(file.expect, &pools)?;
    let name = check.name(file.name, source.stem())?;
    let description = file.description.unwrap_or_default();
    let model = Model { name, description, arrival_rate, pools, policy };
    if let Some(messages) = &file.fluid.messages {
        fluid.initial = check.start_messages(messages, &model, &fluid.initial)?;
    }
    Ok(System { model, services, fluid, finite, expect, taken_at: None, hash })
}

/// Checks values and knows where they were written.
struct Check<'a> {
    sources: &'a Sources,
    /// What the paths of data files are relative to.
    folder: &'a Path,
}

impl Check<'_> {
    fn arrivals(&self, arrivals: &ArrivalsFile) -> Result<f64, SpecError> {
        let allowed = format!("must be 0, or {RATE}");
        self.real(&arrivals.rate, "`arrivals.rate`", &allowed, |x| x == 0.0 || RATES.contains(&x))
    }

    fn name(&self, name: Option<Spanned<String>>, stem: String) -> Result<String, SpecError> {
        let Some(name) = name else { return Ok(stem) };
        let text = name.get_ref();
        if text.trim().is_empty() || text.contains(char::is_control) {
            let title = format!("the model's name is {}", quote(text));
            return Err(self.value(&name.span(), title).allowed("must be one line of text"));
        }
        Ok(name.into_inner())
    }

    /// A number for which `ok` holds; NaN and infinities never pass.
    fn real(
        &self,
        x: &Spanned<Number>,
        what: &str,
        allowed: &str,
        ok: impl Fn(f64) -> bool,
    ) -> Result<f64, SpecError> {
        let value = x.get_ref().real();
        if value.is_finite() && ok(value) {
            // A negative zero is a zero.
            return Ok(value + 0.0);
        }
        Err(self.value(&x.span(), format!("{what} is {}", x.get_ref())).allowed(allowed))
    }

    /// A whole number in a range.
    fn whole<T: TryFrom<i128>>(
        &self,
        x: &Spanned<Number>,
        what: &str,
        range: RangeInclusive<i128>,
    ) -> Result<T, SpecError> {
        let value = x.get_ref().whole().filter(|i| range.contains(i)).and_then(|i| T::try_from(i).ok());
        value.ok_or_else(|| {
            let (from, to) = range.into_inner();
            self.value(&x.span(), format!("{what} is {}", x.get_ref())).allowed(if from == to {
                format!("must be {from}")
            } else {
                format!("must be a whole number from {from} to {to}")
            })
        })
    }

    /// A value that is not allowed.
    fn value(&self, span: &Span, title: impl Into<String>) -> SpecError {
        self.fail(Problem::Value, span, title)
    }

    fn fail(&self, problem: Problem, span: &Span, title: impl Into<String>) -> SpecError {
        SpecError::new(problem, self.sources.file(), title).at(self.sources.place(span))
    }
}
