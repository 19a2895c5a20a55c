//! `[fluid]` and `[finite]`: how the model is solved and simulated.

use std::collections::HashMap;

use toml::Spanned;

use super::super::error::{Problem, SpecError, list, nearest, quote};
use super::super::file::{FiniteFile, FluidFile, InitialFile, PhasesFile, PoolFile, TailsFile};
use super::super::number::Number;
use super::super::place::Span;
use super::super::service::NumbersFile;
use super::super::{FiniteSettings, FluidSettings};
use super::Check;
use crate::model::{Initial, Pool};

/// The largest level at which every server may start; each level is a number per pool in memory.
const LARGEST_START: i128 = 1_000_000;
const MOST_POINTS: i128 = 1_000_000;
const MOST_REPLICATIONS: i128 = 1_000_000;
/// The largest number of servers that can be asked for.
pub const LARGEST_SIZE: u64 = 1_000_000_000_000;
const LONGEST_HORIZON: f64 = 1e100;
/// Room for a share that was written with more digits than its tails.
const SHARE_SLACK: f64 = 1e-9;

impl Check<'_> {
    pub(super) fn fluid(
        &self,
        file: &FluidFile,
        written: &[PoolFile],
        pools: &[Pool],
    ) -> Result<FluidSettings, SpecError> {
        let mut fluid = FluidSettings::default();
        if let Some(horizon) = &file.horizon {
            fluid.horizon = self.horizon(horizon, "`fluid.horizon`")?;
        }
        if let Some(tolerance) = &file.tolerance {
            let ok = |x| (1e-14..=1e-2).contains(&x);
            fluid.tolerance = self.real(tolerance, "`fluid.tolerance`", "must be from 1e-14 to 1e-2", ok)?;
        }
        if let Some(points) = &file.points {
            fluid.points = self.whole(points, "`fluid.points`", 2..=MOST_POINTS)?;
        }
        fluid.initial = match &file.initial {
            None | Some(InitialFile::Idle(_)) => Initial::Idle,
            Some(InitialFile::Level(level)) => {
                Initial::Level(self.whole(level, "`fluid.initial.level`", 0..=LARGEST_START)?)
            }
            Some(InitialFile::Tails(tails)) => Initial::Tails(self.tails(tails, written, pools)?),
            Some(InitialFile::Phases(tails)) => Initial::PhaseTails(self.phase_tails(tails, written, pools)?),
        };
        Ok(fluid)
    }

    pub(super) fn finite(&self, file: &FiniteFile) -> Result<FiniteSettings, SpecError> {
        let mut finite = FiniteSettings::default();
        if let Some(sizes) = &file.sizes {
            finite.sizes = self.sizes(sizes)?;
        }
        if let Some(replications) = &file.replications {
            finite.replications = self.whole(replications, "`finite.replications`", 1..=MOST_REPLICATIONS)?;
        }
        if let Some(horizon) = &file.horizon {
            finite.horizon = self.horizon(horizon, "`finite.horizon`")?;
        }
        if let Some(seed) = &file.seed {
            finite.seed = self.whole(seed, "`finite.seed`", 0..=i128::from(u64::MAX))?;
        }
        if let Some(warmup) = &file.warmup {
            let allowed = format!("must be at least 0 and below the horizon, {}", finite.horizon);
            let value = self.real(warmup, "`finite.warmup`", &allowed, |x| x >= 0.0)?;
            if value >= finite.horizon {
                let spans: Vec<Span> =
                    file.horizon.iter().map(Spanned::span).chain([warmup.span()]).collect();
                let title = format!("`finite.warmup` is {value} and the horizon {}", finite.horizon);
                let error = self.value(&self.sources.telling(&spans), title);
                return Err(error.allowed("the warm-up must end before the horizon"));
            }
            finite.warmup = Some(value);
        }
        Ok(finite)
    }

    fn horizon(&self, x: &Spanned<Number>, what: &str) -> Result<f64, SpecError> {
        self.real(x, what, "must be above 0 and at most 1e100", |x| x > 0.0 && x <= LONGEST_HORIZON)
    }

    fn sizes(&self, file: &Spanned<Vec<Spanned<Number>>>) -> Result<Vec<u64>, SpecError> {
        if file.get_ref().is_empty() {
            let error = self.value(&file.span(), "`finite.sizes` is empty");
            return Err(error.allowed("must list at least one number of servers"));
        }
        let mut seen: HashMap<u64, Span> = HashMap::new();
        let mut sizes = Vec::with_capacity(file.get_ref().len());
        for n in file.get_ref() {
            let size: u64 = self.whole(n, "a number of servers", 1..=i128::from(LARGEST_SIZE))?;
            if let Some(first) = seen.insert(size, n.span()) {
                return Err(self
                    .value(&n.span(), format!("`finite.sizes` has {size} twice"))
                    .allowed("each size may stand once")
                    .also(self.sources.place(&first), "the other one is here"));
            }
            sizes.push(size);
        }
        Ok(sizes)
    }

    /// Tails of the named pools; the others start idle.
    fn tails(
        &self,
        file: &Spanned<TailsFile>,
        written: &[PoolFile],
        pools: &[Pool],
    ) -> Result<Vec<Vec<f64>>, SpecError> {
        if file.get_ref().is_empty() {
            let error = self.value(&file.span(), "`fluid.initial.tails` names no pool");
            return Err(error.allowed("must name at least one; all servers idle is `initial = \"idle\"`"));
        }
        let mut tails = vec![Vec::new(); pools.len()];
        for (name, given) in file.get_ref() {
            let Some(j) = pools.iter().position(|pool| pool.name == *name.get_ref()) else {
                return Err(self.no_such_pool(&name.span(), name.get_ref(), pools));
            };
            tails[j] = self.tail(given, &written[j], &pools[j])?;
        }
        Ok(tails)
    }

    /// Tails by phase of the named pools; the others start idle.
    fn phase_tails(
        &self,
        file: &Spanned<PhasesFile>,
        written: &[PoolFile],
        pools: &[Pool],
    ) -> Result<Vec<Vec<Vec<f64>>>, SpecError> {
        if file.get_ref().is_empty() {
            let error = self.value(&file.span(), "`fluid.initial.phases` names no pool");
            return Err(error.allowed("must name at least one; all servers idle is `initial = \"idle\"`"));
        }
        let mut tails = vec![Vec::new(); pools.len()];
        for (name, given) in file.get_ref() {
            let Some(j) = pools.iter().position(|pool| pool.name == *name.get_ref()) else {
                return Err(self.no_such_pool(&name.span(), name.get_ref(), pools));
            };
            self.not_above_buffer(given, &written[j], &pools[j])?;
            let mut above = vec![f64::INFINITY; pools[j].law.phases()];
            for level in given.get_ref() {
                tails[j].push(self.phases_of_level(level, &above, &pools[j])?);
                above.clone_from(&tails[j][tails[j].len() - 1]);
            }
        }
        Ok(tails)
    }

    /// S_{k,1}, S_{k,2}, ... of one level, below those of the level before.
    fn phases_of_level(
        &self,
        level: &NumbersFile,
        before: &[f64],
        pool: &Pool,
    ) -> Result<Vec<f64>, SpecError> {
        let name = quote(&pool.name);
        if level.get_ref().len() != before.len() {
            let title = format!("a level of pool {name} has {} phases", level.get_ref().len());
            let allowed = format!("its service law has {}", before.len());
            return Err(self.value(&level.span(), title).allowed(allowed));
        }
        let what = format!("a tail of pool {name}");
        let ok = |x: f64| x >= 0.0;
        let phases = level.get_ref().iter().map(|x| self.real(x, &what, "must not be negative", ok));
        let phases = phases.collect::<Result<Vec<f64>, _>>()?;
        let sum: f64 = phases.iter().sum();
        if sum > pool.share * (1.0 + SHARE_SLACK) {
            let title = format!("the phases of a level of pool {name} sum to {sum}, more than its share");
            let error = self.value(&level.span(), title).allowed(format!("must be at most {}", pool.share));
            return Err(error.help("tails are fractions of all servers, not of the pool"));
        }
        if let Some((x, before)) = phases.iter().zip(before).find(|(x, before)| x > before) {
            let title = format!("the tails of pool {name} go up from {before} to {x}");
            return Err(self.value(&level.span(), title).allowed("must not exceed the level before it"));
        }
        Ok(phases)
    }

    /// A start has no more levels than the pool's buffer.
    fn not_above_buffer<T>(
        &self,
        given: &Spanned<Vec<Spanned<T>>>,
        written: &PoolFile,
        pool: &Pool,
    ) -> Result<(), SpecError> {
        if let (Some(buffer), Some(b)) = (pool.buffer, &written.buffer)
            && let Some(extra) = given.get_ref().get(buffer as usize)
        {
            let title = format!("pool {} starts with {} levels", quote(&pool.name), given.get_ref().len());
            let telling = self.sources.telling(&[b.span(), extra.span()]);
            return Err(self.value(&telling, title).allowed(format!("its buffer has {buffer}")));
        }
        Ok(())
    }

    fn tail(
        &self,
        given: &Spanned<Vec<Spanned<Number>>>,
        written: &PoolFile,
        pool: &Pool,
    ) -> Result<Vec<f64>, SpecError> {
        let name = quote(&pool.name);
        self.not_above_buffer(given, written, pool)?;
        let mut tail: Vec<f64> = Vec::with_capacity(given.get_ref().len());
        for x in given.get_ref() {
            let what = format!("a tail of pool {name}");
            let allowed = format!("must be from 0 to the pool's share, {}", pool.share);
            let value = self.real(x, &what, &allowed, |x| x >= 0.0)?;
            if value > pool.share * (1.0 + SHARE_SLACK) {
                let telling = self.sources.telling(&[written.share.span(), x.span()]);
                return Err(self
                    .value(&telling, format!("{what} is {value}, more than the pool's share"))
                    .allowed(allowed)
                    .help("tails are fractions of all servers, not of the pool"));
            }
            if let Some(&before) = tail.last()
                && value > before
            {
                let title = format!("the tails of pool {name} go up from {before} to {value}");
                return Err(self.value(&x.span(), title).allowed("must not exceed the one before it"));
            }
            tail.push(value.min(pool.share));
        }
        Ok(tail)
    }

    /// A name that should be a pool's and is not.
    pub(super) fn no_such_pool(&self, span: &Span, name: &str, pools: &[Pool]) -> SpecError {
        let names = || pools.iter().map(|pool| pool.name.as_str());
        let error = self
            .fail(Problem::Key, span, format!("there is no pool {}", quote(name)))
            .suggest(nearest(name, names()));
        if pools.len() > 12 { error } else { error.allowed(format!("the pools are {}", list(names()))) }
    }
}
