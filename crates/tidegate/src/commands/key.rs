//! `tidegate key`: API keys for those who call over a network.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use tidegate_auth::{KeyFile, KeyStatus};

use crate::config::{FILE_NAME, Loaded};
use crate::failure::Failure;
use crate::options::Options;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Add, list and revoke API keys
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key and print it; it is kept nowhere and cannot be printed again
    Add {
        /// Whose key it is
        name: String,
        /// A role that the key has; may be repeated
        #[arg(long = "role", value_name = "ROLE", required = true)]
        roles: Vec<String>,
        /// The tenant that it belongs to
        #[arg(long, value_name = "TENANT")]
        tenant: Option<String>,
        /// Days after which it is no longer good [default: never]
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
        expires: Option<u32>,
        #[command(flatten)]
        file: FileArgument,
    },
    /// List the keys, without what proves them
    List {
        #[command(flatten)]
        file: FileArgument,
    },
    /// End a key at once
    Revoke {
        /// The name or the id of the key
        key: String,
        #[command(flatten)]
        file: FileArgument,
    },
}

/// Where the keys are.
#[derive(Debug, Args)]
pub(crate) struct FileArgument {
    /// The file of keys [default: auth.keys of the configuration]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Key {
    pub(crate) fn run(self, options: &Options) -> Result<(), Failure> {
        match self {
            Self::Add { name, roles, tenant, expires, file } => {
                add(&name, &roles, tenant.as_deref(), expires, &file, options)
            }
            Self::List { file } => list(&file.keys_alone(options)?),
            Self::Revoke { key, file } => {
                let revoked = file.keys_alone(options)?.revoke(&key).map_err(unusable)?;
                Ok(writeln!(std::io::stdout(), "revoked: {}, {}…", revoked.name, revoked.prefix())?)
            }
        }
    }
}

impl FileArgument {
    /// The file. One that is named needs no configuration: a key can be revoked while that is broken.
    fn keys_alone(&self, options: &Options) -> Result<KeyFile, Failure> {
        match &self.file {
            Some(path) => Ok(KeyFile::new(path)),
            None => Ok(self.keys(options)?.0),
        }
    }

    /// The file, and the configuration that names it.
    fn keys(&self, options: &Options) -> Result<(KeyFile, Option<Loaded>), Failure> {
        let config = options.config.clone().or_else(|| Path::new(FILE_NAME).is_file().then(|| FILE_NAME.into()));
        let loaded = config.map(|path| Loaded::read(&path)).transpose()?;
        let named = loaded.as_ref().and_then(|loaded| Some(loaded.resolve(loaded.config.auth().keys.as_ref()?)));
        match self.file.clone().or(named) {
            Some(path) => Ok((KeyFile::new(path), loaded)),
            None => Err(Failure::Usage(
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
    file: &FileArgument,
    options: &Options,
) -> Result<(), Failure> {
    let (keys, loaded) = file.keys(options)?;
    if let Some(loaded) = &loaded {
        let known: Vec<&str> = loaded.config.roles.iter().map(|role| role.name.as_str()).collect();
        if let Some(unknown) = roles.iter().find(|role| !known.contains(&role.as_str())) {
            let message = format!("there is no role {unknown:?} in the configuration; known are {}", known.join(", "));
            return Err(Failure::Usage(message));
        }
    }
    let expires = expires.map(|days| (SystemTime::now() + DAY * days).into());
    let added = keys.add_to(tenant, name, roles, expires).map_err(unusable)?;
    // The key alone goes to standard output, so that it can be put where it belongs without being seen.
    writeln!(std::io::stdout(), "{}", added.key.expose())?;
    let text = format!(
        "this key of {name} is shown once; only its digest is kept, in {}. Callers send it as\n\n    \
         Authorization: Bearer {}…\n",
        keys.path().display(),
        added.status.prefix()
    );
    // Without standard error there is nobody to tell.
    let _ = anstream::stderr().write_all(text.as_bytes());
    Ok(())
}

fn list(keys: &KeyFile) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    for key in keys.list().map_err(unusable)? {
        writeln!(output, "{}", described(&key))?;
    }
    Ok(output.flush()?)
}

fn described(key: &KeyStatus) -> String {
    let day = |time: &dyn std::fmt::Display| time.to_string().chars().take(10).collect::<String>();
    let expires = key.expires.as_ref().map_or_else(|| "never".to_owned(), |time| day(time));
    let tenant = key.tenant.as_ref().map(|tenant| format!("  tenant: {tenant}")).unwrap_or_default();
    format!(
        "{}…  {:8}  {}  roles: {}{tenant}  added {}  expires {expires}",
        key.prefix(),
        key.state.name(),
        key.name,
        key.roles.join(", "),
        day(&key.created),
    )
}

fn unusable(error: tidegate_auth::KeyFileError) -> Failure {
    Failure::Usage(error.to_string())
}
