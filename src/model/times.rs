//! Waiting and response times of single jobs, as every reading that knows them reports them.

use super::Value;
use serde::{Serialize, Serializer};

/// Mean and quantiles of a duration, in the model's unit of time.
///
/// From single jobs a quantile is `None` where fewer than ten jobs of a replication are expected beyond
/// it, and comes from bins of 1/256 of its value. From the fluid it is `None` where a queue grows without
/// bound and so many jobs go there, and good to about 1e-8 in probability.
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

/// Waiting and response times of accepted jobs.
///
/// In a run they are those of the jobs that came after the warm-up and by the horizon. Each is followed
/// to its end, past the horizon if need be, while jobs go on coming: nothing is cut off, so long times are
/// neither missing nor shortened. In the fluid they are those of a job that comes at the fixed point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobTimes {
    /// Jobs that were measured, in all replications; `None` where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
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
    /// Jobs that were measured, in all replications; `None` where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
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
}
