//! Runs made of many tasks: the fluid beside finite n.

mod converge;

pub use converge::{Convergence, Curve, Slope};
