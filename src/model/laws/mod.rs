//! The named service laws: each file is one way to make a [`PhaseType`](super::PhaseType).

mod coxian;
mod data;
mod dhr;
mod em;
mod erlang;
mod exponential;
mod hyper_erlang;
mod hyperexponential;
mod matrix;
mod mixing;
mod moments;
mod search;

pub use data::{DataFit, Family, Fitted, Sample};
pub use dhr::Decreasing;
pub use moments::MomentFit;
