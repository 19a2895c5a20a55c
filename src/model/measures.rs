//! The measures that every reading of a model reports, under the same names.

use serde::Serialize;

/// A number, with the half-width of its 95 % confidence interval where it was estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Half-width of the 95 % interval, if it is an estimate.
    pub half_width: Option<f64>,
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self { value, half_width: None }
    }
}

impl Serialize for Value {
    /// A plain number when exact, `{ value, half_width }` when estimated.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        match self.half_width {
            None => serializer.serialize_f64(self.value),
            Some(half_width) => {
                let mut s = serializer.serialize_struct("Value", 2)?;
                s.serialize_field("value", &self.value)?;
                s.serialize_field("half_width", &half_width)?;
                s.end()
            }
        }
    }
}

/// Measures of the whole system. `None` where a measure does not exist (a mean response time while a
/// queue grows without bound, a message count that is not defined for a policy).
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Measures {
    /// Share of arrivals routed to an idle server.
    pub p_idle: Option<Value>,
    /// Share of arrivals routed to a busy server that has room.
    pub p_wait: Option<Value>,
    /// Share of arrivals routed to a full server, and lost.
    pub p_block: Option<Value>,
    /// Share of arrivals routed to a busy server, full or not (the papers' event W).
    pub p_busy: Option<Value>,
    /// Mean jobs per server.
    pub mean_jobs: Option<Value>,
    /// Mean time in system of accepted jobs (Little's law).
    pub response_time: Option<Value>,
    /// Mean time before service of accepted jobs (Little's law).
    pub waiting_time: Option<Value>,
    /// Busy fraction of the servers, weighted by their service rates.
    pub utilisation: Option<Value>,
    /// Completed jobs per unit of time and server.
    pub throughput: Option<Value>,
    /// Messages sent per arrival.
    pub messages_per_job: Option<Value>,
    /// d/dt of mean jobs per server, where there is no fixed point.
    pub growth: Option<Value>,
    /// The same per pool, in the model's order; serialised as a map by name.
    #[serde(serialize_with = "by_name")]
    pub pools: Vec<PoolMeasures>,
}

/// Measures of one pool. Routing shares are fractions of *all* arrivals, so they add up over pools;
/// everything else is per server of the pool.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct PoolMeasures {
    /// The pool's name.
    #[serde(skip)]
    pub name: String,
    /// Share of all arrivals routed to an idle server of this pool.
    pub p_idle: Option<Value>,
    /// Share of all arrivals routed to a busy server of this pool that has room.
    pub p_wait: Option<Value>,
    /// Share of all arrivals lost at a full server of this pool.
    pub p_block: Option<Value>,
    /// Mean jobs per server of the pool.
    pub mean_jobs: Option<Value>,
    /// Mean time in system of jobs accepted by this pool.
    pub response_time: Option<Value>,
    /// Mean time before service of jobs accepted by this pool.
    pub waiting_time: Option<Value>,
    /// Busy fraction of the pool's servers.
    pub utilisation: Option<Value>,
    /// Completed jobs per unit of time and server of the pool.
    pub throughput: Option<Value>,
    /// d/dt of mean jobs per server of the pool, where there is no fixed point.
    pub growth: Option<Value>,
}

fn by_name<S: serde::Serializer>(pools: &[PoolMeasures], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pools.iter().map(|p| (&p.name, p)))
}

impl Measures {
    /// Names of the measures of the whole system, in the order of the fields.
    pub const NAMES: [&'static str; 11] = [
        "p_idle",
        "p_wait",
        "p_block",
        "p_busy",
        "mean_jobs",
        "response_time",
        "waiting_time",
        "utilisation",
        "throughput",
        "messages_per_job",
        "growth",
    ];

    /// A measure of the whole system by name; `None` if there is no such name or no value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        match name {
            "p_idle" => self.p_idle,
            "p_wait" => self.p_wait,
            "p_block" => self.p_block,
            "p_busy" => self.p_busy,
            "mean_jobs" => self.mean_jobs,
            "response_time" => self.response_time,
            "waiting_time" => self.waiting_time,
            "utilisation" => self.utilisation,
            "throughput" => self.throughput,
            "messages_per_job" => self.messages_per_job,
            "growth" => self.growth,
            _ => None,
        }
    }
}

impl PoolMeasures {
    /// Names of the measures of one pool, in the order of the fields.
    pub const NAMES: [&'static str; 9] = [
        "p_idle",
        "p_wait",
        "p_block",
        "mean_jobs",
        "response_time",
        "waiting_time",
        "utilisation",
        "throughput",
        "growth",
    ];

    /// A measure of the pool by name; `None` if there is no such name or no value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        match name {
            "p_idle" => self.p_idle,
            "p_wait" => self.p_wait,
            "p_block" => self.p_block,
            "mean_jobs" => self.mean_jobs,
            "response_time" => self.response_time,
            "waiting_time" => self.waiting_time,
            "utilisation" => self.utilisation,
            "throughput" => self.throughput,
            "growth" => self.growth,
            _ => None,
        }
    }
}

/// Do tails by phase, one list a pool, hold nothing: has no pool several phases? Results then leave them
/// out.
pub(crate) fn no_phases<T>(phases: &[Vec<Vec<T>>]) -> bool {
    phases.iter().all(Vec::is_empty)
}
