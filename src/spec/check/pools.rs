//! Pools: names, shares, buffers, service laws.

use std::collections::HashMap;

use toml::Spanned;

use super::super::Service;
use super::super::error::{SpecError, quote};
use super::super::file::PoolFile;
use super::super::number::Number;
use super::super::place::Span;
use super::super::service::NumbersFile;
use super::service::Made;
use super::{Check, RATE, RATES};
use crate::model::{Pool, Sample};

/// Buffers above this are as good as infinite and are better written so.
const LARGEST_BUFFER: i128 = 1_000_000_000;
/// Shares this close to a sum of 1 are kept.
pub(super) const SUM_KEPT: f64 = 1e-12;
/// Shares this close to a sum of 1 are divided by their sum: thirds are often written with nine
/// digits. The last figure covers the rounding of the sum itself.
pub(super) const SUM_MENDED: f64 = 1e-9 + 1e-15;

/// The longest list of speeds by level.
const MOST_SPEEDS: usize = 100_000;
/// Each free slot is a message: more than this are a buffer.
const LARGEST_SLOTS: i128 = 100_000;

/// Rates between phases in all pools; they are kept as matrices, and more would not fit the memory.
const MOST_RATES: usize = 40_000_000;

/// What the pools come to.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) pools: Vec<Pool>,
    /// Where the law of each comes from.
    pub(super) services: Vec<Service>,
    /// The data that were read for them.
    pub(super) samples: Vec<Sample>,
}

impl Check<'_> {
    pub(super) fn pools(&self, list: &Spanned<Vec<PoolFile>>) -> Result<Checked, SpecError> {
        let pools = list.get_ref();
        if pools.is_empty() {
            let error = self.value(&list.span(), "there are no pools");
            return Err(error.allowed("must hold at least one pool"));
        }
        self.names(pools)?;
        let shares = self.shares(pools)?;
        let mut checked = Checked::default();
        let mut rates = 0;
        for (pool, share) in pools.iter().zip(shares) {
            let (buffer, made) = self.pool(pool)?;
            let name = pool.name.get_ref();
            let speed = pool.speed.as_ref().map_or(Ok(Vec::new()), |list| self.speed(list, name))?;
            let slots = pool.slots.as_ref().map_or(Ok(1), |slots| self.slots(slots, buffer, name))?;
            rates += made.law.phases().pow(2);
            if rates > MOST_RATES {
                let name = quote(pool.name.get_ref());
                let title = format!("the service laws up to pool {name} have {rates} rates between phases");
                let allowed = format!("must be at most {MOST_RATES}: use fewer phases, or fewer pools");
                return Err(self.value(&pool.name.span(), title).allowed(allowed));
            }
            checked.pools.push(Pool { speed, slots, ..Pool::new(name.as_str(), share, buffer, made.law) });
            checked.services.push(made.service);
            checked.samples.extend(made.sample);
        }
        Ok(checked)
    }

    fn pool(&self, pool: &PoolFile) -> Result<(Option<u32>, Made), SpecError> {
        let name = pool.name.get_ref();
        let buffer = match &pool.buffer {
            None => None,
            Some(b) => Some(self.whole(b, &of("`buffer`", name), 1..=LARGEST_BUFFER).map_err(|e| {
                let infinite = b.get_ref().real() > 1e9;
                if infinite { e.help("an infinite buffer is one that is left out") } else { e }
            })?),
        };
        Ok((buffer, self.service(&pool.service, name)?))
    }

    /// Speeds by level. They must not fall: more jobs would then slow a server down, and none of what is
    /// known of the limit from idle would hold.
    fn speed(&self, list: &NumbersFile, pool: &str) -> Result<Vec<f64>, SpecError> {
        let what = format!("a speed of pool {}", quote(pool));
        if list.get_ref().is_empty() || list.get_ref().len() > MOST_SPEEDS {
            let title = format!("{} has {} entries", of("`speed`", pool), list.get_ref().len());
            let error = self.value(&list.span(), title);
            return Err(error.allowed(format!("must have 1 to {MOST_SPEEDS}; the last one repeats")));
        }
        let mut speeds: Vec<f64> = Vec::with_capacity(list.get_ref().len());
        for x in list.get_ref() {
            let speed = self.real(x, &what, &format!("must be {RATE}"), |x| RATES.contains(&x))?;
            if let Some(&before) = speeds.last()
                && speed < before
            {
                let title = format!("the speeds of pool {} fall from {before} to {speed}", quote(pool));
                let error = self.value(&x.span(), title).allowed("must not be below the one before it");
                return Err(error.help("servers that slow down under load may have several limits"));
            }
            speeds.push(speed);
        }
        Ok(speeds)
    }

    fn slots(&self, slots: &Spanned<Number>, buffer: Option<u32>, pool: &str) -> Result<u32, SpecError> {
        let most = buffer.map_or(LARGEST_SLOTS, |b| LARGEST_SLOTS.min(i128::from(b)));
        self.whole(slots, &of("`slots`", pool), 1..=most).map_err(|e| match buffer {
            Some(_) => e.help("a server cannot take more jobs than its buffer holds"),
            None => e,
        })
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
}

/// "`share` of pool `fast`".
pub(super) fn of(key: &str, pool: &str) -> String {
    format!("{key} of pool {}", quote(pool))
}

/// Twelve decimals, without the zeros at the end.
pub(super) fn rounded(x: f64) -> String {
    format!("{x:.12}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
