//! One answer on its way: rows become text, text leaves in pieces, and it ends at the budget.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde_json::Value;
use tidegate_core::{Content, Error, Job, Metadata, ReplySender};

use crate::format::{Facts, Writer, cells};
use crate::structured::Structured;

/// Text that leaves at once, in bytes.
const PIECE_BYTES_MAX: usize = 64 * 1024;
/// A piece this long leaves; it may be a row longer than that, and is then split.
const PIECE_BYTES: usize = 60 * 1024;
/// The first piece is small, so that the first rows leave early.
const FIRST_PIECE_BYTES: usize = 4 * 1024;
/// Text that an answer in batch mode holds back at most. A longer answer streams from there on.
const HELD_BYTES_MAX: usize = 1024 * 1024;
/// Answers whose budget is larger are text alone: the same rows as data would have to be gathered.
const STRUCTURED_BYTES_MAX: usize = 1024 * 1024;
/// Kept free in the budget for the line that says what was not shown.
const LINE_BYTES: usize = 300;
/// Smaller budgets keep nothing free for the line.
const BUDGET_BYTES_FOR_LINE: usize = 10 * LINE_BYTES;
/// Progress is told no more often.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Why an answer ended before its rows did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// As many rows as were wanted.
    Rows,
    /// As many rows as an answer may have.
    RowsOfBudget,
    /// The next row, of so many bytes, does not fit.
    Bytes { next: usize },
}

/// The words of the line about what is not shown.
#[derive(Debug, Clone)]
pub(crate) struct Hints {
    /// What is answered: `row` or `value`.
    pub(crate) noun: &'static str,
    /// How to ask for the rest when as many were shown as were wanted.
    pub(crate) limit: String,
    /// How to ask for the rest when no more are allowed or fit.
    pub(crate) budget: String,
}

/// Rows on their way into a reply.
pub(crate) struct Answer<'a> {
    job: &'a Job,
    reply: &'a ReplySender,
    writer: Box<dyn Writer>,
    structured: Option<Structured>,
    rows_max: Option<u64>,
    /// Why the answer ends at `rows_max`.
    rows_cut: Cut,
    bytes_max: Option<usize>,
    /// Whether text waits until all of it is there.
    holding: bool,
    began: bool,
    /// Text that has not left, and the rows in it.
    piece: String,
    piece_rows: u64,
    rows: u64,
    sent_bytes: usize,
    cut: Option<Cut>,
    started: Instant,
    progress: Progress,
}

impl<'a> Answer<'a> {
    /// An answer of nothing yet, within the budget of `job` and `rows_max`.
    pub(crate) fn new(
        writer: Box<dyn Writer>,
        holding: bool,
        rows_max: Option<u64>,
        job: &'a Job,
        reply: &'a ReplySender,
        started: Instant,
    ) -> Self {
        let budget = job.inline_budget();
        let (rows_max, rows_cut) = match (rows_max, budget.rows) {
            (Some(wanted), Some(allowed)) if allowed < wanted => (Some(allowed), Cut::RowsOfBudget),
            (Some(wanted), _) => (Some(wanted), Cut::Rows),
            (None, allowed) => (allowed, Cut::RowsOfBudget),
        };
        Self {
            job,
            reply,
            writer,
            structured: None,
            rows_max,
            rows_cut,
            bytes_max: budget.bytes,
            holding,
            began: false,
            piece: String::new(),
            piece_rows: 0,
            rows: 0,
            sent_bytes: 0,
            cut: None,
            started,
            progress: Progress::default(),
        }
    }

    /// Gathers the rows as data too, where the budget bounds how much that can be.
    pub(crate) fn with_structured(mut self, schema: &SchemaRef) -> Self {
        if self.bytes_max.is_some_and(|max| max <= STRUCTURED_BYTES_MAX) {
            self.structured = Some(Structured::new(schema));
        }
        self
    }

    /// The rows that [`Answer::look_at`] wants to see first.
    pub(crate) fn lookahead_rows(&self) -> usize {
        let wanted = self.rows_max.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(usize::MAX);
        self.writer.lookahead_rows().min(wanted)
    }

    /// Looks at the first rows before they are pushed.
    pub(crate) fn look_at(&mut self, batches: &[RecordBatch]) {
        let mut left = self.lookahead_rows();
        for batch in batches {
            let rows = batch.num_rows().min(left);
            self.writer.look_at(&cells(batch), rows);
            left -= rows;
        }
    }

    /// Writes the rows of `batch`; breaks when the answer is at its end.
    pub(crate) async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let cells = cells(batch);
        for row in 0..batch.num_rows() {
            if self.rows_max.is_some_and(|max| self.rows >= max) {
                self.cut = Some(self.rows_cut);
                return Ok(ControlFlow::Break(()));
            }
            self.begin();
            let before = self.piece.len();
            self.writer.row(&cells, row, self.rows, &mut self.piece);
            if !self.fits() {
                self.cut = Some(Cut::Bytes { next: self.piece.len() - before });
                self.piece.truncate(before);
                return Ok(ControlFlow::Break(()));
            }
            if let Some(structured) = &mut self.structured {
                structured.row(&cells, row);
            }
            self.rows += 1;
            self.piece_rows += 1;
            if self.piece.len() >= self.piece_bytes() {
                self.leave().await?;
            }
        }
        self.report().await?;
        Ok(ControlFlow::Continue(()))
    }

    /// Lets the rows leave that are there, because the next are not; not in batch mode.
    pub(crate) async fn pause(&mut self) -> Result<(), Error> {
        if self.holding || self.piece.is_empty() { Ok(()) } else { self.leave().await }
    }

    /// Tells the caller how many rows there are so far, a few times a second.
    pub(crate) async fn report(&mut self) -> Result<(), Error> {
        self.progress.tell(self.rows, self.reply).await
    }

    fn begin(&mut self) {
        if !self.began {
            self.began = true;
            self.writer.open(&mut self.piece);
        }
    }

    /// Whether what was written so far stays within the budget when it is closed.
    fn fits(&self) -> bool {
        self.bytes_max.is_none_or(|max| {
            let line = if max >= BUDGET_BYTES_FOR_LINE { LINE_BYTES } else { 0 };
            self.sent_bytes + self.piece.len() + self.writer.closing_bytes_max() + line <= max
        })
    }

    /// How long the text gets before it leaves.
    fn piece_bytes(&self) -> usize {
        if self.holding {
            HELD_BYTES_MAX
        } else if self.sent_bytes == 0 {
            FIRST_PIECE_BYTES
        } else {
            PIECE_BYTES
        }
    }

    async fn leave(&mut self) -> Result<(), Error> {
        self.holding = false;
        self.writer.seal(self.rows - self.piece_rows, self.piece_rows, &mut self.piece);
        self.job.count_rows(std::mem::take(&mut self.piece_rows));
        self.sent_bytes += self.piece.len();
        let text = std::mem::replace(&mut self.piece, String::with_capacity(PIECE_BYTES_MAX));
        self.send(text).await?;
        self.report().await
    }

    async fn send(&self, text: String) -> Result<(), Error> {
        if text.len() <= PIECE_BYTES_MAX {
            return self.reply.text(text).await;
        }
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
            self.reply.text(piece).await?;
            rest = after;
        }
        Ok(())
    }

    /// Ends the answer well: closes its block, says what was not shown, gives the facts.
    pub(crate) async fn finish(mut self, hints: &Hints) -> Result<Metadata, Error> {
        let held = self.holding;
        self.close(self.cut.is_some()).await?;
        if let Some(cut) = self.cut {
            self.reply.end_text().await?;
            self.reply.block(Content::text(self.line(cut, hints))).await?;
        }
        if let Some(structured) = self.structured.take() {
            self.reply.structured_text(structured.close(self.cut.is_some())).await?;
        }
        Ok(self.metadata(held))
    }

    /// Ends the answer after a failure: if rows were sent, their block is closed.
    pub(crate) async fn abandon(mut self) -> Result<(), Error> {
        if self.sent_bytes == 0 {
            return Ok(());
        }
        self.close(true).await?;
        self.reply.end_text().await
    }

    async fn close(&mut self, truncated: bool) -> Result<(), Error> {
        self.begin();
        self.writer.seal(self.rows - self.piece_rows, self.piece_rows, &mut self.piece);
        self.job.count_rows(std::mem::take(&mut self.piece_rows));
        let facts = Facts { rows: self.rows, elapsed: self.started.elapsed(), truncated };
        self.writer.close(facts, &mut self.piece);
        self.sent_bytes += self.piece.len();
        let text = std::mem::take(&mut self.piece);
        self.send(text).await
    }

    /// The one line that says what was not shown and how to ask for it.
    fn line(&self, cut: Cut, hints: &Hints) -> String {
        let (rows, noun) = (self.rows, hints.noun);
        let bytes_max = self.bytes_max.unwrap_or_default();
        let shown = match rows {
            0 => format!("no {noun}s"),
            1 => format!("the first {noun}"),
            _ => format!("the first {rows} {noun}s"),
        };
        match cut {
            Cut::Rows => format!("Shown: {shown}; more exist. {}", hints.limit),
            Cut::RowsOfBudget => format!("Shown: {shown}, as many as are allowed; more exist. {}", hints.budget),
            Cut::Bytes { next } if rows == 0 => format!(
                "Shown: {shown}; the first alone takes {next} characters, and the answer may take {bytes_max}. \
                 Select fewer columns, or shorten long ones with left(column, 100)."
            ),
            Cut::Bytes { .. } => {
                format!("Shown: {shown}, as many as fit into {bytes_max} characters; more exist. {}", hints.budget)
            }
        }
    }

    fn metadata(&self, held: bool) -> Metadata {
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        [
            ("mode", Value::from(if held { "batch" } else { "streaming" })),
            ("rows", Value::from(self.rows)),
            ("bytes", Value::from(self.sent_bytes)),
            ("elapsed_ms", Value::from(elapsed_ms)),
            ("truncated", Value::from(self.cut.is_some())),
        ]
        .into_iter()
        .map(|(name, value)| (format!("dev.tidegate/{name}"), value))
        .collect()
    }
}

/// When progress was told last, and what.
#[derive(Default)]
pub(crate) struct Progress {
    told: Option<(Instant, u64)>,
}

impl Progress {
    /// Tells that `rows` are done, if that is news and the last news are old enough.
    pub(crate) async fn tell(&mut self, rows: u64, reply: &ReplySender) -> Result<(), Error> {
        let (at, before) = *self.told.get_or_insert_with(|| (Instant::now(), 0));
        if rows <= before || at.elapsed() < PROGRESS_INTERVAL {
            return Ok(());
        }
        self.told = Some((Instant::now(), rows));
        // A float holds every number of rows that will ever be counted.
        reply.progress(rows as f64, None, Some(format!("{rows} rows"))).await
    }
}
