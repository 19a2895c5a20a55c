//! What a reader gets: results as tables, JSON, CSV and figures. Knows results, not solvers.

pub mod csv;
pub mod document;
mod events;
pub mod figures;
pub mod file;
pub mod fit;
pub mod plot;
pub mod table;
