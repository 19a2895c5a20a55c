//! n to infinity: the fluid limit of a model as a differential equation, its path and its fixed point.
mod balance;
mod dispatch;
mod drift;
#[cfg(test)]
mod drift_tests;
mod escape;
pub mod expansion;
mod explicit;
mod fixed_point;
mod flows;
mod integrate;
mod linear;
mod newton;
mod path;
mod precise;
mod response;
mod root;
mod rosenbrock;
mod routers;
mod stability;
mod step;
mod truncation;

pub use drift::{Drift, Scratch};
pub use fixed_point::{FixedPoint, Method, fixed_point};
pub use integrate::integrate;
pub use path::{Event, EventKind, Path, Plan, Snapshot, State};
pub use response::job_times;
pub use routers::Split;
pub use step::StepCounts;
pub use truncation::bracketed;

use thiserror::Error;

/// Why the fluid limit could not be computed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FluidError {
    /// No step size is small enough.
    #[error("the integration got stuck at time {time}: no step is small enough; a larger tolerance may help")]
    Stuck {
        /// Where.
        time: f64,
    },
    /// The queues are too long to represent.
    #[error("{states} server states would be needed, more than {most}: shorten the horizon or the buffers")]
    TooManyLevels {
        /// States needed.
        states: usize,
        /// States allowed.
        most: usize,
    },
    /// The theory of unequal routers is for exponential service at speed 1.
    #[error(
        "the limit of routers that are not alike is known for exponential service at speed 1 only; give each \
         router messages, and messages at time 0, in proportion to its jobs"
    )]
    PhasesWithRouters,
    /// Whose router is told when one of several slots becomes free is not defined.
    #[error("pull with several routers needs pools with one slot")]
    SlotsWithRouters,
    /// Where messages that are out of date are kept, there is no equation for the fixed point.
    #[error(
        "no fixed point was found for routers that keep messages out of date (the least drift was {residual:e}): \
         queues may grow for ever; with `message = \"withdraw\"` growth rates can be computed"
    )]
    KeptMessages {
        /// Smallest drift met.
        residual: f64,
    },
    /// Newton's method did not settle on a feasible zero of the drift.
    #[error(
        "no fixed point was found (the best residual was {residual:e}); the system may be too close to critical"
    )]
    NoFixedPoint {
        /// Smallest residual met.
        residual: f64,
    },
}
