//! What a command needs to reach a server: its bearer token, from the command line, a file or the environment, and the
//! authorities that it trusts.

use std::path::Path;

use tidegate_client::{BearerToken, TrustedAuthorities};

use crate::command_error::CommandError;

/// Environment variable that contains the token, if neither the flag nor the file is given.
const BEARER_VARIABLE: &str = "TIDEGATE_BEARER";

/// An argument that must not appear in any output.
#[derive(Clone)]
pub(crate) struct SecretArgument(String);

impl From<String> for SecretArgument {
    fn from(text: String) -> Self {
        Self(text)
    }
}

tidegate_core::impl_debug!(SecretArgument, "Token(…)");

/// The authorities in the file that `--ca` names.
pub(crate) fn parse_authorities(file: &str) -> Result<TrustedAuthorities, String> {
    TrustedAuthorities::read(Path::new(file)).map_err(|error| error.to_string())
}

/// The token of the flag, else of the file, else of the environment.
pub(crate) fn read_bearer(
    flag: Option<&SecretArgument>,
    file: Option<&Path>,
) -> Result<Option<BearerToken>, CommandError> {
    let (text, source) = match (flag, file) {
        (Some(SecretArgument(text)), _) => (text.clone(), "--bearer".to_owned()),
        (None, Some(file)) => {
            let source = format!("--bearer-file {}", file.display());
            let text = std::fs::read_to_string(file);
            (text.map_err(|error| CommandError::Usage(format!("{source}: {error}")))?, source)
        }
        (None, None) => match std::env::var(BEARER_VARIABLE) {
            Ok(text) if !text.is_empty() => (text, BEARER_VARIABLE.to_owned()),
            _ => return Ok(None),
        },
    };
    BearerToken::parse(&text).map(Some).map_err(|error| CommandError::Usage(format!("{source}: {error}")))
}
