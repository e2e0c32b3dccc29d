//! Connects to a target: tries its hosts and their addresses in order.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

use tokio::net::lookup_host;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::attempt::ConnectAttempt;
use super::error::{AttemptError, ConnectError, ConnectErrorKind};
use super::host::{Host, HostLocation, ResolvedAddress};
use super::open_connection::OpenConnection;
use super::target::{ConnectTarget, SessionRole};
use super::tls;
use super::tls_settings::TlsMode;

const ADDRESSES_MAX: usize = 8;

impl ConnectTarget {
    /// Opens a connection and checks that its session has the requested role. The session is named `application_name` in
    /// `pg_stat_activity` and in the server's log, unless the target sets a name. Spawns the task of the connection on
    /// the current runtime.
    ///
    /// # Errors
    /// Fails if no host accepts the connection; each address has a time limit. As in libpq, no further host is tried
    /// after a host that rejects the password or the database.
    pub async fn connect(&self, application_name: &str) -> Result<OpenConnection, ConnectError> {
        let mut failures = Vec::new();
        let tls = match self.load_tls().await {
            Ok(tls) => tls,
            Err(kind) => {
                failures.extend(self.hosts.first().map(|host| AttemptError::new(self, host, kind)));
                return Err(ConnectError::new(self, failures));
            }
        };
        // For `prefer-standby`, all hosts are first tried for a standby.
        let roles = match self.session_role {
            SessionRole::PreferStandby => vec![SessionRole::Standby, SessionRole::Any],
            role => vec![role],
        };
        for session_role in roles {
            // An unmet preference is not an error.
            failures.retain(|error: &AttemptError| !matches!(error.kind, ConnectErrorKind::WrongSession(_)));
            let mut hosts: Vec<&Host> = self.hosts.iter().collect();
            self.shuffle(&mut hosts);
            for host in hosts {
                match self.connect_to(host, application_name, tls.as_ref(), session_role).await {
                    Ok(connected) => return Ok(connected),
                    Err(of_host) => failures.extend(of_host),
                }
                if failures.last().is_some_and(|error| error.kind.is_final()) {
                    return Err(ConnectError::new(self, failures));
                }
            }
        }
        Err(ConnectError::new(self, failures))
    }

    async fn connect_to(
        &self,
        host: &Host,
        application_name: &str,
        tls: Option<&MakeRustlsConnect>,
        session_role: SessionRole,
    ) -> Result<OpenConnection, Vec<AttemptError>> {
        let at = |name: &String, address| ResolvedAddress::Network { name: name.clone(), address };
        let addresses: Vec<ResolvedAddress> = match &host.location {
            HostLocation::Socket(folder) => vec![ResolvedAddress::Socket(folder.clone())],
            HostLocation::Network { name, address: Some(address) } => vec![at(name, *address)],
            HostLocation::Network { name, address: None } => match self.resolve_host(name, host.port).await {
                Ok(addresses) => addresses.into_iter().map(|address| at(name, address)).collect(),
                Err(kind) => return Err(vec![AttemptError::new(self, host, kind)]),
            },
        };
        let mut failures = Vec::new();
        for address in &addresses {
            let attempt = ConnectAttempt { target: self, application_name, host, address, tls, session_role };
            match attempt.run().await {
                Ok(connected) => return Ok(connected),
                Err(error) => failures.push(error),
            }
            if failures.last().is_some_and(|error| error.kind.is_final()) {
                break;
            }
        }
        Err(failures)
    }

    async fn resolve_host(&self, name: &str, port: u16) -> Result<Vec<IpAddr>, ConnectErrorKind> {
        let resolved = timeout(self.connect_timeout, lookup_host((name, port))).await;
        let resolved = resolved.map_err(|_| ConnectErrorKind::TimedOut(self.connect_timeout))?.map_err(|error| {
            tracing::debug!(%error, "a host name has no address");
            ConnectErrorKind::HostNotFound
        })?;
        let mut addresses: Vec<IpAddr> = resolved.map(|address| address.ip()).collect();
        addresses.dedup();
        self.shuffle(&mut addresses);
        addresses.truncate(ADDRESSES_MAX);
        if addresses.is_empty() { Err(ConnectErrorKind::HostNotFound) } else { Ok(addresses) }
    }

    /// Loads the TLS files, if a host is reached over TCP and may use TLS.
    async fn load_tls(&self) -> Result<Option<MakeRustlsConnect>, ConnectErrorKind> {
        let is_network = |host: &Host| matches!(host.location, HostLocation::Network { .. });
        if self.tls.mode == TlsMode::Disable || !self.hosts.iter().any(is_network) {
            return Ok(None);
        }
        let settings = self.tls.clone();
        match spawn_blocking(move || tls::load(&settings)).await {
            Ok(Ok(connect)) => Ok(Some(connect)),
            Ok(Err(error)) => Err(ConnectErrorKind::TlsFiles(error)),
            Err(error) => Err(ConnectErrorKind::TlsFiles(error.to_string())),
        }
    }

    fn shuffle<T>(&self, members: &mut [T]) {
        if !self.shuffles_hosts {
            return;
        }
        for last in (1..members.len()).rev() {
            // The hash maps of the standard library are seeded randomly, which is enough to distribute load.
            let random = RandomState::new().build_hasher().finish();
            members.swap(last, (random % (last as u64 + 1)) as usize);
        }
    }
}
