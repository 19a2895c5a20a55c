//! `simulate`: finite n, beside the fluid.

use super::args::{SamplerChoice, SimulateOptions};
use super::error::CliError;
use super::session::{Session, grid};
use crate::finite;
use crate::output::figures;
use std::process::ExitCode;

/// Times at which finite paths are recorded.
pub(super) const SAMPLES: u32 = 101;

pub(super) fn run(options: &SimulateOptions) -> Result<ExitCode, CliError> {
    let sample = match options.sampler {
        SamplerChoice::Counts => finite::simulate,
        SamplerChoice::Servers => finite::simulate_servers,
    };
    let session = Session::open(&options.common)?;
    if options.common.output.plot.is_some() {
        session.needs_one_size()?;
    }
    let (fluid_horizon, horizon) = (session.system.fluid.horizon, session.system.finite.horizon);
    let times = grid(fluid_horizon.min(horizon), SAMPLES);
    let fluids = session.fluids(&times)?;
    let runs = session.finite(sample, &fluids, &times, options.common.output.plot.is_some())?;
    let fluid = session.described(&fluids);
    let mut document = session.document(true);
    document.sizes = session.sizes(&fluids);
    document.fluid = Some(session.fluid_part(fluid));
    document.finite = session.finite_parts(&runs);
    let levels = || figures::levels(&session.system.model, &fluid.path, &fluid.fixed, &runs);
    let figure = options.common.output.plot.is_some().then(levels).transpose()?;
    session.deliver(&document, figure.as_ref())
}
