//! `tidegate access explain`: who reaches what, and what stands in the way.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;

use clap::{Args, Subcommand};
use tidegate_core::{Authenticator, Caller, Credentials, Origin, Principal, Proof, Snapshot, TransportKind};

use crate::failure::Failure;
use crate::opened::{Opened, Sources};
use crate::options::{Audience, Options};

/// Explain who may reach what
#[derive(Debug, Subcommand)]
pub(crate) enum Access {
    /// Say for each tool, resource and prompt whether somebody reaches it, and if not why
    Explain(Explain),
}

/// Who, from where, and what.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Somebody with this role, with the roles named with commas between them, or: anonymous, local
    #[arg(long = "as", value_name = "ROLE")]
    who: String,

    /// Through which transport: http, stdio or cli
    #[arg(long, value_name = "TRANSPORT", default_value = "http", value_parser = transport)]
    via: TransportKind,

    /// Through the door of this toolset
    #[arg(long, value_name = "NAME")]
    toolset: Option<String>,

    /// Only this tool, resource or prompt
    name: Option<String>,
}

fn transport(name: &str) -> Result<TransportKind, String> {
    let known = TransportKind::ALL.map(TransportKind::name).join(", ");
    TransportKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| format!("there are {known}"))
}

impl Access {
    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
        let Self::Explain(explain) = self;
        let opened = Opened::open(Sources::None, options, Audience::CommandLine).await?;
        let origin = Origin { transport: explain.via, peer: None };
        let caller = Caller::new(explain.principal(&opened).await?, origin);
        let toolset = explain.toolset.as_deref().map(|name| opened.toolset(name, &caller)).transpose()?;
        let lines = explain.lines(&opened.node().registry().snapshot(), &caller.through(toolset));
        if lines.is_empty() {
            let name = explain.name.unwrap_or_default();
            return Err(Failure::Usage(format!("there is no tool, resource or prompt {name:?}")));
        }
        let mut output = std::io::stdout().lock();
        for line in lines {
            writeln!(output, "{line}")?;
        }
        output.flush()?;
        drop(output);
        opened.close().await;
        Ok(())
    }
}

impl Explain {
    async fn principal(&self, opened: &Opened) -> Result<Arc<Principal>, Failure> {
        match self.who.as_str() {
            "local" => Ok(opened.doorkeeper.local()),
            "anonymous" => {
                let shown = Credentials::default();
                opened.doorkeeper.authenticate(shown).await.map_err(|error| Failure::Usage(error.to_string()))
            }
            names => {
                let names: BTreeSet<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
                let grants = opened.assembly.grants_of(&names).map_err(Failure::Usage)?;
                Ok(Arc::new(Principal { roles: names, ..Principal::new("somebody", Proof::Key, Arc::new(grants)) }))
            }
        }
    }

    fn lines(&self, snapshot: &Snapshot, caller: &Caller) -> Vec<String> {
        let wanted = |name: &str| self.name.as_ref().is_none_or(|only| only == name);
        let entries = snapshot.entries().filter(|entry| wanted(entry.name));
        entries
            .map(|entry| match entry.access.authorize(entry.name, caller) {
                Ok(()) => format!("yes  {} {}", entry.kind, entry.name),
                Err(error) => format!("no   {} {}: {}", entry.kind, entry.name, error.message()),
            })
            .collect()
    }
}
