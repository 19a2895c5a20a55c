//! Policies and their parameters.

use toml::Spanned;

use super::super::error::SpecError;
use super::super::file::{PolicyFile, PoolFile, TiersFile};
use super::super::number::Number;
use super::Check;
use crate::model::{LevelSet, Policy, Pool};

/// Sampling more servers than this is joining the shortest queue in all but name.
const MOST_SAMPLED: i128 = 1_000_000;
/// The largest level that a policy may name.
const LARGEST_LEVEL: i128 = 1_000_000_000;
/// Service rates this close, relatively, are equal: 1/3 and 0.333333333333333 are one rate.
const SAME_RATE: f64 = 1e-12;

impl Check<'_> {
    pub(super) fn policy(
        &self,
        policy: &PolicyFile,
        written: &[PoolFile],
        pools: &[Pool],
    ) -> Result<Policy, SpecError> {
        self.slots_are_for_pull(policy, written)?;
        Ok(match policy {
            PolicyFile::Random(_) => Policy::random(),
            PolicyFile::Jsq(_) => Policy::jsq(),
            PolicyFile::Pull(p) => self.pull(p, pools)?,
            PolicyFile::I1f(_) => Policy::i1f(),
            PolicyFile::FastestIdleFirst(_) => Policy::fastest_idle_first(&by_speed(pools)),
            PolicyFile::JsqD(p) => {
                Policy::jsq_d(self.whole(&p.d, "`d`", 1..=MOST_SAMPLED)?, p.replacement, p.skip_full)
            }
            PolicyFile::Jiq(p) => Policy::jiq(self.fallback(p.fallback_d.as_ref())?),
            PolicyFile::Threshold(p) => {
                Policy::threshold(self.whole(&p.level, "the threshold's `level`", 1..=LARGEST_LEVEL)?)
            }
            PolicyFile::Tiers(p) => Policy::tiers(&self.tiers(p)?, self.fallback(p.fallback_d.as_ref())?),
        })
    }

    /// Only pull has messages for free slots.
    fn slots_are_for_pull(&self, policy: &PolicyFile, written: &[PoolFile]) -> Result<(), SpecError> {
        match written.iter().find_map(|pool| pool.slots.as_ref()) {
            Some(slots) if !matches!(policy, PolicyFile::Pull(_)) => {
                let error = self.value(&slots.span(), "this policy knows no slots");
                Err(error
                    .allowed("`slots` is for `policy = \"pull\"`")
                    .help("a threshold in all pools is `policy.threshold.level`"))
            }
            _ => Ok(()),
        }
    }

    fn fallback(&self, d: Option<&Spanned<Number>>) -> Result<u32, SpecError> {
        d.map_or(Ok(1), |d| self.whole(d, "`fallback_d`", 1..=MOST_SAMPLED))
    }

    /// Tiers whose levels count up from 0 without gap or repeat.
    fn tiers(&self, file: &TiersFile) -> Result<Vec<LevelSet>, SpecError> {
        let tiers = file.tiers.get_ref();
        if tiers.is_empty() {
            let error = self.value(&file.tiers.span(), "there are no tiers");
            return Err(error.allowed("must hold at least one tier; without tiers the policy is `jsq-d`"));
        }
        let mut next: u32 = 0;
        let mut sets = Vec::with_capacity(tiers.len());
        for tier in tiers {
            let from = next;
            for level in tier.get_ref() {
                let given: u32 = self.whole(level, "a level of a tier", 0..=LARGEST_LEVEL)?;
                if given != next {
                    let title = format!("the tiers have level {given} where level {next} is due");
                    return Err(self.value(&level.span(), title).allowed(
                        "the tiers together must count the levels up from 0, without gap or repeat",
                    ));
                }
                next += 1;
            }
            if from == next {
                let error = self.value(&tier.span(), "a tier is empty");
                return Err(error.allowed("must list at least one level"));
            }
            sets.push(LevelSet { from, to: next - 1 });
        }
        Ok(sets)
    }
}

/// Pools by decreasing service rate, equals together.
fn by_speed(pools: &[Pool]) -> Vec<Vec<usize>> {
    let rate = |j: usize| pools[j].service_rate();
    let mut order: Vec<usize> = (0..pools.len()).collect();
    order.sort_by(|&a, &b| rate(b).total_cmp(&rate(a)));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for j in order {
        match groups.last_mut() {
            Some(group) if rate(j) >= rate(group[0]) * (1.0 - SAME_RATE) => group.push(j),
            _ => groups.push(vec![j]),
        }
    }
    groups
}
