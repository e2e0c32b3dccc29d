//! Connects to a target: tries its hosts and their addresses in order.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

use tokio::net::lookup_host;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::attempt::ConnectAttempt;
use super::error::{AttemptFailure, ConnectError};
use super::host::{Host, HostLocation, ResolvedAddress};
use super::open_connection::OpenConnection;
use super::problem::ConnectProblem;
use super::target::{ConnectTarget, SessionRole};
use super::tls;
use super::tls_settings::TlsMode;

/// The maximum number of addresses of a host that are tried.
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
            Err(problem) => {
                failures.extend(self.hosts.first().map(|host| self.attempt_failure(host, problem)));
                return Err(self.connect_error(failures));
            }
        };
        // For `prefer-standby`, all hosts are first tried for a standby.
        let roles = match self.session_role {
            SessionRole::PreferStandby => vec![SessionRole::Standby, SessionRole::Any],
            role => vec![role],
        };
        for session_role in roles {
            // An unmet preference is not an error.
            failures.retain(|failure: &AttemptFailure| !matches!(failure.problem, ConnectProblem::WrongSession(_)));
            let mut hosts: Vec<&Host> = self.hosts.iter().collect();
            self.shuffle(&mut hosts);
            for host in hosts {
                match self.connect_to(host, application_name, tls.as_ref(), session_role).await {
                    Ok(connected) => return Ok(connected),
                    Err(of_host) => failures.extend(of_host),
                }
                if failures.last().is_some_and(|failure| failure.problem.is_final()) {
                    return Err(self.connect_error(failures));
                }
            }
        }
        Err(self.connect_error(failures))
    }

    async fn connect_to(
        &self,
        host: &Host,
        application_name: &str,
        tls: Option<&MakeRustlsConnect>,
        session_role: SessionRole,
    ) -> Result<OpenConnection, Vec<AttemptFailure>> {
        let at = |name: &String, address| ResolvedAddress::Network { name: name.clone(), address };
        let addresses: Vec<ResolvedAddress> = match &host.location {
            HostLocation::Socket(folder) => vec![ResolvedAddress::Socket(folder.clone())],
            HostLocation::Network { name, address: Some(address) } => vec![at(name, *address)],
            HostLocation::Network { name, address: None } => match self.resolve_host(name, host.port).await {
                Ok(addresses) => addresses.into_iter().map(|address| at(name, address)).collect(),
                Err(problem) => return Err(vec![self.attempt_failure(host, problem)]),
            },
        };
        let mut failures = Vec::new();
        for address in &addresses {
            let attempt = ConnectAttempt { target: self, application_name, host, address, tls, session_role };
            match attempt.run().await {
                Ok(connected) => return Ok(connected),
                Err(failure) => {
                    let is_final = failure.problem.is_final();
                    failures.push(failure);
                    if is_final {
                        break;
                    }
                }
            }
        }
        Err(failures)
    }

    async fn resolve_host(&self, name: &str, port: u16) -> Result<Vec<IpAddr>, ConnectProblem> {
        let found = timeout(self.connect_timeout, lookup_host((name, port))).await;
        let found = found.map_err(|_| ConnectProblem::TimedOut(self.connect_timeout))?.map_err(|error| {
            tracing::debug!(%error, "a host name has no address");
            ConnectProblem::HostNotFound
        })?;
        let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
        addresses.dedup();
        self.shuffle(&mut addresses);
        addresses.truncate(ADDRESSES_MAX);
        if addresses.is_empty() { Err(ConnectProblem::HostNotFound) } else { Ok(addresses) }
    }

    /// Loads the TLS files, if a host is reached over TCP and may use TLS.
    async fn load_tls(&self) -> Result<Option<MakeRustlsConnect>, ConnectProblem> {
        let is_network = |host: &Host| matches!(host.location, HostLocation::Network { .. });
        if self.tls.mode == TlsMode::Disable || !self.hosts.iter().any(is_network) {
            return Ok(None);
        }
        let settings = self.tls.clone();
        match spawn_blocking(move || tls::load(&settings)).await {
            Ok(Ok(connect)) => Ok(Some(connect)),
            Ok(Err(error)) => Err(ConnectProblem::TlsFiles(error)),
            Err(error) => Err(ConnectProblem::TlsFiles(error.to_string())),
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

    fn attempt_failure(&self, host: &Host, problem: ConnectProblem) -> AttemptFailure {
        AttemptFailure {
            location: host.to_string(),
            problem,
            server_message: None,
            password_source: host.password_source.clone(),
            tls_mode: self.tls.mode,
            encrypted: false,
        }
    }

    fn connect_error(&self, failures: Vec<AttemptFailure>) -> ConnectError {
        ConnectError::new(self.describe(), self.user.clone(), failures)
    }
}
