//! Cancels the running statement of a connection: through a second connection to the same host, with the same
//! protection.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{CancelToken, NoTls};

use super::environment::socket_name;
use super::host::ResolvedAddress;
use super::no_shutdown::{NoShutdownStream, NoShutdownTls};
use super::problem::ConnectProblem;
use super::tls::TlsConnector;

/// The time limit of a cancellation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Cancels the running statement of one connection.
#[derive(Clone)]
pub struct Canceller {
    token: CancelToken,
    /// The address of the connection: if a host has several addresses, only this server knows the connection.
    address: ResolvedAddress,
    port: u16,
    connector: Option<TlsConnector>,
}

impl Canceller {
    pub(super) fn new(
        token: CancelToken,
        address: &ResolvedAddress,
        port: u16,
        connector: Option<TlsConnector>,
    ) -> Self {
        Self { token, address: address.clone(), port, connector }
    }

    /// Requests the server to cancel the running statement, and waits until the server has processed the request. A
    /// statement that has already ended is not affected, but the next statement on the same connection could be. Do not
    /// use the connection for anything else afterwards.
    ///
    /// # Errors
    /// Fails if the request could not be delivered in time. The server does not report whether there was a statement to
    /// cancel.
    pub async fn cancel(&self) -> Result<(), ConnectProblem> {
        timeout(CANCEL_TIMEOUT, self.send()).await.unwrap_or(Err(ConnectProblem::TimedOut(CANCEL_TIMEOUT)))
    }

    async fn send(&self) -> Result<(), ConnectProblem> {
        match &self.address {
            ResolvedAddress::Network { address, .. } => {
                let stream =
                    TcpStream::connect((*address, self.port)).await.map_err(|error| ConnectProblem::from_io(&error))?;
                let (stream, listening) = clone_tcp(stream).map_err(|error| ConnectProblem::from_io(&error))?;
                match self.connector.clone() {
                    Some(mut tls) => {
                        match MakeTlsConnect::<NoShutdownStream<TcpStream>>::make_tls_connect(&mut tls, "") {
                            Ok(tls) => self.send_over(stream, NoShutdownTls(tls), listening).await,
                            Err(impossible) => match impossible {},
                        }
                    }
                    None => self.send_over(stream, NoTls, listening).await,
                }
            }
            ResolvedAddress::Socket(folder) => self.send_to_socket(&folder.join(socket_name(self.port))).await,
        }
    }

    #[cfg(unix)]
    async fn send_to_socket(&self, path: &Path) -> Result<(), ConnectProblem> {
        use tokio::net::UnixStream;
        let failed = |error: io::Error| ConnectProblem::from_io(&error);
        let stream = UnixStream::connect(path).await.map_err(failed)?.into_std().map_err(failed)?;
        let listening = UnixStream::from_std(stream.try_clone().map_err(failed)?).map_err(failed)?;
        self.send_over(UnixStream::from_std(stream).map_err(failed)?, NoTls, listening).await
    }

    #[cfg(not(unix))]
    async fn send_to_socket(&self, _: &Path) -> Result<(), ConnectProblem> {
        Err(ConnectProblem::NoSocket)
    }

    /// The driver sends the request over `stream` and drops it. `listening` is the same connection; it shows when the
    /// server closes its end.
    async fn send_over<S, T>(&self, stream: S, tls: T, mut listening: S) -> Result<(), ConnectProblem>
    where
        S: AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
        T: TlsConnect<NoShutdownStream<S>>,
    {
        self.token
            .cancel_query_raw(NoShutdownStream(stream), tls)
            .await
            .map_err(|error| ConnectProblem::from_driver(&error))?;
        let mut ignored = [0; 1024];
        // A broken connection counts as closed: in both cases the server has processed the request.
        while listening.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
        Ok(())
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("address", &self.address).finish_non_exhaustive()
    }
}

fn clone_tcp(stream: TcpStream) -> io::Result<(TcpStream, TcpStream)> {
    let stream = stream.into_std()?;
    let double = stream.try_clone()?;
    Ok((TcpStream::from_std(stream)?, TcpStream::from_std(double)?))
}
