//! What a reader gets: results as figures. Knows results, not solvers.

pub mod plot;
