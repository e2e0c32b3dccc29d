//! `tidegate token`: tokens for development, signed with a development key.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use tidegate_auth::{Clock, DevelopmentKey, DevelopmentToken};

use crate::command_error::CommandError;
use crate::options::GlobalOptions;
use crate::output;
use crate::quantity;

const KEY_FILE: &str = "development-key.pem";
const EXPIRES_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const CLAIMS_MAX: usize = 64;

/// Create tokens without an identity provider, for development only
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a key that signs tokens, and print the lines for auth.tokens
    Key {
        /// File to create for the private key, readable only by its owner; the public key is written to a file beside
        /// it
        #[arg(long, value_name = "FILE", default_value = KEY_FILE)]
        key: PathBuf,
    },
    /// Create a token and print it
    New(TokenNewArguments),
}

/// The content of a token.
#[derive(Debug, Args)]
pub(crate) struct TokenNewArguments {
    /// Subject of the token
    #[arg(long, value_name = "NAME")]
    subject: String,
    /// Further claim; a value that is valid JSON is read as JSON, any other as text; can be repeated
    #[arg(long = "claim", value_name = "NAME=VALUE")]
    claims: Vec<String>,
    /// Lifetime of the token
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = quantity::duration)]
    expires: Duration,
    /// File of the key that signs the token
    #[arg(long, value_name = "FILE", default_value = KEY_FILE)]
    key: PathBuf,
    /// Issuer of the token [default: auth.tokens.issuer of the configuration]
    #[arg(long, value_name = "ISSUER")]
    issuer: Option<String>,
    /// Audience of the token [default: the first of auth.tokens.audience of the configuration]
    #[arg(long, value_name = "AUDIENCE")]
    audience: Option<String>,
}

impl TokenCommand {
    pub(crate) fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        match self {
            Self::Key { key } => create_key(&key),
            Self::New(token) => token.print(options),
        }
    }
}

fn create_key(path: &Path) -> Result<(), CommandError> {
    let public = path.with_extension("pub.pem");
    if public.exists() {
        return Err(CommandError::Usage(format!(
            "{} exists already; name another file, or delete it",
            public.display()
        )));
    }
    let key = DevelopmentKey::create(path).map_err(CommandError::Usage)?;
    let text = key.public_key_pem().map_err(CommandError::Usage)?;
    let written = OpenOptions::new().create_new(true).write(true).open(&public);
    written
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| CommandError::Usage(format!("cannot write {}: {error}", public.display())))?;
    print_warning(&format!(
        "anyone holding {} can impersonate any principal; on a network, use an identity provider",
        path.display()
    ));
    // JSON is valid YAML, whatever the file name contains.
    let public = Value::from(public.to_string_lossy().into_owned());
    let (issuer, audience) = (DevelopmentKey::ISSUER, DevelopmentKey::AUDIENCE);
    let algorithm = DevelopmentKey::ALGORITHM;
    output::print(format_args!(
        "auth:\n  tokens:\n    issuer: {issuer}\n    audience: {audience}\n    algorithms: [{algorithm}]\n    \
         public_key: {public}\n    tenant_claim: tenant\n"
    ))
}

impl TokenNewArguments {
    fn print(self, options: &GlobalOptions) -> Result<(), CommandError> {
        if self.expires > EXPIRES_MAX {
            let days = EXPIRES_MAX.as_secs() / (24 * 60 * 60);
            return Err(CommandError::Usage(format!("a development token is valid for at most {days} days")));
        }
        let claims = parse_claims(&self.claims)?;
        let key = DevelopmentKey::read(&self.key).map_err(CommandError::Usage)?;
        let (issuer, audience) = match (self.issuer, self.audience) {
            (Some(issuer), Some(audience)) => (issuer, audience),
            (issuer, audience) => {
                let (default_issuer, default_audience) = configured_issuer(options)?
                    .unwrap_or_else(|| (DevelopmentKey::ISSUER.to_owned(), DevelopmentKey::AUDIENCE.to_owned()));
                (issuer.unwrap_or(default_issuer), audience.unwrap_or(default_audience))
            }
        };
        let (subject, expires_in) = (self.subject, self.expires);
        let token = DevelopmentToken { issuer, audience, subject, claims, expires_in };
        let signed = key.sign(&token, &Clock::default()).map_err(CommandError::Usage)?;
        // Only the token goes to standard output, so that it can be redirected without being seen.
        output::print(format_args!("{}\n", signed.expose()))?;
        let minutes = expires_in.as_secs().div_ceil(60);
        print_warning(&format!(
            "a token of {} from {} for {}, valid for {minutes} minutes; it cannot be revoked before",
            token.subject, token.issuer, token.audience
        ));
        Ok(())
    }
}

fn configured_issuer(options: &GlobalOptions) -> Result<Option<(String, String)>, CommandError> {
    let loaded = options.load_config()?;
    let tokens = loaded.as_ref().and_then(|loaded| loaded.config.auth().tokens.clone());
    let audience = |tokens: crate::config::TokensConfig| {
        let audience = tokens.audience.into_vec().into_iter().next();
        audience.map(|audience| (tokens.issuer, audience))
    };
    Ok(tokens.and_then(audience))
}

fn parse_claims(texts: &[String]) -> Result<Map<String, Value>, CommandError> {
    if texts.len() > CLAIMS_MAX {
        return Err(CommandError::Usage(format!("a token has at most {CLAIMS_MAX} claims")));
    }
    let mut claims = Map::new();
    for text in texts {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => (name, value),
            _ => {
                return Err(CommandError::Usage(format!(
                    "{text:?} is no claim; write it as NAME=VALUE, such as tenant=north"
                )));
            }
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        if claims.insert(name.to_owned(), value).is_some() {
            return Err(CommandError::Usage(format!(
                "the claim {name:?} occurs twice; for a list write {name}=[\"a\",\"b\"]"
            )));
        }
    }
    Ok(claims)
}

fn print_warning(text: &str) {
    output::print_note(format_args!("FOR DEVELOPMENT ONLY: {text}\n"));
}
