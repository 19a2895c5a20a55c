//! Files that appear whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file could not be written.
#[derive(Debug, Error)]
pub enum FileError {
    /// The folder is missing.
    #[error("cannot write {path}: the folder {folder} does not exist; create it first")]
    NoFolder {
        /// The file asked for.
        path: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// The path is a folder.
    #[error("cannot write {0}: it is a folder; give a file name")]
    IsFolder(PathBuf),
    /// The system refused.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The folder that a path names a file in; a bare file name is in the current one.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|f| !f.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Where a path leads: a link is followed, so that the file it names is written and not the link replaced.
pub(super) fn behind_links(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Is the path a device or a pipe, say `/dev/null`? Such a thing is written to, never replaced by a file.
fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Checks that `path` can be written, so that a long run does not end in an error.
///
/// # Errors
/// If the folder is missing or not writable, or the path is a folder.
pub fn check(path: &Path) -> Result<(), FileError> {
    if is_device(path) { Ok(()) } else { temporary(&behind_links(path)).map(drop) }
}

/// Writes `text` to `path` by way of a temporary file in the same folder; to a device or a pipe as it is.
///
/// # Errors
/// As [`check`], or if the disk is full.
pub fn write(path: &Path, text: &str) -> Result<(), FileError> {
    let failed = |source| FileError::Write { path: path.to_owned(), source };
    if is_device(path) {
        let device = fs::OpenOptions::new().write(true).open(path);
        return device.and_then(|mut device| device.write_all(text.as_bytes())).map_err(failed);
    }
    let path = &behind_links(path);
    let mut file = temporary(path)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

fn temporary(path: &Path) -> Result<tempfile::NamedTempFile, FileError> {
    let folder = folder_of(path);
    if path.is_dir() {
        return Err(FileError::IsFolder(path.to_owned()));
    }
    if !fs::metadata(&folder).is_ok_and(|m| m.is_dir()) {
        return Err(FileError::NoFolder { path: path.to_owned(), folder });
    }
    temporary_in(&folder, ".result-", "").map_err(|source| FileError::Write { path: path.to_owned(), source })
}

/// A file in `folder` that is removed again unless it is renamed.
pub(super) fn temporary_in(folder: &Path, prefix: &str, suffix: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(suffix);
    // Temporary files are private by default; a result gets the rights any new file gets.
    #[cfg(unix)]
    builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder.tempfile_in(folder)
}
