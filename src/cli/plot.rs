//! `plot`: a figure, and nothing on standard output.

use super::args::{Kind, PlotOptions};
use super::converge::pairs;
use super::error::CliError;
use super::session::{Session, grid};
use super::simulate::SAMPLES;
use crate::finite;
use crate::output::figures;
use crate::run::Convergence;
use std::process::ExitCode;

pub(super) fn run(options: &PlotOptions) -> Result<ExitCode, CliError> {
    if options.common.output.plot.is_none() {
        return Err(CliError::Usage("plot needs --plot FILE, with FILE ending in .svg or .png".into()));
    }
    let session = Session::open(&options.common)?;
    let model = &session.system.model;
    let s = &session.system;
    // A few paths show what paths are like; intervals need all.
    let all_paths = options.kind != Kind::Trajectory;
    if options.kind == Kind::Convergence {
        session.needs_intervals()?;
    }
    let points = if options.kind == Kind::Trajectory { s.fluid.points } else { SAMPLES };
    // Finite paths end at their own horizon; the fluid is drawn to its own.
    let times = grid(s.fluid.horizon, points);
    if options.kind != Kind::Convergence {
        session.needs_one_size()?;
    }
    let fluids = session.fluids(&times)?;
    let runs = session.finite(finite::simulate, &fluids, &times, all_paths)?;
    let fluid = &fluids[0];
    let figure = match options.kind {
        Kind::Trajectory => {
            let tails = figures::default_tails(model, &fluid.path);
            figures::trajectory(model, &fluid.path, Some(&fluid.fixed), &runs, &tails)?
        }
        Kind::Levels => figures::levels(model, &fluid.path, &fluid.fixed, &runs)?,
        Kind::Convergence => figures::convergence(&Convergence::new(model, &pairs(&fluids, &runs)), model),
    };
    options.common.output.draw(&figure)?;
    let interrupted = runs.iter().any(|run| run.interrupted) || runs.len() < s.finite.sizes.len();
    Ok(ExitCode::from(if interrupted { 130 } else { 0 }))
}
