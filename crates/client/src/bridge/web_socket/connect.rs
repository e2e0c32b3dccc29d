//! Connects: performs the WebSocket handshake, and repeats the handshake of a legacy client.

use futures::stream::{SplitStream, StreamExt};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{Connector, connect_async_tls_with_config};

use super::WebSocketTransport;
use super::connection::{WebSocket, WebSocketConnection};
use crate::bearer_token::BearerToken;
use crate::bridge::error::BridgeError;
use crate::bridge::handshake::{Handshake, NegotiatedProtocol};
use crate::bridge::incoming::{MessageShape, replace_line_breaks};
use crate::bridge::options::BridgeNotice;
use crate::bridge::request::is_same_id;
use crate::refusal::{ServerMessage, ServerRefusal};
use crate::tls::{missing_tls_error, permanent_tls_error};

const MCP: HeaderValue = HeaderValue::from_static("mcp");

pub(super) enum ConnectError {
    /// Another attempt may succeed.
    Unreachable(String),
    /// Retrying does not help without a change at the server or the configuration.
    Refused(BridgeError),
}

impl WebSocketTransport {
    pub(super) async fn connect(&self) -> Result<(WebSocketConnection, SplitStream<WebSocket>), ConnectError> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(self.options.server_message_bytes_max))
            .max_frame_size(Some(self.options.server_message_bytes_max));
        let connector = self.options.authorities.as_ref().map(|trusted| Connector::Rustls(trusted.config()));
        let connecting = connect_async_tls_with_config(self.request()?, Some(config), true, connector);
        let connected = match tokio::time::timeout(self.options.wait_within, connecting).await {
            Ok(connected) => connected,
            Err(_) => return Err(ConnectError::Unreachable("it does not answer".to_owned())),
        };
        let (stream, _) = connected.map_err(|error| self.to_connect_error(error))?;
        let (sink, mut stream) = stream.split();
        let connection = WebSocketConnection::new(sink);
        let handshake = self.handshake.lock().clone();
        if let Some(handshake) = handshake {
            let repeating = self.repeat_handshake(&connection, &mut stream, &handshake);
            let late = || ConnectError::Unreachable("it does not answer the client's handshake".to_owned());
            tokio::time::timeout(self.options.handshake_within, repeating).await.map_err(|_| late())??;
        }
        Ok((connection, stream))
    }

    fn request(&self) -> Result<Request, ConnectError> {
        let url = self.options.address.url().as_str();
        let mut request = url.into_client_request().map_err(|error| ConnectError::Unreachable(error.to_string()))?;
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, MCP);
        if let Some(bearer) = &self.options.bearer {
            request.headers_mut().insert(AUTHORIZATION, bearer.header().clone());
        }
        Ok(request)
    }

    fn to_connect_error(&self, error: tungstenite::Error) -> ConnectError {
        let tungstenite::Error::Http(response) = error else {
            return match permanent_tls_error(&error).or_else(|| missing_tls_error(&error)) {
                Some(reason) => ConnectError::Refused(BridgeError::Tls { reason }),
                None => ConnectError::Unreachable(error.to_string()),
            };
        };
        let secret = self.options.bearer.as_ref().map(BearerToken::token);
        let message = ServerMessage::from_body(response.body().as_deref().unwrap_or_default(), secret);
        let status = response.status().as_u16();
        let message = match ServerRefusal::from_status(status, secret.is_some(), message) {
            Ok(refusal) => return ConnectError::Refused(refusal.into()),
            Err(message) => message,
        };
        ConnectError::Refused(match status {
            status @ (408 | 429 | 500..) => return ConnectError::Unreachable(format!("it answers {status}{message}")),
            status => BridgeError::NoEndpoint { status, usual_path: self.options.address.default_path(), message },
        })
    }

    /// Repeats the client's handshake. The answer is not forwarded, since the client has already received one.
    async fn repeat_handshake(
        &self,
        connection: &WebSocketConnection,
        stream: &mut SplitStream<WebSocket>,
        handshake: &Handshake,
    ) -> Result<(), ConnectError> {
        let lost = || ConnectError::Unreachable("the connection broke during the client's handshake".to_owned());
        let sent = connection.send(&handshake.initialize).await;
        sent.map_err(|_| lost())?.map_err(|_| lost())?;
        let negotiated = loop {
            let message = stream.next().await.and_then(Result::ok).ok_or_else(lost)?;
            let Message::Text(text) = message else { continue };
            let shape = MessageShape::parse(&text).map_err(|_| lost())?;
            if shape.has_method {
                self.output.send_line(replace_line_breaks(text.into())).await;
            } else if shape.id().is_some_and(|id| is_same_id(handshake.id.as_json(), id)) {
                break NegotiatedProtocol::parse(text.as_bytes()).map_err(|message| {
                    ConnectError::Refused(BridgeError::HandshakeRefused { reason: message.text().to_owned() })
                })?;
            }
        };
        negotiated.check_compatible(&handshake.negotiated).map_err(ConnectError::Refused)?;
        if let Some(initialized) = &handshake.initialized {
            let sent = connection.send(initialized).await;
            sent.map_err(|_| lost())?.map_err(|_| lost())?;
            for notification in negotiated.list_changed_notifications() {
                self.output.send_line(notification).await;
            }
        }
        self.options.notify(&BridgeNotice::HandshakeRenewed);
        Ok(())
    }
}
