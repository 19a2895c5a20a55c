//! What can go wrong when a figure is written.

use std::io;
use std::path::PathBuf;

/// Why a figure was not written. In every case the path holds what it held before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The suffix of the path names no format this module writes.
    #[error("{}: the suffix of a figure must be .svg or .png", path.display())]
    Suffix {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder that should hold the figure is not there.
    #[error("{}: there is no folder {}; make it, or choose another place for the figure", path.display(), folder.display())]
    NoFolder {
        /// The path as given.
        path: PathBuf,
        /// The folder that is missing.
        folder: PathBuf,
    },
    /// The path is a folder, so no file can take its place.
    #[error("{}: this is a folder; name a file in it", path.display())]
    IsFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder exists but no file can be made in it.
    #[error("cannot write into the folder {}: {source}", folder.display())]
    NotWritable {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file could not be written whole.
    #[error("cannot write the figure {}: {source}", path.display())]
    Write {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A figure has one to three panels.
    #[error("a figure has one to three panels, this one has {count}")]
    Panels {
        /// How many panels the figure has.
        count: usize,
    },
    /// The embedded font could not be read.
    #[error("the embedded font cannot be read: {source}")]
    Font {
        /// What the font reader said.
        source: ab_glyph::InvalidFont,
    },
    /// The drawing layer refused.
    #[error("cannot draw the figure: {message}")]
    Draw {
        /// What the drawing layer said.
        message: String,
    },
}
