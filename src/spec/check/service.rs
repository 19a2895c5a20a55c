//! Service laws: from what is written to phases.

use toml::Spanned;

use super::super::data;
use super::super::error::{Problem, SpecError, quote};
use super::super::number::Number;
use super::super::place::Span;
use super::super::service::{
    CoxianFile, DataFile, DecreasingFile, ErlangFile, HyperexponentialFile, MomentsFile, PhaseTypeFile,
    ServiceFile,
};
use super::super::source::Source;
use super::super::{Fit, Service};
use super::pools::of;
use super::{Check, RATE, RATES};
use crate::model::{DataFit, Decreasing, LawError, PhaseType, Sample};

/// The largest SCV of `moments`.
const LARGEST_SCV: f64 = 1e6;

/// A law, where it comes from, and the data that were read for it.
pub(super) struct Made {
    pub(super) law: PhaseType,
    pub(super) service: Service,
    pub(super) sample: Option<Sample>,
}

impl Made {
    fn new(law: PhaseType, label: impl Into<String>, fit: Fit) -> Self {
        Self { law, service: Service { label: label.into(), fit }, sample: None }
    }
}

impl Check<'_> {
    pub(super) fn service(&self, service: &ServiceFile, pool: &str) -> Result<Made, SpecError> {
        match service {
            ServiceFile::Exponential(law) => {
                let file = law.get_ref();
                let rate = self.rate(&law.span(), file.rate.as_ref(), file.mean.as_ref(), 1, pool)?;
                let law = PhaseType::exponential(rate).map_err(|e| self.law(&law.span(), &e))?;
                Ok(Made::new(law, "exponential", Fit::Exact))
            }
            ServiceFile::Erlang(law) => self.erlang(law, pool),
            ServiceFile::Hyperexponential(law) => self.hyperexponential(law, pool),
            ServiceFile::Coxian(law) => self.coxian(law, pool),
            ServiceFile::PhaseType(law) => self.phase_type(law, pool),
            ServiceFile::Moments(law) => self.moments(law, pool),
            ServiceFile::Weibull(law) => {
                self.decreasing(law, "Weibull", pool, |shape, scale| Decreasing::Weibull { shape, scale })
            }
            ServiceFile::Lomax(law) => {
                self.decreasing(law, "Lomax", pool, |shape, scale| Decreasing::Lomax { shape, scale })
            }
            ServiceFile::Gamma(law) => {
                self.decreasing(law, "gamma", pool, |shape, scale| Decreasing::Gamma { shape, scale })
            }
            ServiceFile::Data(law) => self.data(law, pool),
        }
    }

    fn erlang(&self, law: &Spanned<ErlangFile>, pool: &str) -> Result<Made, SpecError> {
        let file = law.get_ref();
        let most = i128::try_from(PhaseType::MOST_PHASES).unwrap_or(i128::MAX);
        let stages: u32 = self.whole(&file.stages, &of("`stages`", pool), 1..=most)?;
        let rate = self.rate(&law.span(), file.rate.as_ref(), file.mean.as_ref(), stages, pool)?;
        let made = PhaseType::erlang(stages as usize, rate).map_err(|e| self.law(&law.span(), &e))?;
        let label =
            if stages == 1 { "Erlang of 1 stage".into() } else { format!("Erlang of {stages} stages") };
        Ok(Made::new(made, label, Fit::Exact))
    }

    fn hyperexponential(&self, law: &Spanned<HyperexponentialFile>, pool: &str) -> Result<Made, SpecError> {
        let file = law.get_ref();
        let probabilities = self.probabilities(&file.probabilities, "`probabilities`", pool)?;
        let rates = self.rates(&file.rates, pool)?;
        if rates.len() != probabilities.len() {
            let (p, r) = (probabilities.len(), rates.len());
            let title = format!("pool {} has {p} probabilities and {r} rates", quote(pool));
            let telling = self.sources.telling(&[file.probabilities.span(), file.rates.span()]);
            return Err(self.value(&telling, title).allowed("each branch needs one of both"));
        }
        let made =
            PhaseType::hyperexponential(&probabilities, &rates).map_err(|e| self.law(&law.span(), &e))?;
        let made = self.rescaled(made, file.mean.as_ref(), &law.span(), pool)?;
        Ok(Made::new(made, "hyperexponential", Fit::Exact))
    }

    fn coxian(&self, law: &Spanned<CoxianFile>, pool: &str) -> Result<Made, SpecError> {
        let file = law.get_ref();
        let rates = self.rates(&file.rates, pool)?;
        let go_on = self.chances(&file.go_on, "an entry of `continue`", pool)?;
        if go_on.len() + 1 != rates.len() {
            let (m, given) = (rates.len(), go_on.len());
            let title = format!("{} has length {given} and `rates` length {m}", of("`continue`", pool));
            let telling = self.sources.telling(&[file.rates.span(), file.go_on.span()]);
            let error = self.value(&telling, title);
            let error =
                error.allowed(format!("must have length {}, an entry for each phase but the last", m - 1));
            let all = given == m && go_on.last() == Some(&0.0);
            let advice = "leave out the 0 at the end: the last phase always ends the service";
            return Err(if all { error.help(advice) } else { error });
        }
        let made = PhaseType::coxian(&rates, &go_on).map_err(|e| self.law(&law.span(), &e))?;
        let made = self.rescaled(made, file.mean.as_ref(), &law.span(), pool)?;
        Ok(Made::new(made, "Coxian", Fit::Exact))
    }

    fn phase_type(&self, law: &Spanned<PhaseTypeFile>, pool: &str) -> Result<Made, SpecError> {
        let file = law.get_ref();
        let initial = self.probabilities(&file.initial, "the entries of `initial`", pool)?;
        let generator = self.generator(&file.generator, initial.len(), pool)?;
        let made = PhaseType::from_generator(&initial, &generator).map_err(|e| {
            let row = match e {
                LawError::NeverEnds { phase } => file.generator.get_ref().get(phase - 1),
                _ => None,
            };
            let error = self.law(&row.map_or(law.span(), Spanned::span), &e);
            if row.is_none() {
                return error;
            }
            error.help("some row that is reached from here must sum to less than 0: that is where jobs end")
        })?;
        let made = self.rescaled(made, file.mean.as_ref(), &law.span(), pool)?;
        Ok(Made::new(made, "phase type", Fit::Exact))
    }

    fn moments(&self, law: &Spanned<MomentsFile>, pool: &str) -> Result<Made, SpecError> {
        let file = law.get_ref();
        let mean = self.positive(&file.mean, "`mean`", pool)?;
        let range = PhaseType::LEAST_SCV..=LARGEST_SCV;
        let allowed = "must be from 0.0005 (2000 phases reach no less) to 1e6";
        let scv = self.real(&file.scv, &of("`scv`", pool), allowed, |x| range.contains(&x))?;
        let (made, which) = PhaseType::from_moments(mean, scv).map_err(|e| self.law(&law.span(), &e))?;
        Ok(Made::new(made, format!("{which}, of two moments"), Fit::Exact))
    }

    fn decreasing(
        &self,
        law: &Spanned<DecreasingFile>,
        name: &str,
        pool: &str,
        new: impl Fn(f64, f64) -> Decreasing,
    ) -> Result<Made, SpecError> {
        let file = law.get_ref();
        let (range, _) = new(1.0, 1.0).shapes();
        let what = of(&format!("the {name} law's `shape`"), pool);
        let ok = |shape| new(shape, 1.0).shapes().1;
        let shape = self.real(&file.shape, &what, &format!("must be {range}"), ok)?;
        let scale = match (&file.scale, &file.mean) {
            (Some(scale), _) => self.positive(scale, "`scale`", pool)?,
            (None, Some(_)) => 1.0,
            (None, None) => {
                let title = format!("the {name} service of pool {} has no scale", quote(pool));
                return Err(self.value(&law.span(), title).allowed("needs `scale` or `mean`"));
            }
        };
        let phases = match &file.phases {
            None => Decreasing::PHASES,
            Some(phases) => {
                let most = i128::try_from(Decreasing::MOST_PHASES).unwrap_or(i128::MAX);
                self.whole(phases, &of("`phases`", pool), 2..=most)?
            }
        };
        let made = new(shape, scale).mixture(phases).map_err(|e| self.law(&law.span(), &e));
        let (made, distance) = made?;
        let made = self.rescaled(made, file.mean.as_ref(), &law.span(), pool)?;
        Ok(Made::new(made, format!("{name} of shape {shape} as a mixture"), Fit::Distance(distance)))
    }

    fn data(&self, law: &Spanned<DataFile>, pool: &str) -> Result<Made, SpecError> {
        let file = law.get_ref();
        if file.file.get_ref().is_empty() {
            let error = self.value(&file.file.span(), format!("{} is empty", of("`file`", pool)));
            return Err(error.allowed("must be the path of a CSV file, relative to the model file"));
        }
        let source = Source::Path(self.folder.join(file.file.get_ref()));
        let named = self.sources.place(&file.file.span());
        let column = file.column.as_ref().map(|c| c.get_ref().0.as_str());
        let sample = data::sample(&source, column).map_err(|e| e.also(named, "the data are named here"))?;
        let fits = DataFit::all(&sample).map_err(|e| self.law(&file.file.span(), &e))?;
        let Some(chosen) = DataFit::chosen(&fits).cloned() else {
            let title = format!("no law can be fitted to {}", quote(file.file.get_ref()));
            return Err(self.value(&file.file.span(), title).allowed("the times must not be so extreme"));
        };
        let made = self.rescaled(chosen.law.clone(), file.mean.as_ref(), &law.span(), pool)?;
        let label = format!("{} fitted to {}", chosen.family.label(), quote(file.file.get_ref()));
        let fit = Fit::Data { times: sample.times().len(), chosen: Box::new(chosen) };
        Ok(Made { sample: Some(sample), ..Made::new(made, label, fit) })
    }

    /// The rate of each of `stages` stages, from the rate or the mean of all.
    fn rate(
        &self,
        law: &Span,
        rate: Option<&Spanned<Number>>,
        mean: Option<&Spanned<Number>>,
        stages: u32,
        pool: &str,
    ) -> Result<f64, SpecError> {
        let pool_name = quote(pool);
        match (rate, mean) {
            (Some(rate), None) => self.positive(rate, "`rate`", pool),
            (None, Some(mean)) => Ok(f64::from(stages) / self.positive(mean, "`mean`", pool)?),
            (Some(rate), Some(mean)) => {
                let telling = self.sources.telling(&[rate.span(), mean.span()]);
                let title = format!("the service of pool {pool_name} has both a rate and a mean");
                Err(self.value(&telling, title).allowed("must have one of `rate` and `mean`"))
            }
            (None, None) => {
                let title = format!("the service of pool {pool_name} has no rate");
                let error = self.value(law, title).allowed("needs `rate` or `mean`");
                Err(error.help("for example `service.exponential.rate = 1.0`"))
            }
        }
    }

    /// A rate, a mean or a scale.
    fn positive(&self, x: &Spanned<Number>, key: &str, pool: &str) -> Result<f64, SpecError> {
        self.real(x, &of(key, pool), &format!("must be {RATE}"), |x| RATES.contains(&x))
    }

    /// The law with the mean asked for, or its own, which must then be within reason.
    fn rescaled(
        &self,
        law: PhaseType,
        mean: Option<&Spanned<Number>>,
        span: &Span,
        pool: &str,
    ) -> Result<PhaseType, SpecError> {
        if let Some(mean) = mean {
            let value = self.positive(mean, "`mean`", pool)?;
            return law.with_mean(value).map_err(|e| self.law(&mean.span(), &e));
        }
        if !RATES.contains(&law.mean()) {
            let title = format!("the mean service time of pool {} is {:e}", quote(pool), law.mean());
            return Err(self.value(span, title).allowed(format!("must be {RATE}")));
        }
        Ok(law)
    }

    /// What the law itself finds wrong.
    fn law(&self, span: &Span, error: &LawError) -> SpecError {
        self.fail(Problem::Value, span, error.to_string())
    }
}
