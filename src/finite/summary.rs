//! From replications to estimates with intervals.

use std::collections::BTreeMap;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::estimate::{Replication, Statistics};
use crate::model::{Measures, PoolMeasures, Value, no_phases};

/// The state at one time, averaged over replications.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    /// The time.
    pub time: f64,
    /// By pool, tails x_1, x_2, ... as fractions of all n servers. All snapshots of a run have as many.
    pub tails: Vec<Vec<Value>>,
    /// The same by the phase of the job in service: S_{1,m}, S_{2,m}, ..., one list a level, of pools with
    /// several phases.
    #[serde(skip_serializing_if = "no_phases")]
    pub phases: Vec<Vec<Vec<Value>>>,
    /// Jobs per server.
    pub mean_jobs: Value,
    /// Messages at each router as fractions of all n servers, where there are several routers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Value>,
}

/// The states of one replication at the sample times.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Path {
    /// The replication's number, from 0.
    pub replication: u32,
    /// By sample time and pool, tails x_1, x_2, ... as fractions of all n servers, as far as any
    /// server was seen at that time or `Settings::levels` allows.
    pub tails: Vec<Vec<Vec<f64>>>,
    /// The same by the phase of the job in service: by time, pool, level and phase. Nothing for pools with
    /// one phase.
    pub phases: Vec<Vec<Vec<Vec<f64>>>>,
    /// By sample time, jobs per server.
    pub mean_jobs: Vec<f64>,
    /// By sample time, messages at each router as fractions of all n servers; nothing with one router.
    pub messages: Vec<Vec<f64>>,
}

/// Mean and sum of squared deviations of numbers that come one by one (Welford 1962).
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    count: u32,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// The moments of `count` zeros.
    fn zeros(count: u32) -> Self {
        Self { count, ..Self::default() }
    }

    fn push(&mut self, x: f64) {
        self.count += 1;
        let deviation = x - self.mean;
        self.mean += deviation / f64::from(self.count);
        self.squares += deviation * (x - self.mean);
    }

    /// The mean, with the half-width of its 95 % interval by Student's t if there are two numbers or more.
    fn value(self) -> Value {
        let freedom = f64::from(self.count) - 1.0;
        let quantile = StudentsT::new(0.0, 1.0, freedom).ok().map(|t| t.inverse_cdf(0.975));
        let error = (self.squares / freedom / f64::from(self.count)).sqrt();
        Value { value: self.mean, half_width: quantile.filter(|_| freedom > 0.0).map(|q| q * error) }
    }
}

/// The mean of independent estimates with its 95 % interval; `None` if there are none.
#[must_use]
pub fn interval(estimates: impl IntoIterator<Item = f64>) -> Option<Value> {
    let mut moments = Moments::default();
    estimates.into_iter().for_each(|x| moments.push(x));
    (moments.count > 0).then(|| moments.value())
}

/// Means over replications of measures that exist in at least one of them.
pub(super) fn measures(runs: &[Replication]) -> Measures {
    let over = |of: &dyn Fn(&Measures) -> Option<Value>| {
        interval(runs.iter().filter_map(|run| of(&run.measures)).map(|v| v.value))
    };
    let pools = runs.first().map_or(0, |run| run.measures.pools.len());
    let pool = |j: usize| {
        let over = |of: fn(&PoolMeasures) -> Option<Value>| over(&|m| m.pools.get(j).and_then(of));
        PoolMeasures {
            name: runs.first().map_or_else(String::new, |run| run.measures.pools[j].name.clone()),
            p_idle: over(|p| p.p_idle),
            p_wait: over(|p| p.p_wait),
            p_block: over(|p| p.p_block),
            mean_jobs: over(|p| p.mean_jobs),
            response_time: over(|p| p.response_time),
            waiting_time: over(|p| p.waiting_time),
            utilisation: over(|p| p.utilisation),
            throughput: over(|p| p.throughput),
            growth: over(|p| p.growth),
        }
    };
    Measures {
        p_idle: over(&|m| m.p_idle),
        p_wait: over(&|m| m.p_wait),
        p_block: over(&|m| m.p_block),
        p_busy: over(&|m| m.p_busy),
        mean_jobs: over(&|m| m.mean_jobs),
        response_time: over(&|m| m.response_time),
        waiting_time: over(&|m| m.waiting_time),
        utilisation: over(&|m| m.utilisation),
        throughput: over(&|m| m.throughput),
        messages_per_job: over(&|m| m.messages_per_job),
        growth: over(&|m| m.growth),
        pools: (0..pools).map(pool).collect(),
    }
}

/// Means over replications of lists by pool; a list that ends early goes on with zeros.
pub(super) fn profiles(runs: &[Replication], of: fn(&Replication) -> &[Vec<f64>]) -> Vec<Vec<Value>> {
    let pools = runs.first().map_or(0, |run| of(run).len());
    let profile = |j: usize| {
        let length = runs.iter().map(|run| of(run)[j].len()).max().unwrap_or(0);
        let at = |k: usize| interval(runs.iter().map(|run| of(run)[j].get(k).copied().unwrap_or(0.0)));
        (0..length).filter_map(at).collect()
    };
    (0..pools).map(profile).collect()
}

/// Snapshots summed up over replications, by sample time.
#[derive(Debug, Default)]
struct Transient {
    tails: Vec<Vec<Vec<Moments>>>,
    phases: Vec<Vec<Vec<Vec<Moments>>>>,
    mean_jobs: Vec<Moments>,
    messages: Vec<Vec<Moments>>,
}

impl Transient {
    fn push(&mut self, path: &Path) {
        let before = self.mean_jobs.first().map_or(0, |m| m.count);
        let times = path.mean_jobs.len();
        self.mean_jobs.resize_with(times, Moments::default);
        self.tails.resize_with(times, Vec::new);
        self.phases.resize_with(times, Vec::new);
        self.messages.resize_with(times, Vec::new);
        for (moments, &x) in self.mean_jobs.iter_mut().zip(&path.mean_jobs) {
            moments.push(x);
        }
        for (sums, messages) in self.messages.iter_mut().zip(&path.messages) {
            push_each(sums, messages, before);
        }
        for (sums, pools) in self.tails.iter_mut().zip(&path.tails) {
            sums.resize_with(pools.len(), Vec::new);
            sums.iter_mut().zip(pools).for_each(|(sums, tails)| push_each(sums, tails, before));
        }
        for (sums, pools) in self.phases.iter_mut().zip(&path.phases) {
            sums.resize_with(pools.len(), Vec::new);
            for (sums, levels) in sums.iter_mut().zip(pools) {
                sums.resize_with(sums.len().max(levels.len()), Vec::new);
                for (k, sums) in sums.iter_mut().enumerate() {
                    push_each(sums, levels.get(k).map_or(&[], Vec::as_slice), before);
                }
            }
        }
    }

    fn snapshots(self, times: &[f64]) -> Vec<Snapshot> {
        let count = self.mean_jobs.first().map_or(0, |m| m.count);
        let pools = self.tails.first().map_or(0, Vec::len);
        let longest = |j: usize| self.tails.iter().map(|pools| pools[j].len()).max().unwrap_or(0);
        let lengths: Vec<usize> = (0..pools).map(longest).collect();
        let values = |sums: Vec<Moments>| sums.into_iter().map(Moments::value).collect();
        let tails = self.tails.into_iter().map(|pools| {
            let padded = pools.into_iter().zip(&lengths).map(|(mut sums, &length)| {
                sums.resize(length, Moments::zeros(count));
                values(sums)
            });
            padded.collect()
        });
        let of_pool = |levels: Vec<Vec<Moments>>| levels.into_iter().map(values).collect();
        let phases = self.phases.into_iter().map(|pools| pools.into_iter().map(of_pool).collect());
        let sums = times.iter().zip(tails).zip(phases).zip(self.mean_jobs).zip(self.messages);
        let snapshot = |((((&time, tails), phases), jobs), messages): (((_, _), Moments), _)| Snapshot {
            time,
            tails,
            phases,
            mean_jobs: jobs.value(),
            messages: values(messages),
        };
        sums.map(snapshot).collect()
    }
}

/// Adds one replication's list to sums over `before` others; what ends early goes on with zeros.
fn push_each(sums: &mut Vec<Moments>, list: &[f64], before: u32) {
    sums.resize(sums.len().max(list.len()), Moments::zeros(before));
    for (k, moments) in sums.iter_mut().enumerate() {
        moments.push(list.get(k).copied().unwrap_or(0.0));
    }
}

/// Takes replications in whatever order they finish and adds them up in the order of their numbers, so
/// that sums do not depend on which thread was faster.
#[derive(Debug, Default)]
pub(super) struct Collector {
    next: u32,
    waiting: BTreeMap<u32, (Replication, Path)>,
    transient: Transient,
    kept: u32,
    paths: Vec<Path>,
    runs: Vec<Replication>,
}

/// All replications that were finished, added up.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) runs: Vec<Replication>,
    pub(super) transient: Vec<Snapshot>,
    pub(super) paths: Vec<Path>,
    pub(super) statistics: Statistics,
}

impl Collector {
    /// Keeps the paths of the first `kept` replications.
    pub(super) fn new(kept: u32) -> Self {
        Self { kept, ..Self::default() }
    }

    /// Takes a replication.
    pub(super) fn take(&mut self, run: Replication, path: Path) {
        self.waiting.insert(path.replication, (run, path));
        while let Some((run, path)) = self.waiting.remove(&self.next) {
            self.add(run, path);
            self.next += 1;
        }
    }

    fn add(&mut self, run: Replication, path: Path) {
        self.transient.push(&path);
        self.runs.push(run);
        if path.replication < self.kept {
            self.paths.push(path);
        }
    }

    /// Closes the books. Replications that wait for one that will not come are counted too.
    pub(super) fn finish(mut self, times: &[f64]) -> Collected {
        for (_, (run, path)) in std::mem::take(&mut self.waiting) {
            self.add(run, path);
        }
        let statistics = self.runs.iter().map(|run| run.statistics);
        Collected {
            statistics: statistics.fold(Statistics::default(), Statistics::merged),
            transient: self.transient.snapshots(times),
            paths: self.paths,
            runs: self.runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_textbook_one() {
        // Mean 3, sample variance 2.5, five numbers; the 0.975 quantile of t with 4 degrees is 2.7764451.
        let value = interval([1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((value.value - 3.0).abs() < 1e-15);
        assert!((value.half_width.unwrap() - 2.776_445_105_2 * 0.5f64.sqrt()).abs() < 1e-8);
        assert_eq!(interval([7.0]), Some(Value { value: 7.0, half_width: None }));
        assert_eq!(interval([]), None);
    }

    #[test]
    fn paths_of_different_lengths_and_orders_add_up() {
        let run = || Replication {
            measures: Measures::default(),
            tails: vec![],
            levels: vec![],
            job_times: None,
            statistics: Statistics { events: 1, ..Statistics::default() },
        };
        let path = |replication, tails: &[f64]| Path {
            replication,
            tails: vec![vec![vec![]], vec![tails.to_vec()]],
            phases: vec![vec![vec![]], vec![tails.iter().map(|x| vec![0.25 * x, 0.75 * x]).collect()]],
            mean_jobs: vec![0.0, tails.iter().sum()],
            messages: vec![],
        };
        let mut collector = Collector::new(1);
        collector.take(run(), path(3, &[0.3]));
        collector.take(run(), path(1, &[0.9, 0.6]));
        collector.take(run(), path(0, &[0.6]));
        let all = collector.finish(&[0.0, 1.0]);
        let means: Vec<f64> = all.transient[1].tails[0].iter().map(|v| v.value).collect();
        assert!((means[0] - 0.6).abs() < 1e-15 && (means[1] - 0.2).abs() < 1e-15 && means.len() == 2);
        assert_eq!(all.transient[0].tails[0].len(), 2);
        let phases = &all.transient[1].phases[0];
        let means: Vec<Vec<f64>> = phases.iter().map(|l| l.iter().map(|v| v.value).collect()).collect();
        assert!((means[0][0] - 0.15).abs() < 1e-15 && (means[1][1] - 0.15).abs() < 1e-15, "{means:?}");
        assert_eq!((means.len(), all.transient[0].phases[0].len()), (2, 0));
        assert_eq!((all.paths.len(), all.runs.len(), all.statistics.events), (1, 3, 3));
    }
}
