//! Reading the model's text, whatever it comes from.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::error::{Problem, SpecError, printable};
use super::place::Sources;

/// The largest model file that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// What was read from standard input.
static STDIN: OnceLock<Vec<u8>> = OnceLock::new();

/// Where a model is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file.
    Path(PathBuf),
    /// Standard input.
    Stdin,
    /// A text in memory.
    Text {
        /// The name to show in messages.
        name: String,
        /// The TOML.
        text: String,
    },
}

impl From<&Path> for Source {
    /// `-` is standard input.
    fn from(path: &Path) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::Path(path.to_owned()) }
    }
}

impl Source {
    /// The name to show in messages, control characters escaped.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Path(path) => printable(&path.to_string_lossy()),
            Self::Stdin => "<stdin>".to_owned(),
            Self::Text { name, .. } => printable(name),
        }
    }

    /// The name of a model that does not give one itself: the file's name without its ending.
    pub(super) fn stem(&self) -> String {
        let path = match self {
            Self::Path(path) => path.as_path(),
            Self::Text { name, .. } => Path::new(name),
            Self::Stdin => Path::new("model"),
        };
        path.file_stem().map_or_else(|| "model".to_owned(), |s| s.to_string_lossy().into_owned())
    }

    /// The folder that paths in the model are relative to.
    pub(super) fn folder(&self) -> &Path {
        let path = match self {
            Self::Path(path) => path.as_path(),
            Self::Text { name, .. } => Path::new(name),
            Self::Stdin => Path::new(""),
        };
        path.parent().unwrap_or(Path::new(""))
    }

    /// The model.
    ///
    /// # Errors
    /// If it cannot be read, is larger than 16 MB, is not UTF-8, or holds nothing.
    pub(super) fn read(&self) -> Result<Sources, SpecError> {
        let (label, text) = (self.label(), self.text(LARGEST, "model")?);
        if text.trim_matches('\u{feff}').trim().is_empty() {
            return Err(SpecError::new(Problem::Read, &label, "the file is empty").help(
                "a model has a policy, `arrivals.rate` and at least one `[[pools]]` with `name`, `share` and `service`",
            ));
        }
        Ok(Sources::new(&label, text.into()))
    }

    /// The text of a file that is to be `what`.
    ///
    /// # Errors
    /// If it cannot be read, has more than `largest` bytes, or is not UTF-8.
    pub(super) fn text(&self, largest: u64, what: &str) -> Result<String, SpecError> {
        let label = self.label();
        let fail = |title: String| SpecError::new(Problem::Read, &label, title);
        let bytes = match self {
            Self::Text { text, .. } => Ok(text.clone().into_bytes()),
            // A model that is read again, for another n, is the one that was read first.
            Self::Stdin => match STDIN.get() {
                Some(bytes) => Ok(bytes.clone()),
                None => at_most(io::stdin().lock(), largest).map(|bytes| STDIN.get_or_init(|| bytes).clone()),
            },
            Self::Path(path) if path.is_dir() => {
                return Err(fail(format!("this is a directory, not a {what} file")));
            }
            Self::Path(path) => std::fs::File::open(path).and_then(|file| at_most(file, largest)),
        };
        let bytes = bytes.map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => fail("there is no such file".to_owned()),
            io::ErrorKind::PermissionDenied => fail("there is no permission to read this file".to_owned()),
            _ => fail(format!("the file cannot be read: {e}")),
        })?;
        if bytes.len() as u64 > largest {
            let size = largest >> 20;
            return Err(fail(format!("the file is larger than {size} MB, too large for a {what} file")));
        }
        String::from_utf8(bytes).map_err(|e| {
            let valid = e.utf8_error().valid_up_to();
            let lossy: Arc<str> = String::from_utf8_lossy(e.as_bytes()).into();
            let bad = valid..valid + char::REPLACEMENT_CHARACTER.len_utf8();
            fail("the file is not UTF-8 text".to_owned())
                .at(Sources::new(&label, lossy).place(&bad))
                .allowed("the first byte that is not UTF-8")
        })
    }
}

/// All bytes, or one more than the largest file has.
fn at_most(reader: impl Read, largest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(largest + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
