//! Flags of the commands that use tables of a running server, or those of the configuration without one.

use std::path::PathBuf;

use clap::Args;
use tidegate_client::fetch::ResultServer;
use tidegate_client::{BearerToken, TrustedAuthorities};

use crate::bearer::{self, SecretArgument};
use crate::command_error::CommandError;

/// Flags of the server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for a running server")]
pub(crate) struct ServerFlags {
    /// Address of the running server (http, https) [default: the databases of the configuration are opened here, and no
    /// server may have them open]
    #[arg(long, value_name = "URL")]
    connect: Option<String>,

    /// Bearer token [env: TIDEGATE_BEARER, which is not visible in process lists]
    #[arg(long, value_name = "TOKEN", conflicts_with = "bearer_file", requires = "connect")]
    bearer: Option<SecretArgument>,

    /// File that contains the bearer token
    #[arg(long, value_name = "FILE", requires = "connect")]
    bearer_file: Option<PathBuf>,

    /// File with the certificate of the server's authority, or its own [default: those of the system]
    #[arg(long, value_name = "FILE", value_parser = bearer::parse_authorities, requires = "connect")]
    ca: Option<TrustedAuthorities>,
}

/// A running server, and what to connect with.
pub(crate) struct RunningServer {
    pub(crate) server: ResultServer,
    pub(crate) bearer: Option<BearerToken>,
    pub(crate) authorities: Option<TrustedAuthorities>,
}

impl ServerFlags {
    /// The server; `None` if the databases are opened here.
    pub(crate) fn server(&self) -> Result<Option<RunningServer>, CommandError> {
        let Some(url) = &self.connect else { return Ok(None) };
        let server = ResultServer::parse(url).map_err(|error| CommandError::Usage(format!("--connect: {error}")))?;
        let bearer = bearer::read_bearer(self.bearer.as_ref(), self.bearer_file.as_deref())?;
        if server.is_sent_unencrypted() {
            tracing::warn!(%server, "rows and token are sent unencrypted; use https");
        }
        Ok(Some(RunningServer { server, bearer, authorities: self.ca.clone() }))
    }
}
