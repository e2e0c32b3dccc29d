//! Rows on their way into an answer, and beyond its end into the store.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tidegate_core::{Error, ErrorKind, Job, Metadata};

use super::continuation::Keeper;
use crate::answer::{Answer, Hints, Progress, Prospect};
use crate::distinct::Distinct;
use crate::format::{Form, list_writer, writer};

pub(super) type Batches = BoxStream<'static, Result<RecordBatch, Error>>;

/// What is answered: the rows, or the unique values of one column.
pub(super) enum Kind {
    Rows,
    Values(Box<Distinct>),
    /// Rows that were stored; `is_list` says that they are such values.
    Stored {
        is_list: bool,
    },
}

impl Kind {
    pub(super) fn of(extract: Option<&str>, schema: &SchemaRef) -> Result<Self, Error> {
        match extract {
            None => Ok(Self::Rows),
            Some(column) => Ok(Self::Values(Box::new(Distinct::new(column, schema)?))),
        }
    }

    /// The columns of what is answered.
    pub(super) fn schema(&self, schema: &SchemaRef) -> SchemaRef {
        match self {
            Self::Rows | Self::Stored { .. } => schema.clone(),
            Self::Values(distinct) => distinct.schema(schema),
        }
    }

    pub(super) fn noun(&self) -> &'static str {
        if self.is_list() { "value" } else { "row" }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::Values(_) | Self::Stored { is_list: true })
    }

    /// An answer of nothing yet from rows of `schema`; `holding` says whether its text waits until all of it is there.
    pub(super) fn answer<'a>(
        &self,
        prospect: &Prospect<'a>,
        schema: &SchemaRef,
        holding: bool,
    ) -> Result<Answer<'a>, Error> {
        let columns = self.schema(schema);
        let format = match prospect.form {
            Form::Batches(format) => return Answer::of_batches(prospect, format, &columns),
            Form::Content(format) | Form::Body(format) => format,
        };
        let writer = if self.is_list() { list_writer(format, &columns) } else { writer(format, &columns) };
        Ok(Answer::of_text(prospect, writer, holding))
    }
}

/// One answer with everything that it takes.
pub(super) struct Flow<'a> {
    pub(super) batches: Batches,
    pub(super) kind: Kind,
    pub(super) answer: Answer<'a>,
    pub(super) hints: Hints,
    /// What stores the rows that do not fit, if they are to be stored.
    pub(super) keeper: Option<Keeper<'a>>,
    /// The columns of the rows.
    pub(super) schema: SchemaRef,
    pub(super) progress: &'a Progress<'a>,
}

impl Flow<'_> {
    /// Lets the rows flow into the answer and ends it. What does not fit flows on into the store after that.
    pub(super) async fn deliver(self) -> Result<Metadata, Error> {
        let Self { mut batches, kind, mut answer, hints, keeper, schema, progress } = self;
        let reply = progress.reply();
        let schema = kind.schema(&schema);
        let mut kept = keeper.is_some().then(Vec::new);
        let delivered = match kind {
            Kind::Rows | Kind::Stored { .. } => stream(&mut batches, &mut answer, progress, kept.as_mut()).await,
            Kind::Values(distinct) => match gather(&mut batches, *distinct, progress).await {
                Ok(values) => {
                    batches = futures::stream::iter(values.into_iter().map(Ok)).boxed();
                    stream(&mut batches, &mut answer, progress, kept.as_mut()).await
                }
                Err(error) => Err(error),
            },
        };
        match delivered {
            Ok(()) => match (keeper, answer.rows_at_budget()) {
                (Some(keeper), Some(rows)) => {
                    let kept = futures::stream::iter(kept.unwrap_or_default().into_iter().map(Ok));
                    keeper.go_on(kept.chain(batches).boxed(), &schema, rows, answer, hints, reply).await
                }
                (keeper, _) => {
                    // Stops the query before the last words are sent.
                    drop(batches);
                    match keeper {
                        Some(keeper) => keeper.keep(kept.unwrap_or_default(), &schema, answer, hints, reply).await,
                        None => answer.finish(&hints, None).await,
                    }
                }
            },
            Err(error) => {
                drop(batches);
                Err(abandoned(answer, error).await?)
            }
        }
    }
}

/// Closes `answer`, which `error` ended.
pub(super) async fn abandoned(answer: Answer<'_>, error: Error) -> Result<Error, Error> {
    // When the caller is gone there is nothing to close.
    if error.kind() != ErrorKind::Cancelled {
        answer.abandon(&error).await?;
    }
    Ok(error)
}

/// Lets the rows flow until they end or the answer does.
pub(super) async fn stream(
    batches: &mut Batches,
    answer: &mut Answer<'_>,
    progress: &Progress<'_>,
    mut kept: Option<&mut Vec<RecordBatch>>,
) -> Result<(), Error> {
    let (mut first, mut rows, mut has_ended) = (Vec::new(), 0, false);
    while rows < answer.lookahead_rows() && !has_ended {
        match next(batches, progress).await? {
            Some(batch) => {
                rows += batch.num_rows();
                first.push(batch);
            }
            None => has_ended = true,
        }
    }
    answer.look_at(&first);
    let mut keep = |batch: &RecordBatch| {
        if let Some(kept) = kept.as_mut() {
            kept.push(batch.clone());
        }
    };
    // Those that were looked at and are not shown are kept all the same.
    first.iter().for_each(&mut keep);
    for batch in first {
        if answer.push(&batch).await?.is_break() {
            return Ok(());
        }
    }
    if has_ended {
        // A stream that has ended may not be asked again.
        return Ok(());
    }
    loop {
        let batch = match batches.next().now_or_never() {
            Some(batch) => batch.transpose()?,
            None => {
                answer.pause().await?;
                next(batches, progress).await?
            }
        };
        let Some(batch) = batch else { return Ok(()) };
        keep(&batch);
        if answer.push(&batch).await?.is_break() {
            return Ok(());
        }
        if progress.job().is_cancelled() {
            return Err(cancelled());
        }
    }
}

/// Reads all rows and keeps the unique values of one column.
async fn gather(
    batches: &mut Batches,
    mut distinct: Distinct,
    progress: &Progress<'_>,
) -> Result<Vec<RecordBatch>, Error> {
    let mut rows = 0;
    while let Some(batch) = next(batches, progress).await? {
        distinct.add(&batch)?;
        rows += batch.num_rows() as u64;
        progress.reach(rows, 0).await?;
    }
    distinct.into_batches()
}

async fn next(batches: &mut Batches, progress: &Progress<'_>) -> Result<Option<RecordBatch>, Error> {
    or_cancelled(progress.job(), progress.during(batches.next().map(Option::transpose))).await
}

pub(super) async fn or_cancelled<T>(job: &Job, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = job.cancelled() => Err(cancelled()),
        done = work => done,
    }
}

pub(super) fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the call was cancelled")
}
