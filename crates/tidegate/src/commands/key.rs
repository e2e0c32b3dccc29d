//! `tidegate key`: API keys of callers over a network.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use tidegate_auth::{KeyFile, KeyStatus};

use crate::command_error::CommandError;
use crate::config::{LoadedConfig, unknown_role_message};
use crate::options::GlobalOptions;
use crate::output;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Add, list and revoke API keys
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key and print it; the key is not stored and cannot be printed again
    Add {
        /// Name of the key's owner
        name: String,
        /// Role of the key; can be repeated
        #[arg(long = "role", value_name = "ROLE", required = true)]
        roles: Vec<String>,
        /// Tenant of the key
        #[arg(long, value_name = "TENANT")]
        tenant: Option<String>,
        /// Days after which the key expires [default: never]
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
        expires: Option<u32>,
        #[command(flatten)]
        file: KeyFileArgument,
    },
    /// List the keys, without their secrets
    List {
        #[command(flatten)]
        file: KeyFileArgument,
    },
    /// Revoke a key at once
    Revoke {
        /// The name or the id of the key
        key: String,
        #[command(flatten)]
        file: KeyFileArgument,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KeyFileArgument {
    /// The file of keys [default: auth.keys of the configuration]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl KeyCommand {
    pub(crate) fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        match self {
            Self::Add { name, roles, tenant, expires, file } => {
                add(&name, &roles, tenant.as_deref(), expires, &file, options)
            }
            Self::List { file } => list(&file.open_key_file(options)?),
            Self::Revoke { key, file } => {
                let revoked = file.open_key_file(options)?.revoke(&key).map_err(usage_failure)?;
                output::print(format_args!("revoked: {}, {}…\n", revoked.name, revoked.prefix()))
            }
        }
    }
}

impl KeyFileArgument {
    /// The file of keys. `--file` needs no configuration, so that keys can be revoked while the configuration is invalid.
    fn open_key_file(&self, options: &GlobalOptions) -> Result<KeyFile, CommandError> {
        match &self.file {
            Some(path) => Ok(KeyFile::new(path)),
            None => Ok(self.open_with_config(options)?.0),
        }
    }

    fn open_with_config(&self, options: &GlobalOptions) -> Result<(KeyFile, Option<LoadedConfig>), CommandError> {
        let loaded = options.load_config()?;
        let named = loaded.as_ref().and_then(|loaded| Some(loaded.resolve(loaded.config.auth().keys.as_ref()?)));
        match self.file.clone().or(named) {
            Some(path) => Ok((KeyFile::new(path), loaded)),
            None => Err(CommandError::Usage(
                "where are the keys? Name the file with --file, or in the configuration:\n\n    auth:\n      keys: tidegate-keys.json"
                    .to_owned(),
            )),
        }
    }
}

fn add(
    name: &str,
    roles: &[String],
    tenant: Option<&str>,
    expires: Option<u32>,
    file: &KeyFileArgument,
    options: &GlobalOptions,
) -> Result<(), CommandError> {
    let (keys, loaded) = file.open_with_config(options)?;
    if let Some(loaded) = &loaded {
        let known_roles: Vec<&str> = loaded.config.roles.iter().map(|role| role.name.as_str()).collect();
        if let Some(unknown) = roles.iter().find(|role| !known_roles.contains(&role.as_str())) {
            return Err(CommandError::Usage(unknown_role_message(unknown, &known_roles)));
        }
    }
    let expires = expires.map(|days| (SystemTime::now() + DAY * days).into());
    let added = keys.add_for_tenant(tenant, name, roles, expires).map_err(usage_failure)?;
    // Only the key goes to standard output, so that it can be redirected without being seen.
    output::print(format_args!("{}\n", added.key.expose()))?;
    output::print_note(format_args!(
        "the key of {name} cannot be printed again; only its digest is stored, in {}. Callers send it as\n\n    \
         Authorization: Bearer {}…\n",
        keys.path().display(),
        added.status.prefix()
    ));
    Ok(())
}

fn list(keys: &KeyFile) -> Result<(), CommandError> {
    let lines: Vec<String> = keys.list().map_err(usage_failure)?.iter().map(describe_key).collect();
    output::print(lines.concat())
}

fn describe_key(key: &KeyStatus) -> String {
    let day = |time: &dyn std::fmt::Display| time.to_string().chars().take(10).collect::<String>();
    let expires = key.expires.as_ref().map_or_else(|| "never".to_owned(), |time| day(time));
    let tenant = key.tenant.as_ref().map(|tenant| format!("  tenant: {tenant}")).unwrap_or_default();
    format!(
        "{}…  {:8}  {}  roles: {}{tenant}  added {}  expires {expires}\n",
        key.prefix(),
        key.state.name(),
        key.name,
        key.roles.join(", "),
        day(&key.created),
    )
}

fn usage_failure(error: tidegate_auth::KeyFileError) -> CommandError {
    CommandError::Usage(error.to_string())
}
