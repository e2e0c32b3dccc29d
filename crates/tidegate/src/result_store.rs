//! The store of the results of this node.

use std::path::PathBuf;
use std::sync::Arc;

use tidegate_results::{ResultStore, StoreLimits};

use crate::command_error::CommandError;
use crate::config::{LoadedConfig, ResultsEntry};
use crate::quantity;

/// Opens the store that the configuration asks for; none where it asks for none. A folder that it names must be usable;
/// without the one that is taken otherwise the node runs all the same.
pub(crate) async fn open(loaded: &LoadedConfig) -> Result<Option<Arc<ResultStore>>, CommandError> {
    let entry = &loaded.config.results;
    if !entry.enabled {
        return Ok(None);
    }
    let limits = to_store_limits(entry).map_err(CommandError::Usage)?;
    if let Some(folder) = &entry.folder {
        let folder = loaded.folder().join(folder);
        let store = ResultStore::open(&folder, limits).await;
        return store.map(Some).map_err(|error| CommandError::Usage(format!("results.folder: {error}")));
    }
    match ResultStore::open(&default_folder(), limits).await {
        Ok(store) => Ok(Some(store)),
        Err(error) => {
            tracing::warn!("{error}; answers that do not fit inline are not kept (results.folder names another one)");
            Ok(None)
        }
    }
}

fn to_store_limits(entry: &ResultsEntry) -> Result<StoreLimits, String> {
    let default = StoreLimits::default();
    let block_bytes = entry.block_bytes.map(|size| quantity::to_usize(size.0)).transpose()?;
    Ok(StoreLimits {
        continued_bytes: entry.store_limit.map_or(default.continued_bytes, |size| size.0),
        block_bytes: block_bytes.unwrap_or(default.block_bytes),
        time_to_live: entry.ttl.map_or(default.time_to_live, |time| time.0),
        total_bytes: entry.total.map_or(default.total_bytes, |size| size.0),
        bytes_per_principal: entry.per_principal.map_or(default.bytes_per_principal, |size| size.0),
        free_bytes: entry.keep_free.map_or(default.free_bytes, |size| size.0),
        timeout: entry.timeout.map_or(default.timeout, |time| time.0),
        ..default
    })
}

fn default_folder() -> PathBuf {
    user_cache_folder().join("results")
}

/// The folder of what the user's nodes keep, in that for what can be made again.
pub(crate) fn user_cache_folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("tidegate")
}
