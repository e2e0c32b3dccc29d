//! A connection to a broker: TCP or TLS, the session, and the subscriptions.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::mqtt::options::MqttOptions;
use crate::mqtt::packet::{self, Packet, PacketReader, ReadError};

/// How long connecting may take, and how long the broker may take to confirm the subscriptions.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(30);
/// How long the broker may take to accept what is sent.
const SEND_MAX: Duration = Duration::from_secs(10);
/// The time after which the broker gives up a connection without packets is one and a half times this.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(30);
const SUBSCRIBE_ID: u16 = 1;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("{0}")]
    Tls(String),
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("the broker refuses the session: {0}")]
    Refused(String),
    #[error("the broker refuses the subscription to {0:?}")]
    NotSubscribed(String),
    #[error("the broker delivers {0:?} only with QoS 0, and messages could be lost; set qos to 0 to accept that")]
    WeakerDelivery(String),
    #[error("the broker answers with another packet than that of the protocol")]
    Unexpected,
}

/// What TCP and TLS have in common.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A session. Its messages can arrive before the broker has confirmed the subscriptions.
pub(crate) struct Connection {
    pub(crate) reader: PacketReader<ReadHalf<Box<dyn Stream>>>,
    writer: WriteHalf<Box<dyn Stream>>,
}

impl Connection {
    pub(crate) async fn open(options: &MqttOptions) -> Result<Self, ConnectionError> {
        match timeout(CONNECT_MAX, Self::begin(options)).await {
            Ok(connection) => connection,
            Err(_) => Err(ConnectionError::TimedOut(CONNECT_MAX)),
        }
    }

    async fn begin(options: &MqttOptions) -> Result<Self, ConnectionError> {
        let (reader, writer) = tokio::io::split(connect_stream(options).await?);
        let mut own = Self { reader: PacketReader::new(reader), writer };
        let keep_alive = u16::try_from(KEEP_ALIVE.as_secs()).unwrap_or(u16::MAX);
        own.send(&packet::connect(options, keep_alive)).await?;
        match own.reader.next().await? {
            Packet::Connected { code: 0, session_present } => {
                tracing::debug!(broker = %options.broker, session_present, "the session begins");
            }
            Packet::Connected { code, .. } => return Err(ConnectionError::Refused(refusal(code))),
            _ => return Err(ConnectionError::Unexpected),
        }
        own.send(&packet::subscribe(SUBSCRIBE_ID, &options.topics, options.delivery.qos())).await?;
        Ok(own)
    }

    /// Sends packets.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        let sent = async {
            self.writer.write_all(bytes).await?;
            self.writer.flush().await
        };
        match timeout(SEND_MAX, sent).await {
            Ok(sent) => Ok(sent?),
            Err(_) => Err(ConnectionError::TimedOut(SEND_MAX)),
        }
    }

    /// Says goodbye. The session stays, with all messages that are not acknowledged.
    pub(crate) async fn close(mut self) {
        // The broker keeps the session as well if it does not receive this.
        let _ = self.send(&packet::disconnect()).await;
        let _ = timeout(SEND_MAX, self.writer.shutdown()).await;
    }
}

/// Checks what the broker answered to the subscriptions.
pub(crate) fn check_subscribed(options: &MqttOptions, packet_id: u16, codes: &[u8]) -> Result<(), ConnectionError> {
    if packet_id != SUBSCRIBE_ID || codes.len() != options.topics.len() {
        return Err(ConnectionError::Unexpected);
    }
    for (code, topic) in codes.iter().zip(&options.topics) {
        match *code {
            code if code > 2 => return Err(ConnectionError::NotSubscribed(topic.clone())),
            code if code < options.delivery.qos() => return Err(ConnectionError::WeakerDelivery(topic.clone())),
            _ => {}
        }
    }
    Ok(())
}

fn refusal(code: u8) -> String {
    match code {
        1 => "it does not know MQTT 3.1.1".to_owned(),
        2 => "the client_id is not allowed".to_owned(),
        3 => "it is not available".to_owned(),
        4 => "the username or the password is wrong".to_owned(),
        5 => "the client is not authorized".to_owned(),
        code => format!("code {code}"),
    }
}

async fn connect_stream(options: &MqttOptions) -> Result<Box<dyn Stream>, ConnectionError> {
    let broker = &options.broker;
    let stream = TcpStream::connect((broker.host.as_str(), broker.port)).await?;
    stream.set_nodelay(true)?;
    if !broker.uses_tls {
        return Ok(Box::new(stream));
    }
    let tls = |error: String| ConnectionError::Tls(error);
    let authorities = options.authorities.clone();
    let loaded = tokio::task::spawn_blocking(move || load_roots(authorities.as_deref())).await;
    let roots = loaded.map_err(|error| tls(error.to_string()))?.map_err(tls)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(broker.host.clone()).map_err(|error| tls(error.to_string()))?;
    Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
}

/// The trusted authorities. Read again for each connection, so that a renewed file is used. Blocks.
fn load_roots(authorities: Option<&std::path::Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = authorities else {
        let loaded = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(loaded.certs);
        let reason = loaded.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
        return if roots.is_empty() {
            Err(format!("cannot use the certificates of the system: {reason}"))
        } else {
            Ok(roots)
        };
    };
    let unusable = |reason: String| format!("cannot use the certificates of {}: {reason}", path.display());
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("there is no certificate in PEM format".to_owned()));
    }
    Ok(roots)
}
