//! The token that proves who calls a server: from the command line, a file or the environment.

use std::fmt;
use std::path::Path;

use crate::failure::Failure;

/// Holds the token where neither the flag nor the file does.
const BEARER_VARIABLE: &str = "TIDEGATE_BEARER";

/// Text of the command line that must not be shown.
#[derive(Clone)]
pub(crate) struct Token(String);

impl From<String> for Token {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The token of the flag, else of the file, else of the environment, as `parse` reads it.
pub(crate) fn read<Bearer, Wrong: fmt::Display>(
    flag: Option<&Token>,
    file: Option<&Path>,
    parse: impl FnOnce(&str) -> Result<Bearer, Wrong>,
) -> Result<Option<Bearer>, Failure> {
    let (text, place) = match (flag, file) {
        (Some(Token(text)), _) => (text.clone(), "--bearer".to_owned()),
        (None, Some(file)) => {
            let place = format!("--bearer-file {}", file.display());
            let text = std::fs::read_to_string(file);
            (text.map_err(|error| Failure::Usage(format!("{place}: {error}")))?, place)
        }
        (None, None) => match std::env::var(BEARER_VARIABLE) {
            Ok(text) if !text.is_empty() => (text, BEARER_VARIABLE.to_owned()),
            _ => return Ok(None),
        },
    };
    parse(&text).map(Some).map_err(|error| Failure::Usage(format!("{place}: {error}")))
}
