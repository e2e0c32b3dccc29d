//! A node that is open: over the configuration, and the folders that the command line names.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Node;
use tidegate_audit::AuditLog;
use tidegate_auth::Doorkeeper;
use tidegate_core::{Authenticator, Caller, Origin, Toolset, TransportKind};
use tidegate_engines::Engine;
use tidegate_query::ResultStore;
use tokio::time::timeout;

use crate::auditing;
use crate::config::{self, Assembled, Assembly, FILE_NAME, Loaded, Seen};
use crate::failure::Failure;
use crate::options::{Audience, Options};
use crate::results;
use crate::shutdown::{AT_ONCE_WITHIN, DRAIN_WITHIN};
use crate::source::{self, Source, sources_or_here};

/// A node that is open.
pub(crate) struct Opened {
    pub(crate) assembly: Arc<Assembly>,
    pub(crate) doorkeeper: Arc<Doorkeeper>,
    pub(crate) loaded: Arc<Loaded>,
    /// What its files held before they were read.
    pub(crate) seen: Seen,
    /// Whether the configuration stands in a file.
    pub(crate) has_file: bool,
    pub(crate) assembled: Assembled,
    engine: Engine,
    audit: Option<Arc<AuditLog>>,
}

/// What is served beside the databases of the configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sources<'a> {
    /// These, and without any and without a configuration the current folder.
    Named(&'a [Source]),
    /// Nothing.
    None,
}

/// What a node is opened from: it was read, and nothing is open yet.
pub(crate) struct Plan<'a> {
    pub(crate) loaded: Arc<Loaded>,
    seen: Seen,
    has_file: bool,
    /// Folders and files that are served beside the configuration.
    served: &'a [Source],
    options: &'a Options,
}

impl<'a> Plan<'a> {
    /// Reads what `options` and `sources` describe.
    pub(crate) fn read(sources: Sources<'a>, options: &'a Options) -> Result<Self, Failure> {
        let named = match sources {
            Sources::Named(named) => named,
            Sources::None => &[],
        };
        let file = options.config.as_deref().or_else(|| default_file(named));
        let mut seen = Seen::default();
        let loaded = file.map_or_else(|| Ok(Loaded::nothing()), |file| Loaded::read_seeing(file, &mut seen))?;
        let served = match sources {
            Sources::Named(named) if file.is_none() => sources_or_here(named),
            _ => named,
        };
        Ok(Self { loaded: Arc::new(loaded), seen, has_file: file.is_some(), served, options })
    }

    /// Opens the node.
    pub(crate) async fn open(self, audience: Audience) -> Result<Opened, Failure> {
        let Self { loaded, seen, has_file, served, options } = self;
        let engine = Engine::start(options.engine(&loaded)?)?;
        let further = source::databases(served, &engine)?;
        let doorkeeper = Arc::new(Doorkeeper::new(tidegate_auth::Gate::open()));
        let flags = options.limits_for(audience);
        let limits = move |config: &crate::config::Config| flags.over(config);
        let store = match audience {
            Audience::Clients => results::open(&loaded).await?,
            Audience::CommandLine => None,
        };
        // Whoever asks on the command line has the data anyway.
        let audit = match audience {
            Audience::Clients => auditing::open(&loaded)?,
            Audience::CommandLine => None,
        };
        let node = Arc::new(node(&loaded, store.clone(), audit.clone()));
        let assembly = Arc::new(Assembly::new(node, engine.clone(), doorkeeper.clone(), limits, further));
        let assembled = assembly.enter(&loaded).await?;
        if audience == Audience::Clients {
            keep_usage(assembly.node(), &loaded);
        }
        for warning in &assembled.warnings {
            tracing::warn!("{warning}");
        }
        Ok(Opened { assembly, doorkeeper, loaded, seen, has_file, assembled, engine, audit })
    }
}

impl Opened {
    /// Opens the node that `options` and `sources` describe.
    pub(crate) async fn open(sources: Sources<'_>, options: &Options, audience: Audience) -> Result<Self, Failure> {
        Plan::read(sources, options)?.open(audience).await
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        self.assembly.node()
    }

    /// The process's own user, through the door of `toolset`.
    pub(crate) fn local_caller(&self, toolset: Option<&str>) -> Result<Caller, Failure> {
        let origin = Origin { transport: TransportKind::CommandLine, peer: None };
        let caller = Caller::new(self.doorkeeper.local(), origin);
        let toolset = toolset.map(|name| self.toolset(name, &caller)).transpose()?;
        Ok(caller.through(toolset))
    }

    /// The toolset of that name, if `caller` may enter its door.
    pub(crate) fn toolset(&self, name: &str, caller: &Caller) -> Result<Arc<Toolset>, Failure> {
        let snapshot = self.node().registry().snapshot();
        snapshot.toolset(name, caller).cloned().ok_or_else(|| {
            let known = snapshot.toolsets().map(|toolset| toolset.name.as_str());
            let known: Vec<&str> = known.filter(|name| snapshot.toolset(name, caller).is_some()).collect();
            match known.join(", ") {
                known if known.is_empty() => Failure::Usage(format!("there is no toolset {name:?}")),
                known => Failure::Usage(format!("there is no toolset {name:?}; there are {known}")),
            }
        })
    }

    /// Ends what still runs.
    pub(crate) async fn close(&self) {
        let databases = self.assembly.databases_open();
        futures::future::join_all(databases.iter().map(|database| database.close())).await;
        self.engine.shutdown(DRAIN_WITHIN).await;
        if let Some(audit) = &self.audit {
            audit.close(DRAIN_WITHIN).await;
        }
    }

    /// Cancels what still runs, for somebody who does not want to wait: calls that end in [`AT_ONCE_WITHIN`] have their
    /// lines in the audit log.
    pub(crate) async fn close_at_once(&self) {
        if timeout(AT_ONCE_WITHIN, self.node().drain(Duration::ZERO)).await.is_err() {
            let calls = self.node().registry().jobs().open_count();
            tracing::warn!(calls, "calls did not end when they were cancelled");
        }
        if let Some(audit) = &self.audit {
            audit.close(AT_ONCE_WITHIN).await;
        }
    }
}

/// Has `node` keep over a restart what callers use of their days.
fn keep_usage(node: &Node, loaded: &Loaded) {
    let file = config::usage_file(loaded, &results::user_folder());
    if let Err(error) = node.registry().keep_usage(file.clone()) {
        let file = file.display();
        tracing::warn!("{file} cannot be read, so that everybody's day begins anew: {error}");
    }
}

/// The file in the current folder, unless somebody named what to serve.
fn default_file(named: &[Source]) -> Option<&'static Path> {
    let file = Path::new(FILE_NAME);
    (named.is_empty() && file.is_file()).then_some(file)
}

fn node(loaded: &Loaded, store: Option<Arc<ResultStore>>, audit: Option<Arc<AuditLog>>) -> Node {
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
