//! The command line program: parse, run, report.

use clap::Parser;
use fluidlimit::cli::{Cli, run};
use std::io::{IsTerminal, Write, stderr};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            let code = error.exit_code();
            if code != 0 {
                // Nothing can be done about a standard error that is closed.
                let _ = writeln!(stderr(), "{}", error.report(stderr().is_terminal()));
            }
            ExitCode::from(code)
        }
    }
}
