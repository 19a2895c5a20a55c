//! The command line: one file per subcommand, no numerics.

mod args;
mod check;
mod converge;
mod error;
mod exact;
mod fit;
mod output;
mod plot;
mod session;
mod simulate;
mod solve;

pub use args::Cli;
pub use error::CliError;

use args::Command;
use std::process::ExitCode;

/// Runs a parsed command line.
///
/// # Errors
/// Whatever stops the command; see [`CliError::exit_code`].
pub fn run(cli: &Cli) -> Result<ExitCode, CliError> {
    match &cli.command {
        Command::Check(options) => check::run(options),
        Command::Solve(options) => solve::run(options),
        Command::Simulate(options) => simulate::run(options),
        Command::Exact(options) => exact::run(options),
        Command::Converge(options) => converge::run(options),
        Command::Plot(options) => plot::run(options),
        Command::Fit(options) => fit::run(options),
    }
}
