//! `tidegate health`: whether a server of this machine is ready, for the health checks of containers without curl.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::command_error::CommandError;
use crate::output;

/// The answer of /ready is shorter; the rest of a longer one is not read.
const ANSWER_BYTES_MAX: u64 = 16 * 1024;
/// The server itself answers after two seconds at most.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Check that a server without TLS is ready, as /ready says; the exit code is 1 if it is not
#[derive(Debug, Args)]
pub(crate) struct HealthCommand {
    /// Address of the server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7070")]
    address: String,
}

impl HealthCommand {
    pub(crate) async fn run(self) -> Result<(), CommandError> {
        let address = &self.address;
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, request_readiness(address)).await;
        let answer = answer.with_context(|| format!("{address} does not answer within {ANSWER_TIMEOUT:?}"))??;
        check_answer(address, &answer)?;
        output::print("ready\n")
    }
}

async fn request_readiness(address: &str) -> anyhow::Result<String> {
    let connected = TcpStream::connect(address).await;
    let mut stream = connected.with_context(|| format!("cannot connect to {address}"))?;
    let request = format!("GET /ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let exchange = async {
        stream.write_all(request.as_bytes()).await?;
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await
    };
    exchange.await.with_context(|| format!("{address} ended the connection"))?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn check_answer(address: &str, answer: &str) -> anyhow::Result<()> {
    let mut words = answer.lines().next().unwrap_or_default().split(' ');
    match (words.next(), words.next()) {
        (Some(version), Some("200")) if version.starts_with("HTTP/1.") => Ok(()),
        (Some(version), Some(status)) if version.starts_with("HTTP/1.") => {
            let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).trim();
            bail!("{address} is not ready (status {status}): {body}")
        }
        _ => bail!("{address} is no HTTP server without TLS"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_status_200_is_ready() {
        let check = |answer| check_answer("a:1", answer).map_err(|error| error.to_string());
        assert_eq!(check("HTTP/1.1 200 OK\r\n\r\n{}"), Ok(()));
        let refused = check("HTTP/1.1 503 Service Unavailable\r\nX: y\r\n\r\n{\"shop\":\"down\"}\n");
        assert_eq!(refused.unwrap_err(), "a:1 is not ready (status 503): {\"shop\":\"down\"}");
        assert!(check("\u{15}\u{3}").unwrap_err().contains("without TLS"));
    }
}
