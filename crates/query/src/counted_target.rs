//! Tables that take rows, with counters of what is written to them: for databases that do not count by themselves.

use std::sync::Arc;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, Principal, WriteTotals};
use tidegate_results::batch_bytes;

use crate::ingest::{IngestTable, RowWriter, WriteReceipt, WriteRequest, WriteStart, WriteTarget, is_rejects_table};

/// Counts the writes to a target.
#[derive(Debug)]
pub struct CountedTarget {
    target: Arc<dyn WriteTarget>,
    totals: Arc<Mutex<WriteTotals>>,
}

impl CountedTarget {
    /// Counts from zero what is written to `target` through this value.
    pub fn new(target: Arc<dyn WriteTarget>) -> Self {
        Self { target, totals: Arc::default() }
    }

    /// The same target, which continues the counters of `previous`.
    #[must_use]
    pub fn with_counters_of(&self, previous: &Self) -> Self {
        Self { target: self.target.clone(), totals: previous.totals.clone() }
    }

    /// What was written until now.
    pub fn totals(&self) -> WriteTotals {
        *self.totals.lock()
    }
}

#[async_trait]
impl WriteTarget for CountedTarget {
    fn database(&self) -> &str {
        self.target.database()
    }

    fn tables(&self) -> Vec<String> {
        self.target.tables()
    }

    fn for_caller(&self, caller: &Principal) -> Option<Arc<dyn WriteTarget>> {
        let target = self.target.for_caller(caller)?;
        Some(Arc::new(Self { target, totals: self.totals.clone() }))
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        self.target.table(table).await
    }

    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error> {
        let takes_rejects = request.tables.iter().map(|write| is_rejects_table(&write.table)).collect();
        let writer = match self.target.begin(request).await {
            Ok(WriteStart::Writer(writer)) => writer,
            Err(error) => {
                // Other errors are of the request, which no storage has seen.
                let is_failure = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TimedOut);
                self.totals.lock().failed_writes += u64::from(is_failure);
                return Err(error);
            }
            Ok(WriteStart::Repeated(receipt)) => {
                self.totals.lock().repeated_writes += 1;
                return Ok(WriteStart::Repeated(receipt));
            }
        };
        let totals = self.totals.clone();
        Ok(WriteStart::Writer(Box::new(CountedWriter { writer, totals, takes_rejects, bytes: 0, has_failed: false })))
    }

    fn count_rejected(&self, rows: u64) {
        self.totals.lock().rejected_rows += rows;
        self.target.count_rejected(rows);
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        self.target.drop_table(table).await
    }
}

#[derive(Debug)]
struct CountedWriter {
    writer: Box<dyn RowWriter>,
    totals: Arc<Mutex<WriteTotals>>,
    /// Of each table of the write: whether it is one of rejected rows.
    takes_rejects: Vec<bool>,
    bytes: u64,
    has_failed: bool,
}

impl CountedWriter {
    fn count_failure(&mut self) {
        if !self.has_failed {
            self.has_failed = true;
            self.totals.lock().failed_writes += 1;
        }
    }
}

#[async_trait]
impl RowWriter for CountedWriter {
    async fn write(&mut self, table: usize, rows: RecordBatch) -> Result<(), Error> {
        let bytes = batch_bytes(&rows) as u64;
        let written = self.writer.write(table, rows).await;
        match written {
            Ok(()) => self.bytes += bytes,
            // Parts of the rows may be written after it.
            Err(_) if self.writer.takes_parts(table) => {}
            Err(_) => self.count_failure(),
        }
        written
    }

    fn takes_parts(&self, table: usize) -> bool {
        self.writer.takes_parts(table)
    }

    fn memory_bytes(&self) -> usize {
        self.writer.memory_bytes()
    }

    async fn commit(self: Box<Self>) -> Result<WriteReceipt, Error> {
        let Self { writer, totals, takes_rejects, bytes, has_failed } = *self;
        let stored = writer.commit().await;
        let mut totals = totals.lock();
        let Ok(receipt) = &stored else {
            totals.failed_writes += u64::from(!has_failed);
            return stored;
        };
        totals.writes += 1;
        totals.bytes += bytes;
        for (rows, is_rejected) in receipt.rows.iter().zip(takes_rejects) {
            *(if is_rejected { &mut totals.rejected_rows } else { &mut totals.rows }) += rows;
        }
        stored
    }
}
