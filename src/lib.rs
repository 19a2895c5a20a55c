//! fluidlimit: fluid limits of large service systems.

pub mod model;
pub mod output;
