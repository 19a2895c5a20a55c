//! Fluid limits of large service systems, cross-checked by exact simulation.

pub mod cli;
pub mod finite;
pub mod fluid;
pub mod model;
pub mod output;
pub mod run;
pub mod spec;
