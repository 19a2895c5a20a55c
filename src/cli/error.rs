//! What stops a command, and with which exit code.

use crate::finite::{ExactError, FiniteError};
use crate::fluid::FluidError;
use crate::output::figures::FigureError;
use crate::output::file::FileError;
use crate::output::plot::PlotError;
use crate::spec::SpecError;
use std::io;
use thiserror::Error;

/// Why a command stopped.
#[derive(Debug, Error)]
pub enum CliError {
    /// The model file.
    #[error("{}", .0.render(false))]
    Spec(#[from] SpecError),
    /// The command line.
    #[error("error: {0}")]
    Usage(String),
    /// The fluid limit could not be computed.
    #[error("error: {0}")]
    Fluid(#[from] FluidError),
    /// The simulation could not be run.
    #[error("error: {0}")]
    Finite(#[from] FiniteError),
    /// There is no exact solution.
    #[error("error: {0}")]
    Exact(#[from] ExactError),
    /// No law could be fitted to the data.
    #[error("error: no law can be fitted to these service times: {0}")]
    Fit(String),
    /// A result file.
    #[error("error: {0}")]
    File(#[from] FileError),
    /// What a figure shows.
    #[error("error: {0}")]
    Figure(#[from] FigureError),
    /// Drawing a figure.
    #[error("error: {0}")]
    Plot(#[from] PlotError),
    /// Standard output.
    #[error("error: cannot write to standard output: {0}")]
    Stdout(io::Error),
    /// The result could not be put into its format.
    #[error("error: cannot render the result: {0}")]
    Render(String),
    /// Interrupted before anything was finished.
    #[error("interrupted before any replication was finished")]
    Interrupted,
}

impl CliError {
    /// 0 for a reader that went away, 2 for what the user can mend in the call or the model, 3 for
    /// numerical and I/O failures, 130 after an interruption.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Stdout(e) if e.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Interrupted | Self::Finite(FiniteError::Interrupted) => 130,
            Self::Exact(ExactError::NotConverged { .. }) => 3,
            Self::Spec(_) | Self::Usage(_) | Self::Finite(_) | Self::Exact(_) => 2,
            Self::File(FileError::NoFolder { .. } | FileError::IsFolder(_)) => 2,
            Self::Plot(
                PlotError::Suffix { .. } | PlotError::NoFolder { .. } | PlotError::IsFolder { .. },
            ) => 2,
            Self::Fit(_)
            | Self::Fluid(_)
            | Self::File(_)
            | Self::Figure(_)
            | Self::Plot(_)
            | Self::Stdout(_)
            | Self::Render(_) => 3,
        }
    }
}

impl CliError {
    /// The message, in colour if `color`.
    #[must_use]
    pub fn report(&self, color: bool) -> String {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        match self {
            Self::Spec(error) => error.render(color && !plain).trim_end().to_owned(),
            other => other.to_string(),
        }
    }
}
