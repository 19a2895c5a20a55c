//! `fit`: service laws for measured service times.

use super::args::{FitOptions, Format};
use super::error::CliError;
use super::session;
use crate::model::DataFit;
use crate::output::fit::{FitDocument, FitRun};
use crate::output::{figures, file, plot};
use crate::spec::{self, Source};
use std::process::ExitCode;

pub(super) fn run(options: &FitOptions) -> Result<ExitCode, CliError> {
    if let Some(path) = &options.plot {
        plot::check_path(path)?;
    }
    if let Some(path) = &options.out {
        file::check(path)?;
    }
    let source = Source::from(options.data.as_path());
    let sample = spec::sample(&source, options.column.as_deref())?;
    let fits = DataFit::all(&sample).map_err(|e| CliError::Fit(e.to_string()))?;
    let Some(chosen) = DataFit::chosen(&fits) else {
        return Err(CliError::Fit("no law has a finite likelihood".into()));
    };
    let run = FitRun { version: env!("CARGO_PKG_VERSION").into(), command: std::env::args().collect() };
    let document = FitDocument::new(source.label(), &sample, &fits, chosen, run);
    let text = match options.format {
        Format::Table => document.table(),
        Format::Csv => document.csv().map_err(|e| CliError::Render(e.to_string()))?,
        Format::Json => {
            serde_json::to_string_pretty(&document).map_err(|e| CliError::Render(e.to_string()))? + "\n"
        }
    };
    session::emit(options.out.as_deref(), &text)?;
    if let Some(path) = &options.plot {
        plot::write(&figures::survival(&source.label(), &sample, &fits, chosen), path)?;
    }
    Ok(ExitCode::SUCCESS)
}
