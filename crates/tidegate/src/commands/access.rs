//! `tidegate access explain`: the access of a principal, and the reasons for denials.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clap::{Args, Subcommand};
use tidegate_core::{AuthMethod, Authenticator, CallOrigin, Caller, Credentials, Principal, TransportKind};
use tidegate_runtime::Snapshot;

use crate::application::Application;
use crate::command_error::CommandError;
use crate::config::{declared_uses, name_entries, optional_settings};
use crate::options::GlobalOptions;
use crate::output;

/// Show what a principal can access, and why access is denied
#[derive(Debug, Subcommand)]
pub(crate) enum AccessCommand {
    /// Show which tools, resources, prompts and databases a principal can access, and why access to the others is
    /// denied
    Explain(AccessExplainArguments),
}

#[derive(Debug, Args)]
pub(crate) struct AccessExplainArguments {
    /// Role of the principal, or several roles separated by commas; or anonymous, or local
    #[arg(long = "role", value_name = "ROLE")]
    role_names: String,

    /// Transport of the call: http, stdio or cli
    #[arg(long, value_name = "TRANSPORT", default_value = "http", value_parser = parse_transport)]
    transport: TransportKind,

    /// Use the endpoint of this toolset
    #[arg(long, value_name = "NAME")]
    toolset: Option<String>,

    /// Only this tool, resource, prompt or database
    name: Option<String>,
}

fn parse_transport(name: &str) -> Result<TransportKind, String> {
    let known_names = TransportKind::ALL.map(TransportKind::name).join(", ");
    TransportKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| format!("there are {known_names}"))
}

impl AccessCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let Self::Explain(explain) = self;
        let application = Application::open(None, options).await?;
        let origin = CallOrigin { transport: explain.transport, peer: None };
        let caller = Caller::new(explain.principal(&application).await?, origin);
        let toolset = explain.toolset.as_deref().map(|name| application.toolset(name, &caller)).transpose()?;
        let caller = caller.with_toolset(toolset);
        let lines = explain.render_lines(&application, &application.node().registry().snapshot(), &caller);
        if lines.is_empty() {
            let name = explain.name.unwrap_or_default();
            return Err(CommandError::Usage(format!("there is no tool, resource, prompt or database {name:?}")));
        }
        output::print(format_args!("{}\n", lines.join("\n")))?;
        application.close().await;
        Ok(())
    }
}

impl AccessExplainArguments {
    async fn principal(&self, application: &Application) -> Result<Arc<Principal>, CommandError> {
        let authenticator = &application.applier.authenticator;
        match self.role_names.as_str() {
            "local" => Ok(authenticator.local_principal()),
            "anonymous" => {
                let authenticated = authenticator.authenticate(Credentials::default()).await;
                authenticated.map_err(|error| CommandError::Usage(error.to_string()))
            }
            names => {
                let names: BTreeSet<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
                let grants = application.applier.grants_for_roles(&names).map_err(CommandError::Usage)?;
                Ok(Arc::new(Principal {
                    roles: names,
                    ..Principal::new("somebody", AuthMethod::Key, Arc::new(grants))
                }))
            }
        }
    }

    fn is_selected(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|only| only == name)
    }

    /// The entries, and the databases that the tools with an argument "database" can use. A declared entry uses its
    /// database for its callers, whatever their roles name.
    fn render_lines(&self, application: &Application, snapshot: &Snapshot, caller: &Caller) -> Vec<String> {
        let (config, databases) = (&application.loaded_config.config, application.applier.open_databases());
        let names: Vec<&str> = databases.iter().map(|database| database.name()).collect();
        let granted = &caller.principal.grants.databases;
        let mut uses = declared_uses(config, &names);
        uses.retain(|used| !granted.includes(used.database));
        // The databases that are used by entries of the caller, with these.
        let mut used_by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut lines = Vec::new();
        for entry in snapshot.entries() {
            let used = uses.iter().find(|used| used.kind == entry.kind && used.entry == entry.name);
            let line = match (entry.access.authorize(entry.name, caller), used) {
                (Ok(()), None) => format!("yes  {} {}", entry.kind, entry.name),
                (Ok(()), Some(used)) => {
                    used_by.entry(used.database).or_default().push(entry.name);
                    format!("yes  {} {} (uses the database {})", entry.kind, entry.name, used.database)
                }
                (Err(error), _) => format!("no   {} {}: {}", entry.kind, entry.name, error.message()),
            };
            lines.extend(Some(line).filter(|_| self.is_selected(entry.name)));
        }
        lines.extend(names.into_iter().filter(|name| self.is_selected(name)).map(|name| {
            let by = used_by.get(name).map(|entries| format!("; used for the caller by {}", name_entries(entries)));
            match granted.includes(name) {
                true => match optional_settings(config, name).join(", ") {
                    settings if settings.is_empty() => format!("yes  database {name}"),
                    settings => format!("yes  database {name}; empty for callers without the claim: {settings}"),
                },
                false => {
                    let by = by.unwrap_or_default();
                    format!("no   database {name}: no role of the caller names it under databases{by}")
                }
            }
        }));
        lines
    }
}
