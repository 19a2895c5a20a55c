//! What a system is: pools of servers, a service law, a dispatch policy. No numerics, no I/O.
//!
//! A [`Model`] is what the checked model file becomes. Everything downstream (the fluid limit, the
//! finite-n sampler, the exact chain) reads it through [`StateSpace`] and the tiers of its
//! [`Policy`]; nothing downstream sees TOML.

mod initial;
mod law;
mod laws;
mod measures;
mod policy;
mod pool;
mod routers;
mod states;
mod times;

pub use initial::Initial;
pub use law::{LawError, PhaseType};
pub use laws::{DataFit, Decreasing, Family, Fitted, MomentFit, Sample};
pub(crate) use measures::no_phases;
pub use measures::{Measures, PoolMeasures, Value};
pub use policy::{Fallback, LevelSet, Levels, Messages, Policy, Tier, Tiers};
pub use pool::Pool;
pub use routers::{Message, Routers};
pub use states::{Move, PoolStates, StateSpace, Top};
pub use times::{Durations, JobTimes, PoolTimes};

/// A service system: servers in pools, one Poisson stream of jobs, one dispatch policy.
///
/// Rates are per server and per unit of time: with n servers, jobs arrive at rate `arrival_rate * n`.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Short name, used in titles and file names.
    pub name: String,
    /// One or two sentences for people; may be empty.
    pub description: String,
    /// Jobs per server and unit of time (lambda).
    pub arrival_rate: f64,
    /// The pools; their shares sum to 1.
    pub pools: Vec<Pool>,
    /// How a job picks its server.
    pub policy: Policy,
}

impl Model {
    /// Service capacity per server: sum over pools of share times service rate, at the highest speed.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.pools.iter().map(|p| p.share * p.service_rate()).sum()
    }

    /// Offered load: arrival rate over capacity. The system is sub-critical below 1.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.arrival_rate / self.capacity()
    }

    /// The number of servers of each pool when there are n in all: shares times n, rounded by the
    /// method of largest remainders (ties to the earlier pool), so that they sum to n.
    #[must_use]
    pub fn pool_sizes(&self, n: u64) -> Vec<u64> {
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let exact: Vec<f64> = self.pools.iter().map(|p| p.share * n as f64).collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // A share such as 1/3 times 300 may fall an ulp short of 100: round those first. The slack of all
        // pools together stays below one server, however large n is.
        let slack = |e: f64| (1e-12 * e).min(0.5 / exact.len() as f64);
        let mut sizes: Vec<u64> = exact.iter().map(|&e| (e + slack(e)).floor() as u64).collect();
        let mut order: Vec<usize> = (0..exact.len()).collect();
        #[allow(clippy::cast_precision_loss)]
        let remainder = |j: usize, sizes: &[u64]| exact[j] - sizes[j] as f64;
        order.sort_by(|&a, &b| remainder(b, &sizes).total_cmp(&remainder(a, &sizes)).then(a.cmp(&b)));
        let mut missing = n.saturating_sub(sizes.iter().sum());
        for &j in order.iter().cycle() {
            if missing == 0 {
                break;
            }
            sizes[j] += 1;
            missing -= 1;
        }
        sizes
    }
}
