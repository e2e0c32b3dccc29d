//! A node that is open: over the configuration, and the folders that the command line names.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidegate_audit::AuditLog;
use tidegate_auth::ReloadableAuthenticator;
use tidegate_core::{Authenticator, CallOrigin, Caller, Toolset, TransportKind};
use tidegate_engines::Engine;
use tidegate_results::{ResultStore, StoreLimits};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::command_error::CommandError;
use crate::config::{self, ApplyReport, Config, FileHashes, LoadedConfig, NodeAssembler, ResultsEntry};
use crate::node::Node;
use crate::options::{Audience, GlobalOptions};
use crate::quantity;
use crate::reload;
use crate::shutdown::{DRAIN_TIMEOUT, FORCED_DRAIN_TIMEOUT, Shutdown};
use crate::source::{self, DatabaseSource, sources_or_current_folder};

/// A node that is open.
pub(crate) struct OpenNode {
    pub(crate) assembly: Arc<NodeAssembler>,
    pub(crate) authenticator: Arc<ReloadableAuthenticator>,
    pub(crate) loaded_config: Arc<LoadedConfig>,
    /// What its files held before they were read.
    file_hashes: FileHashes,
    /// Whether the configuration stands in a file.
    pub(crate) has_file: bool,
    pub(crate) apply_report: ApplyReport,
    engine: Engine,
    audit: Option<Arc<AuditLog>>,
}

/// What is served beside the databases of the configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServedSources<'a> {
    /// These, and without any and without a configuration the current folder.
    Named(&'a [DatabaseSource]),
    /// Nothing.
    None,
}

/// What a node is opened from: it was read, and nothing is open yet.
pub(crate) struct NodeSpec<'a> {
    pub(crate) loaded_config: Arc<LoadedConfig>,
    file_hashes: FileHashes,
    has_file: bool,
    /// Folders and files that are served beside the configuration.
    sources: &'a [DatabaseSource],
    options: &'a GlobalOptions,
}

impl<'a> NodeSpec<'a> {
    /// Reads what `options` and `sources` describe.
    pub(crate) fn read(sources: ServedSources<'a>, options: &'a GlobalOptions) -> Result<Self, CommandError> {
        let named = match sources {
            ServedSources::Named(named) => named,
            ServedSources::None => &[],
        };
        let file = if named.is_empty() { options.config_file() } else { options.config.clone() };
        let mut seen = FileHashes::default();
        let loaded = match &file {
            Some(file) => LoadedConfig::read_tracking_files(file, &mut seen)?,
            None => LoadedConfig::empty(),
        };
        let served = match sources {
            ServedSources::Named(named) if file.is_none() => sources_or_current_folder(named),
            _ => named,
        };
        Ok(Self {
            loaded_config: Arc::new(loaded),
            file_hashes: seen,
            has_file: file.is_some(),
            sources: served,
            options,
        })
    }

    /// Opens the node.
    pub(crate) async fn open(self, audience: Audience) -> Result<OpenNode, CommandError> {
        let Self { loaded_config: loaded, file_hashes: seen, has_file, sources: served, options } = self;
        let engine = Engine::start(options.engine_options(&loaded)?)?;
        let further = source::open_databases(served, &engine)?;
        let reloadable_authenticator =
            Arc::new(ReloadableAuthenticator::new(tidegate_auth::CredentialAuthenticator::allow_all()));
        let flags = options.clone();
        let limits = move |config: &Config| flags.call_limits(audience, config);
        let (store, audit) = match audience {
            Audience::Clients => (open_result_store(&loaded).await?, open_audit_log(&loaded)?),
            // A user of the command line has the data anyway.
            Audience::CommandLine => (None, None),
        };
        let node = Arc::new(build_node(&loaded, store.clone(), audit.clone()));
        let assembly =
            Arc::new(NodeAssembler::new(node, engine.clone(), reloadable_authenticator.clone(), limits, further));
        let assembled = assembly.apply_config(&loaded).await?;
        if audience == Audience::Clients {
            persist_usage(&assembly.node, &loaded);
        }
        for warning in &assembled.warnings {
            tracing::warn!("{warning}");
        }
        Ok(OpenNode {
            assembly,
            authenticator: reloadable_authenticator,
            loaded_config: loaded,
            file_hashes: seen,
            has_file,
            apply_report: assembled,
            engine,
            audit,
        })
    }
}

impl OpenNode {
    /// Opens the node that `options` and `sources` describe.
    pub(crate) async fn open(
        sources: ServedSources<'_>,
        options: &GlobalOptions,
        audience: Audience,
    ) -> Result<Self, CommandError> {
        NodeSpec::read(sources, options)?.open(audience).await
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.assembly.node
    }

    /// The process's own user, through the door of `toolset`.
    pub(crate) fn local_caller(&self, toolset: Option<&str>) -> Result<Caller, CommandError> {
        let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
        let caller = Caller::new(self.authenticator.local_principal(), origin);
        let toolset = toolset.map(|name| self.toolset(name, &caller)).transpose()?;
        Ok(caller.with_toolset(toolset))
    }

    /// The toolset of that name, if `caller` may enter its door.
    pub(crate) fn toolset(&self, name: &str, caller: &Caller) -> Result<Arc<Toolset>, CommandError> {
        let snapshot = self.node().registry().snapshot();
        snapshot.toolset(name, caller).cloned().ok_or_else(|| {
            let known = snapshot.toolsets().map(|toolset| toolset.name.as_str());
            let known: Vec<&str> = known.filter(|name| snapshot.toolset(name, caller).is_some()).collect();
            match known.join(", ") {
                known if known.is_empty() => CommandError::Usage(format!("there is no toolset {name:?}")),
                known => CommandError::Usage(format!("there is no toolset {name:?}; there are {known}")),
            }
        })
    }

    /// Follows the configuration file, and the handlers in its databases, until `ended` fires.
    pub(crate) fn watch_changes(&self, ended: &CancellationToken) -> anyhow::Result<()> {
        if self.has_file {
            let file = self.loaded_config.path();
            reload::spawn_reloader(self.assembly.clone(), file, self.file_hashes.clone(), ended.clone())?;
            reload::spawn_handler_watcher(self.assembly.clone(), ended.clone());
        }
        Ok(())
    }

    /// Runs `serving` to its end and closes the node. A second signal cancels the calls that still run; those that end in
    /// [`FORCED_DRAIN_TIMEOUT`] have their lines in the audit log.
    pub(crate) async fn serve_until_closed<T>(
        &self,
        serving: impl Future<Output = T>,
        shutdown: &Shutdown,
    ) -> Result<T, CommandError> {
        let ending = async {
            let served = serving.await;
            self.close().await;
            served
        };
        let ended = shutdown.run_until_forced(ending).await;
        if ended.is_err() {
            if timeout(FORCED_DRAIN_TIMEOUT, self.node().drain(Duration::ZERO)).await.is_err() {
                let calls = self.node().registry().jobs().open_count();
                tracing::warn!(calls, "calls did not end when they were cancelled");
            }
            self.close_audit_log(FORCED_DRAIN_TIMEOUT).await;
        }
        ended
    }

    /// Ends what still runs.
    pub(crate) async fn close(&self) {
        let databases = self.assembly.open_databases();
        futures::future::join_all(databases.iter().map(|database| database.close())).await;
        self.engine.shutdown(DRAIN_TIMEOUT).await;
        self.close_audit_log(DRAIN_TIMEOUT).await;
    }

    async fn close_audit_log(&self, within: Duration) {
        if let Some(audit) = &self.audit {
            audit.close(within).await;
        }
    }
}

/// Has `node` keep over a restart what callers use of their days.
fn persist_usage(node: &Node, loaded: &LoadedConfig) {
    let file = config::usage_file(loaded, &user_cache_folder());
    if let Err(error) = node.registry().persist_usage(file.clone()) {
        let file = file.display();
        tracing::warn!("{file} cannot be read, so that everybody's day begins anew: {error}");
    }
}

/// Opens the audit log that the configuration describes. A node with an audit log does not run without it.
fn open_audit_log(loaded: &LoadedConfig) -> Result<Option<Arc<AuditLog>>, CommandError> {
    let mut problems = Vec::new();
    let options = config::audit_options(loaded, &mut problems);
    if !problems.is_empty() {
        return Err(loaded.to_error(&problems).into());
    }
    let log = options.map(|options| AuditLog::open(&options)).transpose();
    log.map_err(|error| CommandError::Usage(format!("audit.file: {error}")))
}

/// Opens the store for results. A folder that the configuration names must be usable; without the default folder, the node
/// runs all the same.
async fn open_result_store(loaded: &LoadedConfig) -> Result<Option<Arc<ResultStore>>, CommandError> {
    let entry = &loaded.config.results;
    if !entry.enabled {
        return Ok(None);
    }
    let limits = to_store_limits(entry).map_err(CommandError::Usage)?;
    if let Some(folder) = &entry.folder {
        let store = ResultStore::open(&loaded.folder().join(folder), limits).await;
        return store.map(Some).map_err(|error| CommandError::Usage(format!("results.folder: {error}")));
    }
    let store = ResultStore::open(&user_cache_folder().join("results"), limits).await;
    Ok(store
        .inspect_err(|error| {
            tracing::warn!("{error}; answers that do not fit inline are not kept (results.folder names another one)");
        })
        .ok())
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

/// The folder of what the user's nodes keep, in that for what can be made again.
fn user_cache_folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("tidegate")
}

fn build_node(loaded: &LoadedConfig, store: Option<Arc<ResultStore>>, audit: Option<Arc<AuditLog>>) -> Node {
    let server = &loaded.config.server;
    let mut builder = Node::builder().without_built_in_tools().results(store);
    if let Some(title) = &server.title {
        builder = builder.title(title);
    }
    if let Some(instructions) = &server.instructions {
        builder = builder.instructions(instructions);
    }
    if let Some(audit) = audit {
        builder = builder.auditor(audit);
    }
    if loaded.config.fence {
        builder = builder.fenced();
    }
    builder.build()
}
