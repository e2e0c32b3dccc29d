//! A node that is open: over the configuration, and the folders that the command line names.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::Node;
use tidegate_audit::AuditLog;
use tidegate_auth::ReloadableAuthenticator;
use tidegate_core::{Authenticator, CallOrigin, Caller, Toolset, TransportKind};
use tidegate_engines::Engine;
use tidegate_results::ResultStore;
use tokio::time::timeout;

use crate::audit_log;
use crate::command_error::CommandError;
use crate::config::{self, ApplyReport, CONFIG_FILE_NAME, FileHashes, LoadedConfig, NodeAssembler};
use crate::options::{Audience, GlobalOptions};
use crate::result_store;
use crate::shutdown::{DRAIN_TIMEOUT, FORCED_DRAIN_TIMEOUT};
use crate::source::{self, DatabaseSource, sources_or_current_folder};

/// A node that is open.
pub(crate) struct OpenNode {
    pub(crate) assembly: Arc<NodeAssembler>,
    pub(crate) authenticator: Arc<ReloadableAuthenticator>,
    pub(crate) loaded_config: Arc<LoadedConfig>,
    /// What its files held before they were read.
    pub(crate) file_hashes: FileHashes,
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
pub(crate) struct NodePlan<'a> {
    pub(crate) loaded_config: Arc<LoadedConfig>,
    file_hashes: FileHashes,
    has_file: bool,
    /// Folders and files that are served beside the configuration.
    sources: &'a [DatabaseSource],
    options: &'a GlobalOptions,
}

impl<'a> NodePlan<'a> {
    /// Reads what `options` and `sources` describe.
    pub(crate) fn read(sources: ServedSources<'a>, options: &'a GlobalOptions) -> Result<Self, CommandError> {
        let named = match sources {
            ServedSources::Named(named) => named,
            ServedSources::None => &[],
        };
        let file = options.config.as_deref().or_else(|| default_config_file(named));
        let mut seen = FileHashes::default();
        let loaded =
            file.map_or_else(|| Ok(LoadedConfig::empty()), |file| LoadedConfig::read_tracking_files(file, &mut seen))?;
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
        let flags = options.limit_flags(audience);
        let limits = move |config: &crate::config::Config| flags.apply_to(config);
        let store = match audience {
            Audience::Clients => result_store::open(&loaded).await?,
            Audience::CommandLine => None,
        };
        // Whoever asks on the command line has the data anyway.
        let audit = match audience {
            Audience::Clients => audit_log::open(&loaded)?,
            Audience::CommandLine => None,
        };
        let node = Arc::new(build_node(&loaded, store.clone(), audit.clone()));
        let assembly =
            Arc::new(NodeAssembler::new(node, engine.clone(), reloadable_authenticator.clone(), limits, further));
        let assembled = assembly.apply_config(&loaded).await?;
        if audience == Audience::Clients {
            persist_usage(assembly.node(), &loaded);
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
        NodePlan::read(sources, options)?.open(audience).await
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        self.assembly.node()
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

    /// Ends what still runs.
    pub(crate) async fn close(&self) {
        let databases = self.assembly.open_databases();
        futures::future::join_all(databases.iter().map(|database| database.close())).await;
        self.engine.shutdown(DRAIN_TIMEOUT).await;
        if let Some(audit) = &self.audit {
            audit.close(DRAIN_TIMEOUT).await;
        }
    }

    /// Cancels what still runs, for somebody who does not want to wait: calls that end in [`FORCED_DRAIN_TIMEOUT`] have their
    /// lines in the audit log.
    pub(crate) async fn cancel_and_close(&self) {
        if timeout(FORCED_DRAIN_TIMEOUT, self.node().drain(Duration::ZERO)).await.is_err() {
            let calls = self.node().registry().jobs().open_count();
            tracing::warn!(calls, "calls did not end when they were cancelled");
        }
        if let Some(audit) = &self.audit {
            audit.close(FORCED_DRAIN_TIMEOUT).await;
        }
    }
}

/// Has `node` keep over a restart what callers use of their days.
fn persist_usage(node: &Node, loaded: &LoadedConfig) {
    let file = config::usage_file(loaded, &result_store::user_cache_folder());
    if let Err(error) = node.registry().persist_usage(file.clone()) {
        let file = file.display();
        tracing::warn!("{file} cannot be read, so that everybody's day begins anew: {error}");
    }
}

/// The file in the current folder, unless somebody named what to serve.
fn default_config_file(named: &[DatabaseSource]) -> Option<&'static Path> {
    let file = Path::new(CONFIG_FILE_NAME);
    (named.is_empty() && file.is_file()).then_some(file)
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
