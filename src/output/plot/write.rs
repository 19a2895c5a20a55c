//! Writing a figure: the format by the suffix, the file whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::draw::draw;
use super::error::PlotError;
use super::figure::Figure;
use super::font::Fonts;
use super::layout::layout;
use super::markup::Rich;
use super::{png, svg};
use crate::output::file;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
}

/// Writes a figure to a file; the suffix, `.svg` or `.png`, decides the format.
///
/// The same figure gives the same bytes on every machine. The file appears whole or not at all: it is written
/// under another name in the same folder and then renamed.
///
/// # Errors
///
/// All variants of [`PlotError`]; the path then holds what it held before.
pub fn write(figure: &Figure, path: &Path) -> Result<(), PlotError> {
    let format = format_of(path)?;
    let folder = folder_of(path)?;
    let count = figure.panels.len();
    if !(1..=3).contains(&count) {
        return Err(PlotError::Panels { count });
    }
    let fonts = Fonts::load()?;
    let plan = layout(figure, &fonts);
    let failed = |source| PlotError::Write { path: path.to_owned(), source };
    let mut file = temporary(format, &folder).map_err(|source| PlotError::NotWritable { folder, source })?;
    match format {
        Format::Svg => {
            let title = Rich::parse(&figure.title).bare();
            let text =
                svg::page(plan.size, &title, &figure.description, |page| draw(page, figure, &plan, &fonts))?;
            file.write_all(text.as_bytes()).map_err(failed)?;
        }
        Format::Png => png::page(plan.size, &fonts, file.path(), |page| draw(page, figure, &plan, &fonts))?,
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(file::behind_links(path)).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Checks, without leaving anything behind, that a figure can be written to this path: before a long run,
/// rather than after it.
///
/// # Errors
///
/// [`PlotError::Suffix`], [`PlotError::IsFolder`], [`PlotError::NoFolder`], [`PlotError::NotWritable`].
pub fn check_path(path: &Path) -> Result<(), PlotError> {
    let format = format_of(path)?;
    let folder = folder_of(path)?;
    let probe = temporary(format, &folder).and_then(tempfile::NamedTempFile::close);
    probe.map_err(|source| PlotError::NotWritable { folder, source })
}

fn format_of(path: &Path) -> Result<Format, PlotError> {
    let suffix = path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase());
    match suffix.as_deref() {
        Some("svg") => Ok(Format::Svg),
        Some("png") => Ok(Format::Png),
        _ => Err(PlotError::Suffix { path: path.to_owned() }),
    }
}

fn folder_of(path: &Path) -> Result<PathBuf, PlotError> {
    if path.is_dir() {
        return Err(PlotError::IsFolder { path: path.to_owned() });
    }
    let folder = file::folder_of(&file::behind_links(path));
    if folder.is_dir() { Ok(folder) } else { Err(PlotError::NoFolder { path: path.to_owned(), folder }) }
}

/// A file beside the one to be written; it is removed again unless it is renamed.
fn temporary(format: Format, folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let suffix = if format == Format::Svg { ".svg" } else { ".png" };
    file::temporary_in(folder, ".figure-", suffix)
}
