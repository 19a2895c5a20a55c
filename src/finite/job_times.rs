//! Waiting and response times of single jobs.

use serde::{Serialize, Serializer};

use super::estimate::Replication;
use super::histogram::Histogram;
use super::summary::interval;
use crate::model::{Model, Value};

/// Mean and quantiles of a duration, in the model's unit of time. A quantile is `None` where fewer than
/// ten jobs of a replication are expected beyond it. Quantiles come from bins of 1/256 of their value.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Durations {
    /// Mean.
    pub mean: Option<Value>,
    /// Median.
    pub p50: Option<Value>,
    /// What nine jobs in ten do not exceed.
    pub p90: Option<Value>,
    /// What 99 % do not exceed.
    pub p99: Option<Value>,
    /// What 99.9 % do not exceed.
    #[serde(rename = "p99.9")]
    pub p999: Option<Value>,
}

/// Waiting and response times of the accepted jobs that came after the warm-up and by the horizon.
///
/// Each of them is followed to its end, past the horizon if need be, while jobs go on coming: nothing
/// is cut off, so long times are neither missing nor shortened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobTimes {
    /// Jobs that were measured, in all replications.
    pub jobs: u64,
    /// From arrival to the start of service.
    pub waiting_time: Durations,
    /// From arrival to the end of service.
    pub response_time: Durations,
    /// The same per pool, in the model's order; serialised as a map by name.
    #[serde(serialize_with = "by_name")]
    pub pools: Vec<PoolTimes>,
}

/// Waiting and response times of the jobs that one pool accepted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoolTimes {
    /// The pool's name.
    #[serde(skip)]
    pub name: String,
    /// Jobs that were measured, in all replications.
    pub jobs: u64,
    /// From arrival to the start of service.
    pub waiting_time: Durations,
    /// From arrival to the end of service.
    pub response_time: Durations,
}

fn by_name<S: Serializer>(pools: &[PoolTimes], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pools.iter().map(|p| (&p.name, p)))
}

impl Durations {
    /// Names of the numbers, in the order of the fields.
    pub const NAMES: [&'static str; 5] = ["mean", "p50", "p90", "p99", "p99.9"];

    /// A number by name; `None` if there is no such name or no value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        match name {
            "mean" => self.mean,
            "p50" => self.p50,
            "p90" => self.p90,
            "p99" => self.p99,
            "p99.9" => self.p999,
            _ => None,
        }
    }

    fn of(times: &Histogram) -> Self {
        let quantile = |p| times.quantile(p).map(Value::from);
        Self {
            mean: times.mean().map(Value::from),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
        }
    }

    /// Means over replications, with intervals. A number that some replication with jobs could not
    /// give is left out: the others would be those with more jobs than usual.
    fn mean<'a>(runs: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let over = |of: fn(&Self) -> Option<Value>| {
            let complete = runs.clone().filter(|run| run.mean.is_some()).all(|run| of(run).is_some());
            interval(runs.clone().filter_map(of).map(|v| v.value)).filter(|_| complete)
        };
        Self {
            mean: over(|d| d.mean),
            p50: over(|d| d.p50),
            p90: over(|d| d.p90),
            p99: over(|d| d.p99),
            p999: over(|d| d.p999),
        }
    }
}

/// Means over replications; `None` if they did not follow single jobs.
pub(super) fn mean(runs: &[Replication]) -> Option<JobTimes> {
    let all: Vec<&JobTimes> = runs.iter().filter_map(|run| run.job_times.as_ref()).collect();
    let pools = &all.first()?.pools;
    let pool = |(j, pool): (usize, &PoolTimes)| PoolTimes {
        name: pool.name.clone(),
        jobs: all.iter().map(|run| run.pools[j].jobs).sum(),
        waiting_time: Durations::mean(all.iter().map(|run| &run.pools[j].waiting_time)),
        response_time: Durations::mean(all.iter().map(|run| &run.pools[j].response_time)),
    };
    Some(JobTimes {
        jobs: all.iter().map(|run| run.jobs).sum(),
        waiting_time: Durations::mean(all.iter().map(|run| &run.waiting_time)),
        response_time: Durations::mean(all.iter().map(|run| &run.response_time)),
        pools: pools.iter().enumerate().map(pool).collect(),
    })
}

/// The stop watches of one replication.
#[derive(Debug)]
pub(super) struct Watches {
    /// Waiting and response times by pool.
    pools: Vec<(Histogram, Histogram)>,
    /// Jobs that came at this time or before are not measured ...
    after: f64,
    /// ... nor are those that came later than this.
    until: f64,
    /// Jobs to be measured that are still there.
    running: u64,
}

impl Watches {
    /// Measures the jobs that come in (`after`, `until`].
    pub(super) fn new(model: &Model, after: f64, until: f64) -> Self {
        let scale = model.pools.iter().map(|p| p.law.mean()).fold(0.0, f64::max);
        let pools = model.pools.iter().map(|_| (Histogram::new(scale), Histogram::new(scale))).collect();
        Self { pools, after, until, running: 0 }
    }

    fn measured(&self, arrival: f64) -> bool {
        arrival > self.after && arrival <= self.until
    }

    /// Are there jobs left to measure among those that have come?
    pub(super) fn running(&self) -> bool {
        self.running > 0
    }

    /// A job was accepted at time `now`.
    #[inline]
    pub(super) fn accepted(&mut self, now: f64) {
        self.running += u64::from(self.measured(now));
    }

    /// Service of a job that came at time `arrival` begins.
    #[inline]
    pub(super) fn started(&mut self, pool: usize, arrival: f64, now: f64) {
        if self.measured(arrival) {
            self.pools[pool].0.record(now - arrival);
        }
    }

    /// Service of a job that came at time `arrival` ends.
    #[inline]
    pub(super) fn ended(&mut self, pool: usize, arrival: f64, now: f64) {
        if self.measured(arrival) {
            self.pools[pool].1.record(now - arrival);
            self.running -= 1;
        }
    }

    /// What was measured.
    pub(super) fn read(mut self, model: &Model) -> JobTimes {
        let pool = |((waiting, response), name): (&(Histogram, Histogram), &String)| PoolTimes {
            name: name.clone(),
            jobs: response.count(),
            waiting_time: Durations::of(waiting),
            response_time: Durations::of(response),
        };
        let pools: Vec<PoolTimes> =
            self.pools.iter().zip(model.pools.iter().map(|p| &p.name)).map(pool).collect();
        let together = self.pools.drain(..).reduce(|mut all, one| {
            all.0.merge(&one.0);
            all.1.merge(&one.1);
            all
        });
        let (waiting_time, response_time) =
            together.as_ref().map_or_else(Default::default, |(waiting, response)| {
                (Durations::of(waiting), Durations::of(response))
            });
        JobTimes { jobs: pools.iter().map(|p| p.jobs).sum(), waiting_time, response_time, pools }
    }
}
