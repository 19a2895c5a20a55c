//! `converge`: the fluid's error over n.

use super::args::Common;
use super::error::CliError;
use super::session::{Session, grid};
use super::simulate::SAMPLES;
use crate::output::figures;
use crate::run::Convergence;
use std::process::ExitCode;

pub(super) fn run(options: &Common) -> Result<ExitCode, CliError> {
    let session = Session::open(options)?;
    if session.system.finite.replications < 2 {
        let advice = "an error over n needs an interval: set finite.replications to 2 or more";
        return Err(CliError::Usage(advice.into()));
    }
    let times = grid(session.system.fluid.horizon.min(session.system.finite.horizon), SAMPLES);
    let fluid = session.fluid(Some(times.clone()))?;
    let runs = session.finite(&fluid, &times, true)?;
    let convergence = Convergence::new(&session.system.model, &fluid.path, &fluid.fixed, &runs);
    let figure = options.plot.is_some().then(|| figures::convergence(&convergence, &session.system.model));
    let mut document = session.document(true);
    document.convergence = Some(convergence);
    session.deliver(&document, figure.as_ref())
}
