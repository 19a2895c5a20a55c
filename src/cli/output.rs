//! Where a result goes, and how it is printed: the same for every command.

use super::error::CliError;
use crate::output::file;
use crate::output::plot::{self, Figure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;

/// What says where a result goes.
#[derive(Debug, Clone, Args)]
pub(super) struct Output {
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Write the result to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Draw the command's figure to this file (.svg or .png)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// No progress and no notes on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Table,
    /// One object
    Json,
    /// One number a row
    Csv,
}

impl Output {
    /// Refuses files that cannot be written, before any work.
    pub fn check(&self) -> Result<(), CliError> {
        if let Some(path) = &self.plot {
            plot::check_path(path)?;
        }
        if let Some(path) = &self.out {
            file::check(path)?;
        }
        Ok(())
    }

    /// Prints a result in the format asked for.
    pub fn print(
        &self,
        document: &impl Serialize,
        table: impl FnOnce() -> String,
        csv: impl FnOnce() -> Result<String, csv::Error>,
    ) -> Result<(), CliError> {
        let text = match self.format {
            Format::Table => table(),
            Format::Csv => csv().map_err(|e| CliError::Render(e.to_string()))?,
            Format::Json => {
                serde_json::to_string_pretty(document).map_err(|e| CliError::Render(e.to_string()))? + "\n"
            }
        };
        self.print_text(&text)
    }

    /// Sends text to the file asked for, or to standard output.
    pub fn print_text(&self, text: &str) -> Result<(), CliError> {
        match &self.out {
            Some(path) => Ok(file::write(path, text)?),
            None => stdout().lock().write_all(text.as_bytes()).map_err(CliError::Stdout),
        }
    }

    /// Draws the figure, if one is asked for, and says where it is.
    pub fn draw(&self, figure: &Figure) -> Result<(), CliError> {
        if let Some(path) = &self.plot {
            plot::write(figure, path)?;
            self.note(&format!("wrote {}", path.display()));
        }
        Ok(())
    }

    /// One line on standard error.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(stderr(), "note: {text}");
        }
    }
}
