//! Runs made of both readings: the fluid beside finite n, and a model's own expectations.

mod converge;
mod expect;

pub use converge::{Convergence, Curve, Pair, Slope};
pub use expect::{Checked, check};
