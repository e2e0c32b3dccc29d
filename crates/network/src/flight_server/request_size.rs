//! The sizes of requests: messages with rows may be larger than all others.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_flight::flight_service_server::FlightServiceServer;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;

use super::service::TidegateFlightService;
use super::whole_body::WholeBody;

/// Bytes of a request: a statement.
const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a message with rows, or with values of parameters; it has one batch. Its caller is authenticated before.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a message of an answer. Batches are cut at 3 MiB; only a single row can be larger.
const ANSWER_BYTES_MAX: usize = 1 << 30;
const PUT_METHOD: &str = "/DoPut";

type Server = FlightServiceServer<TidegateFlightService>;

/// The service, with a limit for the messages of each method.
#[derive(Clone)]
pub(super) struct BoundedFlightService {
    of_rows: Server,
    others: Server,
}

impl BoundedFlightService {
    pub(super) fn new(service: TidegateFlightService) -> Self {
        let service = Arc::new(service);
        let server = |bytes_max| {
            FlightServiceServer::from_arc(service.clone())
                .max_decoding_message_size(bytes_max)
                .max_encoding_message_size(ANSWER_BYTES_MAX)
        };
        Self { of_rows: server(MESSAGE_BYTES_MAX), others: server(REQUEST_BYTES_MAX) }
    }
}

impl NamedService for BoundedFlightService {
    const NAME: &'static str = Server::NAME;
}

impl Service<http::Request<Body>> for BoundedFlightService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Both are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        match request.uri().path().ends_with(PUT_METHOD) {
            true => self.of_rows.call(request.map(|body| Body::new(WholeBody(body)))),
            false => self.others.call(request),
        }
    }
}
