//! One `COPY … FROM STDIN BINARY`.

use std::pin::Pin;

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::{Client, CopyInSink, Error};

/// The signature, the flags and the length of the header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The number of columns of the end.
const TRAILER: &[u8] = &[0xff; 2];
/// The size of the buffer at which it is sent.
const BUFFER_BYTES: usize = 64 * 1024;
/// The size after which a command ends and another one follows. Errors of rows become known then, and the server checks
/// foreign keys, for which it otherwise keeps an entry in memory for each row.
const COMMAND_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A running command. Dropping it lets the command fail.
pub(super) struct CopyCommand {
    sink: Pin<Box<CopyInSink<Bytes>>>,
    pub(super) buffer: Vec<u8>,
    bytes_sent: usize,
    pub(super) rows: u64,
}

impl CopyCommand {
    /// Begins to copy into `columns` (quoted) of the table `sql_name`.
    pub(super) async fn start(client: &Client, sql_name: &str, columns: &[String]) -> Result<Self, Error> {
        let sql = format!("COPY {sql_name} ({}) FROM STDIN BINARY", columns.join(", "));
        let sink = Box::pin(client.copy_in(&sql).await?);
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(HEADER);
        Ok(Self { sink, buffer, bytes_sent: 0, rows: 0 })
    }

    /// Sends the buffer if it is full. Waits until the connection takes it.
    pub(super) async fn send_if_full(&mut self) -> Result<(), Error> {
        if self.buffer.len() >= BUFFER_BYTES { self.send().await } else { Ok(()) }
    }

    async fn send(&mut self) -> Result<(), Error> {
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(BUFFER_BYTES));
        self.bytes_sent += bytes.len();
        self.sink.send(bytes.into()).await
    }

    /// Whether the command has received so much that another one should follow.
    pub(super) fn is_full(&self) -> bool {
        self.bytes_sent >= COMMAND_BYTES_MAX
    }

    /// Ends the command; returns the number of rows that the server stored.
    pub(super) async fn finish(mut self) -> Result<u64, Error> {
        self.buffer.extend_from_slice(TRAILER);
        self.send().await?;
        self.sink.as_mut().finish().await
    }
}
