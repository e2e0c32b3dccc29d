//! `tidegate upgrade-config`: replaces old names of keys in the files of a configuration.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use crate::command_error::CommandError;
use crate::config::{CONFIG_FILE_NAME, LoadedConfig, UpgradedFile, upgrade_files};
use crate::options::GlobalOptions;
use crate::output;

/// Replace old names of keys in a configuration and the files that it includes; each changed file has a backup
#[derive(Debug, Args)]
pub(crate) struct UpgradeConfigCommand {
    /// The configuration [default: tidegate.yaml in the current folder]
    file: Option<PathBuf>,

    /// Print the changes without writing them
    #[arg(long)]
    dry_run: bool,
}

impl UpgradeConfigCommand {
    pub(crate) fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let named = self.file.or_else(|| options.config.clone());
        let file = named.unwrap_or_else(|| PathBuf::from(CONFIG_FILE_NAME));
        let upgraded = upgrade_files(&file)?;
        let mut keys = 0;
        for file in &upgraded {
            for (line, old, new) in &file.renamed {
                output::print(format_args!("{}:{line}: {old} is now {new}\n", file.path.display()))?;
            }
            keys += file.renamed.len();
            if !self.dry_run {
                replace(file)?;
            }
        }
        let effect = if self.dry_run { "would be replaced" } else { "replaced" };
        output::print(format_args!("{}: {keys} keys {effect}\n", file.display()))?;
        if !self.dry_run {
            // Templates in an old syntax remain, because their replacement needs a decision.
            LoadedConfig::read(&file)?
                .deprecations()
                .iter()
                .for_each(|text| output::print_note(format_args!("{text}\n")));
        }
        Ok(())
    }
}

/// Replaces the file at once, with its permissions, and keeps the old one as `FILE.bak`.
fn replace(file: &UpgradedFile) -> anyhow::Result<()> {
    let path = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
    let mut backup = path.clone().into_os_string();
    backup.push(".bak");
    let backup = PathBuf::from(backup);
    let kept = std::fs::OpenOptions::new().write(true).create_new(true).open(&backup);
    let mut kept = kept.with_context(|| format!("cannot keep the old file as {}", backup.display()))?;
    kept.write_all(file.before.as_bytes()).with_context(|| format!("cannot write {}", backup.display()))?;
    let failed = || format!("cannot write {}", path.display());
    let permissions = std::fs::metadata(&path).with_context(failed)?.permissions();
    // The old file may contain a secret that only its owner may read.
    std::fs::set_permissions(&backup, permissions.clone()).with_context(failed)?;
    let folder = path.parent().unwrap_or(std::path::Path::new("/"));
    let mut new = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
    new.write_all(file.after.as_bytes()).with_context(failed)?;
    new.as_file().set_permissions(permissions).with_context(failed)?;
    new.as_file().sync_all().with_context(failed)?;
    new.persist(&path).map_err(|error| error.error).with_context(failed)?;
    Ok(())
}
