//! A node over the databases of the configuration and of the command line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Authenticator, CallOrigin, Caller, Toolset, TransportKind};
use tidegate_engines::{Engine, ResultDatabases};
use tidegate_query::ResultTables;
use tidegate_results::ResultStore;
use tidegate_runtime::Auditor;
use tidegate_runtime::audit::AuditLog;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::command_error::CommandError;
use crate::config::{self, ApplyReport, ConfigApplier, FileHashes, LoadedConfig, ingest_folders};
use crate::database_argument::{self, DatabaseArgument, JOINED_DATABASE_NAME, sources_or_current_folder};
use crate::idle_memory;
use crate::ingest::IngestFolders;
use crate::metric_recorder;
use crate::node::Node;
use crate::options::GlobalOptions;
use crate::reload;
use crate::shutdown::{DRAIN_TIMEOUT, FORCED_DRAIN_TIMEOUT, Shutdown};

/// What a command works with: a node, its configuration and its audit log.
pub(crate) struct Application {
    pub(crate) applier: Arc<ConfigApplier>,
    pub(crate) loaded_config: Arc<LoadedConfig>,
    file_hashes: FileHashes,
    pub(crate) has_file: bool,
    pub(crate) apply_report: ApplyReport,
    /// The databases of the command line, if the database `all` joins them.
    pub(crate) joined_databases: Vec<String>,
    result_databases: Option<Arc<ResultDatabases>>,
    audit: Option<Arc<AuditLog>>,
}

/// What an [`Application`] is opened from: the configuration is read, and nothing is open yet.
pub(crate) struct StartOptions<'a> {
    pub(crate) loaded_config: Arc<LoadedConfig>,
    file_hashes: FileHashes,
    has_file: bool,
    sources: &'a [DatabaseArgument],
    options: &'a GlobalOptions,
    /// Whether clients call the node. Otherwise the user of the command line does, who can read the data directly.
    is_server: bool,
    writing: Option<WrittenDatabases<'a>>,
}

/// The databases that a command writes to, which no server may have open then.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WrittenDatabases<'a> {
    /// All.
    All,
    /// The one with this name.
    One(&'a str),
}

impl<'a> StartOptions<'a> {
    /// Without a configuration, an empty list stands for the current folder, and `None` for no databases.
    pub(crate) fn read(
        sources: Option<&'a [DatabaseArgument]>,
        options: &'a GlobalOptions,
    ) -> Result<Self, CommandError> {
        let named = sources.unwrap_or_default();
        let file = if named.is_empty() { options.config_file() } else { options.config.clone() };
        let mut file_hashes = FileHashes::default();
        let loaded = match &file {
            Some(file) => LoadedConfig::read_tracking_files(file, &mut file_hashes)?,
            None => LoadedConfig::empty(),
        };
        let use_current_folder = sources.is_some() && file.is_none();
        Ok(Self {
            loaded_config: Arc::new(loaded),
            file_hashes,
            has_file: file.is_some(),
            sources: if use_current_folder { sources_or_current_folder(named) } else { named },
            options,
            is_server: false,
            writing: None,
        })
    }

    /// The node of a command that serves clients.
    pub(crate) fn of_server(sources: &'a [DatabaseArgument], options: &'a GlobalOptions) -> Result<Self, CommandError> {
        Ok(Self { is_server: true, ..Self::read(Some(sources), options)? })
    }

    /// The node of a command that writes rows itself. It reads its databases from a configuration only.
    pub(crate) fn of_writer(options: &'a GlobalOptions, databases: WrittenDatabases<'a>) -> Result<Self, CommandError> {
        let spec = Self::read(None, options)?;
        if !spec.has_file {
            let message =
                "tables that take rows are in a configuration: --config names it, and --connect a running server";
            return Err(CommandError::Usage(message.to_owned()));
        }
        Ok(Self { writing: Some(databases), ..spec })
    }

    /// The names of its databases. None is opened.
    pub(crate) fn database_names(&self) -> Vec<String> {
        let mut names = database_argument::database_names(self.sources);
        if names.len() > 1 && !self.has_file {
            names.push(JOINED_DATABASE_NAME.to_owned());
        }
        names.extend(self.loaded_config.config.databases.iter().map(|entry| entry.name.clone()));
        names
    }

    /// The folders of its databases that take rows. None is opened.
    pub(crate) fn ingest_folders(&self) -> Result<Vec<(String, PathBuf)>, CommandError> {
        Ok(ingest_folders(&self.loaded_config)?)
    }

    pub(crate) async fn open(self) -> Result<Application, CommandError> {
        let Self { loaded_config: loaded, file_hashes, has_file, sources, options, is_server, writing } = self;
        let limit_options = options.limits.clone();
        let engine_options = config::engine_options(&loaded, &limit_options).map_err(CommandError::Usage)?;
        let engine = Engine::start(engine_options)?;
        let mut command_line = database_argument::open_databases(sources, &engine)?;
        // A configuration may restrict who queries what, so there the owner declares what is joined.
        let joined = match has_file {
            true => None,
            false => database_argument::join_databases(&command_line.databases, &engine)?,
        };
        let joined_databases = match &joined {
            Some(_) => command_line.databases.iter().map(|database| database.name().to_owned()).collect(),
            None => Vec::new(),
        };
        command_line.databases.extend(joined);
        let (store, audit) = match is_server {
            true => (open_result_store(&loaded).await?, open_audit_log(&loaded)?),
            false => (None, None),
        };
        let auditor = audit.clone().map(|audit| audit as Arc<dyn Auditor>);
        let result_databases = store.as_ref().map(|_| Arc::new(ResultDatabases::new(&engine)));
        let result_tables = result_databases.clone().map(|tables| tables as Arc<dyn ResultTables>);
        let node = Node::builder().without_built_in_tools().results(store).result_tables(result_tables);
        let node = Arc::new(node.auditor(auditor).build());
        let folders = IngestFolders::new(is_server || writing.is_some());
        let limits = (limit_options, is_server);
        let applier = Arc::new(ConfigApplier::new(node, engine, limits, command_line, folders));
        let apply_report = applier.apply_config(&loaded).await?;
        if is_server {
            persist_usage(&applier.node, &loaded);
        }
        if let Some(writing) = writing {
            writing.require_open(&apply_report)?;
        }
        for warning in &apply_report.warnings {
            tracing::warn!("{warning}");
        }
        Ok(Application {
            applier,
            loaded_config: loaded,
            file_hashes,
            has_file,
            apply_report,
            joined_databases,
            result_databases,
            audit,
        })
    }
}

impl WrittenDatabases<'_> {
    fn require_open(self, report: &ApplyReport) -> Result<(), CommandError> {
        let is_meant = |name: &str| match self {
            Self::All => true,
            Self::One(database) => database == name,
        };
        let Some(found) = report.read_only.iter().find(|database| is_meant(&database.name)) else { return Ok(()) };
        let hint = if found.is_in_use { "\nhint: --connect URL uses the running server" } else { "" };
        Err(CommandError::Other(anyhow::anyhow!("database {} {}{hint}", found.name, found.reason)))
    }
}

impl Application {
    pub(crate) async fn open(
        sources: Option<&[DatabaseArgument]>,
        options: &GlobalOptions,
    ) -> Result<Self, CommandError> {
        StartOptions::read(sources, options)?.open().await
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.applier.node
    }

    pub(crate) fn local_caller(&self, toolset: Option<&str>) -> Result<Caller, CommandError> {
        let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
        let caller = Caller::new(self.applier.authenticator.local_principal(), origin);
        let toolset = toolset.map(|name| self.toolset(name, &caller)).transpose()?;
        Ok(caller.with_toolset(toolset))
    }

    pub(crate) fn toolset(&self, name: &str, caller: &Caller) -> Result<Arc<Toolset>, CommandError> {
        let snapshot = self.node().registry().snapshot();
        snapshot.toolset(name, caller).cloned().ok_or_else(|| {
            let known_names = snapshot.toolsets().map(|toolset| toolset.name.as_str());
            let known_names: Vec<&str> = known_names.filter(|name| snapshot.toolset(name, caller).is_some()).collect();
            match known_names.join(", ") {
                known_names if known_names.is_empty() => CommandError::Usage(format!("there is no toolset {name:?}")),
                known_names => CommandError::Usage(format!("there is no toolset {name:?}; there are {known_names}")),
            }
        })
    }

    /// Starts what runs beside the calls of a server until `ended` fires: the configuration file and the handlers in
    /// its databases are reloaded when they change, and the memory of ended calls is returned to the system.
    pub(crate) fn spawn_background_tasks(&self, ended: &CancellationToken) -> anyhow::Result<()> {
        idle_memory::spawn_release(self.node().registry().clone(), ended.clone());
        let recording = self.applier.metric_recording.clone();
        metric_recorder::spawn_recording(self.applier.node.clone(), recording, ended.clone());
        let applier = self.applier.clone();
        tokio::spawn(async move { applier.mqtt.start().await });
        if self.has_file {
            let file = self.loaded_config.path();
            reload::spawn_reloader(self.applier.clone(), file, self.file_hashes.clone(), ended.clone())?;
        }
        reload::spawn_handler_watcher(self.applier.clone(), ended.clone());
        Ok(())
    }

    /// Runs `serving` to its end and closes the node. A second signal cancels the running calls; those that end within
    /// [`FORCED_DRAIN_TIMEOUT`] have their lines in the audit log.
    pub(crate) async fn serve_until_closed<T>(
        &self,
        serving: impl Future<Output = T>,
        shutdown: &Shutdown,
    ) -> Result<T, CommandError> {
        let work = async {
            let served = serving.await;
            self.close().await;
            served
        };
        let ended = shutdown.run_until_forced(work).await;
        if ended.is_err() {
            if timeout(FORCED_DRAIN_TIMEOUT, self.node().drain(Duration::ZERO)).await.is_err() {
                let calls = self.node().registry().jobs().open_count();
                tracing::warn!(calls, "calls did not end when they were cancelled");
            }
            self.close_audit_log(FORCED_DRAIN_TIMEOUT).await;
        }
        ended
    }

    pub(crate) async fn close(&self) {
        self.applier.mqtt.close().await;
        let databases = self.applier.open_databases();
        futures::future::join_all(databases.iter().map(|database| database.close())).await;
        if let Some(result_databases) = &self.result_databases {
            result_databases.close().await;
        }
        self.applier.ingest_folders.close().await;
        self.applier.engine.shutdown(DRAIN_TIMEOUT).await;
        self.applier.metric_recording.flush();
        self.close_audit_log(DRAIN_TIMEOUT).await;
    }

    async fn close_audit_log(&self, within: Duration) {
        if let Some(audit) = &self.audit {
            audit.close(within).await;
        }
    }
}

fn persist_usage(node: &Node, loaded: &LoadedConfig) {
    let file = config::usage_file(loaded, &user_cache_folder());
    if let Err(error) = node.registry().persist_usage(file.clone()) {
        let file = file.display();
        tracing::warn!("{file} cannot be read, so the daily limits of all callers start at zero: {error}");
    }
}

/// Opens the audit log that the configuration describes. A node with an audit log does not run without it.
fn open_audit_log(loaded: &LoadedConfig) -> Result<Option<Arc<AuditLog>>, CommandError> {
    let options = config::audit_options(loaded).map_err(|problem| loaded.to_error(&[problem]))?;
    let log = options.map(|options| AuditLog::open(&options)).transpose();
    log.map_err(|error| CommandError::Usage(format!("audit.file: {error}")))
}

/// Opens the store for results. A configured folder must be usable; if the default folder is not, the node has no
/// store.
async fn open_result_store(loaded: &LoadedConfig) -> Result<Option<Arc<ResultStore>>, CommandError> {
    let entry = &loaded.config.results;
    if !entry.enabled {
        return Ok(None);
    }
    let limits = config::store_limits(entry).map_err(CommandError::Usage)?;
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

fn user_cache_folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("tidegate")
}
