//! `simulate`: finite n, beside the fluid.

use super::args::Common;
use super::error::CliError;
use super::session::{Session, grid};
use crate::output::figures;
use std::process::ExitCode;

/// Times at which finite paths are recorded.
pub(super) const SAMPLES: u32 = 101;

pub(super) fn run(options: &Common) -> Result<ExitCode, CliError> {
    let session = Session::open(options)?;
    let (fluid_horizon, horizon) = (session.system.fluid.horizon, session.system.finite.horizon);
    let times = grid(fluid_horizon.min(horizon), SAMPLES);
    let fluid = session.fluid(Some(times.clone()))?;
    let runs = session.finite(&fluid, &times, options.plot.is_some())?;
    let mut document = session.document(true);
    document.fluid = Some(session.fluid_part(&fluid));
    document.finite = session.finite_parts(&runs);
    let levels = || figures::levels(&session.system.model, &fluid.path, &fluid.fixed, &runs);
    let figure = options.plot.is_some().then(levels).transpose()?;
    session.deliver(&document, figure.as_ref())
}
