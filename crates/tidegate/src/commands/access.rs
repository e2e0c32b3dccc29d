//! `tidegate access explain`: who reaches what, and what stands in the way.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::{Args, Subcommand};
use tidegate_core::{AuthMethod, Authenticator, CallOrigin, Caller, Credentials, Principal, TransportKind};
use tidegate_runtime::Snapshot;

use crate::command_error::CommandError;
use crate::open_node::{OpenNode, ServedSources};
use crate::options::{Audience, GlobalOptions};
use crate::output;

/// Show what a principal can access, and why access is denied
#[derive(Debug, Subcommand)]
pub(crate) enum AccessCommand {
    /// Show which tools, resources and prompts a principal can access, and why access to the others is denied
    Explain(AccessExplainArguments),
}

/// Who, from where, and what.
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

    /// Only this tool, resource or prompt
    name: Option<String>,
}

fn parse_transport(name: &str) -> Result<TransportKind, String> {
    let known = TransportKind::ALL.map(TransportKind::name).join(", ");
    TransportKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| format!("there are {known}"))
}

impl AccessCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let Self::Explain(explain) = self;
        let opened = OpenNode::open(ServedSources::None, options, Audience::CommandLine).await?;
        let origin = CallOrigin { transport: explain.transport, peer: None };
        let caller = Caller::new(explain.principal(&opened).await?, origin);
        let toolset = explain.toolset.as_deref().map(|name| opened.toolset(name, &caller)).transpose()?;
        let lines = explain.render_lines(&opened.node().registry().snapshot(), &caller.with_toolset(toolset));
        if lines.is_empty() {
            let name = explain.name.unwrap_or_default();
            return Err(CommandError::Usage(format!("there is no tool, resource or prompt {name:?}")));
        }
        output::print(format_args!("{}\n", lines.join("\n")))?;
        opened.close().await;
        Ok(())
    }
}

impl AccessExplainArguments {
    async fn principal(&self, opened: &OpenNode) -> Result<Arc<Principal>, CommandError> {
        match self.role_names.as_str() {
            "local" => Ok(opened.authenticator.local_principal()),
            "anonymous" => {
                let credentials = Credentials::default();
                opened
                    .authenticator
                    .authenticate(credentials)
                    .await
                    .map_err(|error| CommandError::Usage(error.to_string()))
            }
            names => {
                let names: BTreeSet<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
                let grants = opened.assembly.grants_for_roles(&names).map_err(CommandError::Usage)?;
                Ok(Arc::new(Principal {
                    roles: names,
                    ..Principal::new("somebody", AuthMethod::Key, Arc::new(grants))
                }))
            }
        }
    }

    fn render_lines(&self, snapshot: &Snapshot, caller: &Caller) -> Vec<String> {
        let expected = |name: &str| self.name.as_ref().is_none_or(|only| only == name);
        let entries = snapshot.entries().filter(|entry| expected(entry.name));
        entries
            .map(|entry| match entry.access.authorize(entry.name, caller) {
                Ok(()) => format!("yes  {} {}", entry.kind, entry.name),
                Err(error) => format!("no   {} {}: {}", entry.kind, entry.name, error.message()),
            })
            .collect()
    }
}
