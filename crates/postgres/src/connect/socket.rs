//! The socket of a connection, with the keepalive of its settings.

use std::io;
use std::net::IpAddr;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio_postgres::Config;

/// Connects to `address` over TCP. The time limit is that of the caller.
pub(super) async fn connect_tcp(address: IpAddr, port: u16, config: &Config) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((address, port)).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    #[cfg(target_os = "linux")]
    if let Some(timeout) = config.get_tcp_user_timeout() {
        socket.set_tcp_user_timeout(Some(*timeout))?;
    }
    if config.get_keepalives() {
        socket.set_tcp_keepalive(&tcp_keepalive(config))?;
    }
    Ok(stream)
}

fn tcp_keepalive(config: &Config) -> TcpKeepalive {
    let mut keepalive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    if let Some(interval) = config.get_keepalives_interval() {
        keepalive = keepalive.with_interval(interval);
    }
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    if let Some(retries) = config.get_keepalives_retries() {
        keepalive = keepalive.with_retries(retries);
    }
    keepalive
}
