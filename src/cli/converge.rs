//! `converge`: the fluid's error over n.

use super::args::Common;
use super::error::CliError;
use super::session::{Fluid, Session, grid, one_each};
use super::simulate::SAMPLES;
use crate::finite::{self, Summary};
use crate::output::figures;
use crate::run::{Convergence, Pair};
use std::process::ExitCode;

pub(super) fn run(options: &Common) -> Result<ExitCode, CliError> {
    let session = Session::open(options)?;
    session.needs_intervals()?;
    let times = grid(session.system.fluid.horizon.min(session.system.finite.horizon), SAMPLES);
    let fluids = session.fluids(&times)?;
    let runs = session.finite(finite::simulate, &fluids, &times, true)?;
    let convergence = Convergence::new(&session.system.model, &pairs(&fluids, &runs));
    let figure =
        options.output.plot.is_some().then(|| figures::convergence(&convergence, &session.system.model));
    let mut document = session.document(true);
    document.sizes = session.sizes(&fluids);
    document.convergence = Some(convergence);
    session.deliver(&document, figure.as_ref())
}

/// Each run with its fluid.
pub(super) fn pairs<'a>(fluids: &'a [Fluid], runs: &'a [Summary]) -> Vec<Pair<'a>> {
    let fluids = one_each(fluids, runs.len());
    fluids.zip(runs).map(|(f, run)| Pair { path: &f.path, fixed: &f.fixed, run }).collect()
}
