//! `fit`: service laws for measured service times.

use super::args::FitOptions;
use super::error::CliError;
use crate::model::DataFit;
use crate::output::figures;
use crate::output::fit::{FitDocument, FitRun};
use crate::spec::{self, Source};
use std::process::ExitCode;

pub(super) fn run(options: &FitOptions) -> Result<ExitCode, CliError> {
    let output = &options.output;
    output.check()?;
    let source = Source::from(options.data.as_path());
    let sample = spec::sample(&source, options.column.as_deref())?;
    let fits = DataFit::all(&sample).map_err(|e| CliError::Fit(e.to_string()))?;
    let Some(chosen) = DataFit::chosen(&fits) else {
        return Err(CliError::Fit("no law has a finite likelihood".into()));
    };
    let run = FitRun { version: env!("CARGO_PKG_VERSION").into(), command: std::env::args().collect() };
    let document = FitDocument::new(source.label(), &sample, &fits, chosen, run);
    output.print(&document, || document.table(), || document.csv())?;
    if output.plot.is_some() {
        output.draw(&figures::survival(&source.label(), &sample, &fits, chosen))?;
    }
    Ok(ExitCode::SUCCESS)
}
