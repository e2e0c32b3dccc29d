//! `tidegate audit`: verifies the audit log.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Subcommand;
use tidegate_runtime::audit::{AuditKey, AuditOptions, VerifyOptions, verify};

use crate::command_error::CommandError;
use crate::config::audit_options;
use crate::options::GlobalOptions;
use crate::output;

/// Verify the audit log
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Verify all lines of the log; reports the first line that does not match, with exit status 1
    Verify {
        /// Files of the log; older files beside them (.1, .2, …) are read too [default: audit.file of the
        /// configuration]
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// File that contains the key of the log [default: audit.key of the configuration, for its own log]
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
        /// Hash that was recorded elsewhere, of a line that must be in the log
        #[arg(long, value_name = "HASH")]
        contains_hash: Option<String>,
    },
}

impl AuditCommand {
    pub(crate) fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let Self::Verify { mut files, key_file, contains_hash } = self;
        let mut key = key_file.as_deref().map(read_key).transpose()?;
        if files.is_empty() {
            let configured = configured_audit(options)?;
            files.push(configured.file);
            key = key.or(configured.key);
        } else if key.is_none() {
            // The configuration has the key of its own log.
            let is_own = |log: &AuditOptions| files.iter().all(|file| belongs_to_log(file, &log.file));
            key = configured_audit(options).ok().filter(is_own).and_then(|log| log.key);
        }
        let verified = verify(&files, &VerifyOptions { key, required_hash: contains_hash });
        let verified = verified.map_err(|error| CommandError::Other(anyhow::Error::new(error)))?;
        for notice in &verified.notices {
            output::print(format_args!("note: {notice}\n"))?;
        }
        if !verified.has_head {
            output::print("note: there is no head beside the log, so lines cut off at its end cannot be detected\n")?;
        }
        let (first, last) = (verified.first, &verified.last);
        output::print(format_args!(
            "verified: {} lines, {first} to {}; the last has the hash {}\n",
            verified.lines, last.seq, last.hash
        ))
    }
}

/// Whether `file` is the log itself, or an older file of it.
fn belongs_to_log(file: &Path, log: &Path) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (file, log) = (absolute(file), absolute(log));
    let older = file.extension().is_some_and(|number| number.as_encoded_bytes().iter().all(u8::is_ascii_digit));
    file == log || (older && file.with_extension("") == log)
}

fn read_key(file: &Path) -> Result<AuditKey, CommandError> {
    let bytes = std::fs::read(file).with_context(|| format!("the key cannot be read: {}", file.display()))?;
    let too_short = || anyhow!("{} holds no key: it has {} bytes at least", file.display(), AuditKey::BYTES_MIN);
    Ok(AuditKey::new(&bytes).ok_or_else(too_short)?)
}

fn configured_audit(options: &GlobalOptions) -> Result<AuditOptions, CommandError> {
    let none = || CommandError::Usage("name the FILE to verify, or a configuration with audit.file".to_owned());
    let loaded = options.load_config()?.ok_or_else(none)?;
    audit_options(&loaded).map_err(|problem| loaded.to_error(&[problem]))?.ok_or_else(none)
}
