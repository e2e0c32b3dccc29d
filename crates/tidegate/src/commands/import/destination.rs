//! Where rows are stored: on a server, or in a node of this process.

use std::time::Duration;

use futures::TryStreamExt as _;
use serde_json::Value;
use tidegate_client::upload::{
    RowReason, UploadError, UploadOptions, UploadReceipt, UploadRequest, UploadTarget, Uploader,
};
use tidegate_core::{CallTarget, Caller, Error, ErrorKind, Format, WriteRows};
use tidegate_runtime::{Call, RequestBody};
use tokio_util::sync::CancellationToken;

use super::TableName;
use crate::application::{Application, StartOptions, WrittenDatabases};
use crate::command_error::CommandError;
use crate::commands::table_server::{RunningServer, ServerFlags};
use crate::options::GlobalOptions;
use crate::shutdown::Shutdown;

/// Stores parts of files.
pub(super) enum ImportDestination {
    Server { uploader: Box<Uploader>, stop: CancellationToken },
    Node(Box<LocalTable>),
}

/// A table of this process.
pub(super) struct LocalTable {
    application: Application,
    caller: Caller,
    to: TableName,
    stop: CancellationToken,
}

/// Why a part was not stored.
pub(super) enum SendError {
    /// The table does not exist, or takes no rows from this caller.
    NoTable(String),
    /// The rows do not fit.
    Refused { message: String, reasons: Vec<RowReason>, hint: Option<String> },
    /// No further part would be stored either.
    Failed(CommandError),
}

impl ImportDestination {
    pub(super) async fn open(
        server: &ServerFlags,
        to: &TableName,
        options: &GlobalOptions,
        shutdown: &Shutdown,
    ) -> Result<Self, CommandError> {
        let stop = shutdown.graceful.clone();
        if let Some(RunningServer { server, bearer, authorities }) = server.server()? {
            let TableName { database, table } = to.clone();
            let target = UploadTarget { server, database, table };
            let options = UploadOptions { bearer, authorities, ..UploadOptions::default() };
            let uploader = Uploader::new(&target, options).map_err(|error| anyhow::anyhow!("{error}"))?;
            return Ok(Self::Server { uploader: Box::new(uploader), stop });
        }
        let spec = StartOptions::of_writer(options, WrittenDatabases::One(&to.database))?;
        let application = spec.open().await?;
        let caller = application.local_caller(None)?;
        Ok(Self::Node(Box::new(LocalTable { application, caller, to: to.clone(), stop })))
    }

    /// Stores the rows of `request`. `on_bytes` receives how many bytes of the part were read, `on_retry` why it is sent
    /// again, and when.
    pub(super) async fn send(
        &self,
        request: &UploadRequest,
        on_bytes: impl Fn(u64) + Clone + Send + Sync + 'static,
        on_retry: impl Fn(&str, Duration),
    ) -> Result<UploadReceipt, SendError> {
        match self {
            Self::Server { uploader, stop } => {
                uploader.send(request, on_bytes, on_retry, stop).await.map_err(SendError::from)
            }
            Self::Node(table) => table.store(request, on_bytes).await,
        }
    }

    pub(super) async fn close(&self) {
        if let Self::Node(table) = self {
            table.application.close().await;
        }
    }
}

impl LocalTable {
    async fn store(
        &self,
        request: &UploadRequest,
        on_bytes: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<UploadReceipt, SendError> {
        let read = std::sync::atomic::AtomicU64::new(0);
        let stream = request.part.stream(move |bytes| {
            on_bytes(read.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed) + bytes);
        });
        let stream = stream.map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()));
        let entry = if request.replaces { WriteRows::ReplaceRows } else { WriteRows::AppendRows };
        let mut call = Call::new(CallTarget::Tool(entry.name().to_owned()), self.caller.clone());
        call.arguments.insert("database".to_owned(), self.to.database.as_str().into());
        call.arguments.insert("table".to_owned(), self.to.table.as_str().into());
        call.arguments.insert("key".to_owned(), request.key.as_str().into());
        for (name, value) in &request.parameters {
            let is_flag = matches!(value.as_str(), "true" | "false") && matches!(*name, "create" | "header");
            let value = if is_flag { Value::Bool(value == "true") } else { value.as_str().into() };
            call.arguments.insert((*name).to_owned(), value);
        }
        call.format = Some(Format::Json);
        call.cancellation = self.stop.clone();
        let coding = request.coding.map(str::to_owned);
        call.request_body = Some(RequestBody::new(request.media_type, coding, u64::MAX, stream));
        let (answer, _) = self.application.node().registry().call(call)?.collect_body(usize::MAX).await?;
        let receipt = serde_json::from_slice(&answer).ok().as_ref().and_then(UploadReceipt::from_json);
        let invalid = || CommandError::Query(Error::internal("the answer does not state how many rows are stored"));
        receipt.ok_or_else(|| SendError::Failed(invalid()))
    }
}

impl From<Error> for SendError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::NoTable(error.to_string()),
            ErrorKind::InvalidArguments | ErrorKind::TooLarge => {
                let reasons = error.violations().iter();
                let reasons = reasons
                    .map(|violation| RowReason { path: violation.path.clone(), message: violation.message.clone() });
                Self::Refused {
                    message: error.message().to_owned(),
                    reasons: reasons.collect(),
                    hint: error.hint().map(str::to_owned),
                }
            }
            _ => Self::Failed(CommandError::Query(error)),
        }
    }
}

impl From<UploadError> for SendError {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::NoTable { .. } => Self::NoTable(error.to_string()),
            UploadError::Refused { message, reasons, hint } => Self::Refused { message, reasons, hint },
            error => Self::Failed(anyhow::Error::msg(error.to_string()).into()),
        }
    }
}
