//! fluidlimit: fluid limits of large service systems.

pub mod fluid;

pub mod finite;
pub mod model;
pub mod spec;
