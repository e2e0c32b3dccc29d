//! Errors of printing or writing a client's configuration.

use std::io;
use std::path::PathBuf;

use super::edit::EditError;

/// After an error, nothing has changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientConfigError {
    #[error("{name:?} cannot name a server: use at most 64 letters, digits, - and _")]
    Name { name: String },

    #[error("{name:?} cannot name an environment variable: use letters, digits and _")]
    Variable { name: String },

    #[error("the key must be visible ASCII characters without spaces, or no header can carry it")]
    Key,

    #[error("the path {} is not UTF-8, so a configuration file cannot name it", path.display())]
    CommandNotText { path: PathBuf },

    #[error("{client} would replace a part of {part} by a variable's value, because it contains {{ or $")]
    WouldReplace { client: &'static str, part: String },

    #[error(
        "{client} documents no way to take a key from the environment ({documentation}); \
         give the key itself, which then stands in the file"
    )]
    NoVariables { client: &'static str, documentation: &'static str },

    #[error("{client} does not read remote servers from its file; {instead}")]
    NoHttp { client: &'static str, instead: String },

    #[error("{client} has no such configuration file; {instead}")]
    NoFile { client: &'static str, instead: &'static str },

    #[error("cannot tell where the home folder is; set HOME, or name the file")]
    NoHome,

    #[error("{} stays as it is: {refusal}\n\nTo add the server by hand, paste this:\n\n{snippet}", path.display())]
    Refused { path: PathBuf, refusal: EditError, snippet: String },

    #[error("{} changed while it was being edited and stays as it is; try again", path.display())]
    ChangedMeanwhile { path: PathBuf },

    #[error("{} has as many backups as are kept; remove some of its .bak files", path.display())]
    TooManyBackups { path: PathBuf },

    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error("cannot write {}, so nothing is changed", path.display())]
    Write { path: PathBuf, source: io::Error },
}
