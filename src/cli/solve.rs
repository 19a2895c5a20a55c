//! `solve`: the fluid path, the fixed point, the model's expectations.

use super::args::Common;
use super::error::CliError;
use super::session::Session;
use crate::output::figures;
use std::process::ExitCode;

pub(super) fn run(options: &Common) -> Result<ExitCode, CliError> {
    let session = Session::open(options)?;
    session.needs_one_size()?;
    let fluid = session.fluid(None)?;
    let mut document = session.document(false);
    document.fluid = Some(session.fluid_part(&fluid));
    document.expect = session.expectations(&fluid);
    let trajectory = || {
        let tails = figures::default_tails(&session.system.model, &fluid.path);
        figures::trajectory(&session.system.model, &fluid.path, Some(&fluid.fixed), &[], &tails)
    };
    let figure = options.output.plot.is_some().then(trajectory).transpose()?;
    session.deliver(&document, figure.as_ref())
}
