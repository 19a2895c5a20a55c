//! fluidlimit: fluid limits of large service systems.

pub mod finite;
pub mod model;
