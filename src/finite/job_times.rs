//! Waiting and response times of single jobs.

use super::estimate::Replication;
use super::histogram::Histogram;
use super::summary::interval;
use crate::model::{Durations, JobTimes, Model, PoolTimes, Value};

/// What a histogram says.
fn read(times: &Histogram) -> Durations {
    let quantile = |p| times.quantile(p).map(Value::from);
    Durations {
        mean: times.mean().map(Value::from),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p999: quantile(0.999),
    }
}

/// Means over replications, with intervals. A number that some replication with jobs could not
/// give is left out: the others would be those with more jobs than usual.
fn over_runs<'a>(runs: impl Iterator<Item = &'a Durations> + Clone) -> Durations {
    let over = |of: fn(&Durations) -> Option<Value>| {
        let complete = runs.clone().filter(|run| run.mean.is_some()).all(|run| of(run).is_some());
        interval(runs.clone().filter_map(of).map(|v| v.value)).filter(|_| complete)
    };
    Durations {
        mean: over(|d| d.mean),
        p50: over(|d| d.p50),
        p90: over(|d| d.p90),
        p99: over(|d| d.p99),
        p999: over(|d| d.p999),
    }
}

/// Means over replications; `None` if they did not follow single jobs.
pub(super) fn mean(runs: &[Replication]) -> Option<JobTimes> {
    let all: Vec<&JobTimes> = runs.iter().filter_map(|run| run.job_times.as_ref()).collect();
    let pools = &all.first()?.pools;
    let pool = |(j, pool): (usize, &PoolTimes)| PoolTimes {
        name: pool.name.clone(),
        jobs: Some(all.iter().filter_map(|run| run.pools[j].jobs).sum()),
        waiting_time: over_runs(all.iter().map(|run| &run.pools[j].waiting_time)),
        response_time: over_runs(all.iter().map(|run| &run.pools[j].response_time)),
    };
    Some(JobTimes {
        jobs: Some(all.iter().filter_map(|run| run.jobs).sum()),
        waiting_time: over_runs(all.iter().map(|run| &run.waiting_time)),
        response_time: over_runs(all.iter().map(|run| &run.response_time)),
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
            jobs: Some(response.count()),
            waiting_time: read(waiting),
            response_time: read(response),
        };
        let pools: Vec<PoolTimes> =
            self.pools.iter().zip(model.pools.iter().map(|p| &p.name)).map(pool).collect();
        let together = self.pools.drain(..).reduce(|mut all, one| {
            all.0.merge(&one.0);
            all.1.merge(&one.1);
            all
        });
        let (waiting_time, response_time) = together
            .as_ref()
            .map_or_else(Default::default, |(waiting, response)| (read(waiting), read(response)));
        JobTimes { jobs: Some(pools.iter().filter_map(|p| p.jobs).sum()), waiting_time, response_time, pools }
    }
}
