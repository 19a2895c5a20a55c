//! `converge`: the fluid's error over n.

use super::args::Common;
use super::error::CliError;
use super::session::{Session, grid};
use super::simulate::SAMPLES;
use crate::finite;
use crate::output::figures;
use crate::run::Convergence;
use std::process::ExitCode;

pub(super) fn run(options: &Common) -> Result<ExitCode, CliError> {
    let session = Session::open(options)?;
    session.needs_intervals()?;
    let times = grid(session.system.fluid.horizon.min(session.system.finite.horizon), SAMPLES);
    let fluid = session.fluid(Some(times.clone()))?;
    let runs = session.finite(finite::simulate, &fluid, &times, true)?;
    let convergence = Convergence::new(&session.system.model, &fluid.path, &fluid.fixed, &runs);
    let figure = options.plot.is_some().then(|| figures::convergence(&convergence, &session.system.model));
    let mut document = session.document(true);
    document.convergence = Some(convergence);
    session.deliver(&document, figure.as_ref())
}
