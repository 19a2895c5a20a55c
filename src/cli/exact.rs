//! `exact`: the chain of n servers, solved, beside the fluid.

use super::args::Common;
use super::error::CliError;
use super::session::{Session, grid, one_each};
use crate::finite::{self, Size};
use crate::output::document::ExactPart;
use std::process::ExitCode;

pub(super) fn run(options: &Common) -> Result<ExitCode, CliError> {
    if options.output.plot.is_some() {
        return Err(CliError::Usage("exact draws no figure; leave out --plot".into()));
    }
    let session = Session::open(options)?;
    let system = &session.system;
    let announce = |size: &Size| {
        let Size { n, states, transitions, mebibytes, levels } = size;
        options.output.note(&format!(
            "n = {n}: {states} states, {transitions} transitions, {mebibytes} MiB, levels up to {levels:?}"
        ));
    };
    let times = grid(system.fluid.horizon, system.fluid.points);
    let fluids = session.fluids(&times)?;
    let mut document = session.document(false);
    let sizes = &system.finite.sizes;
    for (&n, fluid) in sizes.iter().zip(one_each(&fluids, sizes.len())) {
        let exact = finite::exact(&fluid.model, n, &system.fluid.initial, &times, &announce)?;
        document.exact.push(ExactPart::new(&system.model, &exact));
    }
    document.sizes = session.sizes(&fluids);
    document.fluid = Some(session.fluid_part(session.described(&fluids)));
    session.deliver(&document, None)
}
