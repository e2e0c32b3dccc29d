//! Catalogs, schemas and tables.

use arrow_flight::FlightData;
use arrow_flight::sql::Command;
use bytes::Bytes;
use futures::stream::BoxStream;
use tonic::Status;

use super::service::FlightRequest;

impl FlightRequest {
    pub(super) fn catalog_schema(&self, _command: &Command) -> Option<Result<Bytes, Status>> {
        None
    }

    pub(super) async fn answer_catalog(
        self,
        _command: Command,
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        Err(Status::unimplemented("not yet"))
    }
}
