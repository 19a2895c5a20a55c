//! Why there is no 1/n term.

use serde::Serialize;
use thiserror::Error;

/// Why a model is not expanded in 1/n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpansionError {
    /// Several routers.
    #[error("with several routers the split of messages wanders at rest, or waiting is of order 1/n itself")]
    Routers,
    /// A pool grows.
    #[error("queues grow without bound: there is no stationary law")]
    Growth,
    /// The drift is not smooth.
    #[error(
        "the drift has a kink at the fixed point: {} of the policy holds no servers there, and at finite n it \
         does now and then, which is not of order 1/n",
        if *tier == 1 { "the first tier" } else { "each of the first tiers" }
    )]
    Kink {
        /// Tiers without mass.
        tier: usize,
    },
    /// No exponential stability.
    #[error("the fixed point is not exponentially stable: fluctuations are not of order 1/sqrt(n)")]
    NotStable,
    /// Too many states.
    #[error("{states} states hold servers; dense equations are solved for {limit} at most")]
    TooLarge {
        /// States with mass.
        states: usize,
        /// The most that are solved for.
        limit: usize,
    },
}
