//! Pools: names, shares, buffers, service laws.

use std::collections::HashMap;

use toml::Spanned;

use super::super::error::{SpecError, quote};
use super::super::file::{ExponentialFile, PoolFile, ServiceFile};
use super::super::place::Span;
use super::{Check, RATE, RATES};
use crate::model::{PhaseType, Pool};

/// Buffers above this are as good as infinite and are better written so.
const LARGEST_BUFFER: i128 = 1_000_000_000;
/// Shares this close to a sum of 1 are kept.
const SUM_KEPT: f64 = 1e-12;
/// Shares this close to a sum of 1 are divided by their sum: thirds are often written with nine
/// digits. The last figure covers the rounding of the sum itself.
pub(super) const SUM_MENDED: f64 = 1e-9 + 1e-15;

impl Check<'_> {
    pub(super) fn pools(&self, list: &Spanned<Vec<PoolFile>>) -> Result<Vec<Pool>, SpecError> {
        let pools = list.get_ref();
        if pools.is_empty() {
            let error = self.value(&list.span(), "there are no pools");
            return Err(error.allowed("must hold at least one pool"));
        }
        self.names(pools)?;
        let shares = self.shares(pools)?;
        pools.iter().zip(shares).map(|(pool, share)| self.pool(pool, share)).collect()
    }

    fn pool(&self, pool: &PoolFile, share: f64) -> Result<Pool, SpecError> {
        let name = pool.name.get_ref();
        let buffer = match &pool.buffer {
            None => None,
            Some(b) => Some(self.whole(b, &of("`buffer`", name), 1..=LARGEST_BUFFER).map_err(|e| {
                let infinite = b.get_ref().real() > 1e9;
                if infinite { e.help("an infinite buffer is one that is left out") } else { e }
            })?),
        };
        let ServiceFile::Exponential(law) = &pool.service;
        Ok(Pool { name: name.clone(), share, buffer, law: self.exponential(law, name)? })
    }

    fn names(&self, pools: &[PoolFile]) -> Result<(), SpecError> {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for pool in pools {
            let (name, span) = (pool.name.get_ref().as_str(), pool.name.span());
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || !name.chars().all(plain) {
                let title = match name {
                    "" => "the name of a pool is empty".to_owned(),
                    _ => format!("{} cannot name a pool", quote(name)),
                };
                return Err(self
                    .value(&span, title)
                    .allowed("must consist of the letters a-z and A-Z, digits, `-` and `_`"));
            }
            if let Some(first) = seen.insert(name, span.clone()) {
                let telling = self.sources.telling(&[first.clone(), span.clone()]);
                let other = if telling == first { span } else { first };
                return Err(self
                    .value(&telling, format!("two pools are named {}", quote(name)))
                    .allowed("each pool needs a name of its own")
                    .also(self.sources.place(&other), "the other one is here"));
            }
        }
        Ok(())
    }

    fn shares(&self, pools: &[PoolFile]) -> Result<Vec<f64>, SpecError> {
        let mut shares = pools
            .iter()
            .map(|pool| {
                let what = of("`share`", pool.name.get_ref());
                self.real(&pool.share, &what, "must be above 0 and at most 1", |x| x > 0.0 && x <= 1.0)
            })
            .collect::<Result<Vec<f64>, _>>()?;
        let sum: f64 = shares.iter().sum();
        let off = (sum - 1.0).abs();
        if off > SUM_MENDED {
            let spans: Vec<Span> = pools.iter().map(|pool| pool.share.span()).collect();
            let title = format!("the shares of the pools sum to {}", rounded(sum));
            let error = self.value(&self.sources.telling(&spans), title).allowed("the shares must sum to 1");
            return Err(match pools {
                [_] => error.help("a single pool has share 1"),
                _ if pools.len() <= 8 => {
                    let terms = pools.iter().zip(&shares);
                    let terms: Vec<_> = terms
                        .map(|(pool, share)| format!("{share} ({})", quote(pool.name.get_ref())))
                        .collect();
                    error.help(format!("now {}", terms.join(" + ")))
                }
                _ => error,
            });
        }
        if off > SUM_KEPT {
            shares.iter_mut().for_each(|share| *share /= sum);
        }
        Ok(shares)
    }

    fn exponential(&self, law: &Spanned<ExponentialFile>, pool: &str) -> Result<PhaseType, SpecError> {
        let allowed = format!("must be {RATE}");
        let (given, key) = match (&law.get_ref().rate, &law.get_ref().mean) {
            (Some(rate), None) => (rate, "rate"),
            (None, Some(mean)) => (mean, "mean"),
            (Some(rate), Some(mean)) => {
                let telling = self.sources.telling(&[rate.span(), mean.span()]);
                let title =
                    format!("the exponential service of pool {} has both a rate and a mean", quote(pool));
                return Err(self.value(&telling, title).allowed("must have one of `rate` and `mean`"));
            }
            (None, None) => {
                let title = format!("the exponential service of pool {} has no rate", quote(pool));
                let error = self.value(&law.span(), title).allowed("needs `rate` or `mean`");
                return Err(error.help("for example `service.exponential.rate = 1.0`"));
            }
        };
        let what = of(&format!("`{key}`"), pool);
        let number = self.real(given, &what, &allowed, |x| RATES.contains(&x))?;
        let rate = if key == "rate" { number } else { 1.0 / number };
        // The range above is narrower than what the law refuses, so this does not happen.
        PhaseType::exponential(rate).map_err(|e| self.value(&given.span(), e.to_string()))
    }
}

/// "`share` of pool `fast`".
fn of(key: &str, pool: &str) -> String {
    format!("{key} of pool {}", quote(pool))
}

/// Twelve decimals, without the zeros at the end.
pub(super) fn rounded(x: f64) -> String {
    format!("{x:.12}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
