//! Stores complete answers: the caller receives a preview with a summary of the columns, and a link, while the query
//! continues. Readers of the result receive its manifest as JSON.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use chrono::{DateTime, SecondsFormat};
use futures::{StreamExt, TryStreamExt, future};
use serde_json::{Value, json};
use tidegate_core::{Caller, Content, Error, Format, shorten};
use tidegate_results::{NewResult, ResultEnd, ResultStore, StoredResult};
use tidegate_runtime::{Answer, AnswerMeta, ReplySender};

use super::delivery::next_page;
use super::{Executor, RecordBatchStream, run_plan, run_until_cancelled};
use crate::answer::stored_result_link;
use crate::body::{new_text_body, stored_columns};
use crate::database::QueryRows;
use crate::distinct::DistinctValues;
use crate::format::{batch_cells, field_type_name, mark_schema, unique_names};
use crate::progress::{AnswerStage, ProgressReporter};
use crate::request::{OutputOptions, QueryRequest};
use crate::result_table::RESULTS_DATABASE;
use crate::secrets::redact_stream;
use crate::structured::StructuredRows;

const PREVIEW_ROWS_MAX: usize = 10;
const PREVIEW_BYTES_MAX: usize = 4 * 1024;
const SUMMARY_COLUMNS_MAX: usize = 50;

impl Executor {
    /// Runs `request` into a stored result. The answer is a preview, a summary of the columns over the rows so far,
    /// and a link. It ends with the first rows, and the query continues in the background. For a client that supports
    /// tasks, the whole call becomes a task, which ends when all rows are stored.
    ///
    /// The answer fails as [`Executor::answer`] and [`ResultStore::begin`] do; with `Unavailable` where stored results
    /// are disabled.
    pub fn export(&self, request: QueryRequest) -> Answer {
        let executor = self.clone();
        Answer::written(|reply| async move { executor.write_export(request, &reply).await })
    }

    async fn write_export(&self, request: QueryRequest, reply: &ReplySender) -> Result<AnswerMeta, Error> {
        let (job, started, output) = (reply.job(), Instant::now(), &request.output);
        let store = self.require_store()?;
        request.statement.check_parameters()?;
        job.record_statement(|| request.statement.to_audited_statement(request.database.name()));
        let is_task = job.request_task();
        // Before the first step: a stored query has its own time limit.
        job.extend(store.limits().timeout);
        let (cache_key, cached) = self.look_up_cache(&request, job).await;
        if let Some(result) = &cached {
            let preview = ExportPreview { store, result, output, is_task, reply };
            job.set_result_uri(result.header().id.uri());
            return preview.send(started, true).await;
        }
        let progress = ProgressReporter::new(reply.call());
        let plan = self.plan(&request, &progress).await?;
        DistinctValues::for_answer(output.extract.as_deref(), &plan.schema())?;
        let _end = self.query_end(&*request.database, job, started);
        progress.enter_stage(AnswerStage::Running).await?;
        let QueryRows { schema, batches, .. } =
            run_until_cancelled(job, progress.run_with_heartbeat(run_plan(plan, job))).await?;
        let (distinct, schema) = DistinctValues::for_answer(output.extract.as_deref(), &schema)?;
        let schema = mark_schema(schema, job);
        output.check_columns(&schema)?;
        let rows = progress.count_rows(redact_stream(batches, job));
        let rows = match distinct {
            Some(distinct) => stream_distinct_values(rows, distinct),
            None => rows,
        };
        let database = &request.database;
        let (database, policies) = (database.name(), database.row_policy_fingerprint(job.principal()));
        let new_result = NewResult {
            policies,
            rows_max: output.rows_max,
            is_table: output.table.is_some(),
            alias: output.table.as_ref().and_then(|table| table.alias.as_deref()),
            required_access: &output.required_access,
            ..NewResult::new(job, database)
        };
        let writer = store.begin(new_result, stored_columns(&schema)).await?.with_cache_key(cache_key);
        let result = writer.result().clone();
        job.set_result_uri(result.header().id.uri());
        let preview = ExportPreview { store, result: &result, output, is_task, reply };
        let writing = writer.write_all(rows, 0, job);
        if is_task {
            // A client that polls a task expects the final state.
            progress.run_with_heartbeat(writing).await?;
            return preview.send(started, false).await;
        }
        // The answer ends with the preview, and no progress is reported after it.
        let answering = progress.run_with_heartbeat(preview.send(started, false));
        Ok(future::try_join(writing, answering).await?.1)
    }
}

/// Streams the distinct values of a column; they are read on demand.
fn stream_distinct_values(mut rows: RecordBatchStream, mut distinct: DistinctValues) -> RecordBatchStream {
    let values = async move {
        while let Some(batch) = rows.next().await.transpose()? {
            distinct.add(&batch)?;
        }
        Ok::<_, Error>(futures::stream::iter(distinct.into_batches()?.into_iter().map(Ok)))
    };
    futures::stream::once(values).try_flatten().boxed()
}

struct ExportPreview<'a> {
    store: &'a ResultStore,
    result: &'a Arc<StoredResult>,
    output: &'a OutputOptions,
    /// Whether the answer ends when all rows are stored.
    is_task: bool,
    reply: &'a ReplySender,
}

impl ExportPreview<'_> {
    async fn send(&self, started: Instant, is_again: bool) -> Result<AnswerMeta, Error> {
        if self.result.next_block(0).await.is_none() {
            // The writer reports the error.
            return future::pending().await;
        }
        let batches = self.result.block(0).await?.batches()?;
        let rows: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let (visible, text) = self.render_rows(&batches)?;
        let job = self.reply.job();
        self.send_item(job.protection().fence_data(text)).await?;
        self.send_item(job.protection().fence_data(self.render_summary(&batches)?)).await?;
        self.send_item(self.describe_storage(visible, rows)).await?;
        self.reply.send_missing_nodes_note().await?;
        let uri = self.result.header().id.uri();
        // A table is used by its name.
        if self.output.overflow.is_linked() && self.output.table.is_none() {
            self.reply.send_item(stored_result_link(&uri)).await?;
        }
        if self.output.structured.is_some() {
            self.reply.send_structured_json(self.render_structured(&batches)).await?;
        } else if job.format().is_some() {
            self.reply.send_structured(&result_manifest(self.store, self.result, Some(job.caller()))).await?;
        }
        let metadata = AnswerMeta {
            rows: Some(visible),
            elapsed: Some(started.elapsed()),
            is_truncated: Some(true),
            cursor: Some(next_page(self.store, self.result, visible, self.output, job).cursor),
            is_cached: is_again,
            ..AnswerMeta::default()
        };
        if !self.is_task {
            self.reply.end_early(metadata.clone(), self.store.limits().timeout).await?;
        }
        Ok(metadata)
    }

    async fn send_item(&self, text: String) -> Result<(), Error> {
        self.reply.send_item(Content::text(text)).await
    }

    /// The format of the texts of the preview, which is no body.
    fn format(&self) -> Format {
        self.output.format.unwrap_or_default()
    }

    fn render_rows(&self, batches: &[RecordBatch]) -> Result<(u64, String), Error> {
        let mut body = new_text_body(self.format(), self.output.extract.is_some(), self.result.schema())?;
        if let Some(batch) = batches.first() {
            body.inspect_rows(batch, batch.num_rows().min(PREVIEW_ROWS_MAX));
        }
        'batches: for batch in batches {
            let cells = batch_cells(batch);
            for row in 0..batch.num_rows() {
                let bytes = body.write_row(&cells, row);
                if body.piece_bytes() > PREVIEW_BYTES_MAX || body.rows > PREVIEW_ROWS_MAX as u64 {
                    body.undo_row(bytes);
                    break 'batches;
                }
            }
        }
        let visible = body.rows;
        body.write_end(false);
        Ok((visible, body.take_rest().0))
    }

    fn render_summary(&self, batches: &[RecordBatch]) -> Result<String, Error> {
        let schema = self.result.schema();
        let columns: Vec<usize> = (0..schema.fields().len().min(SUMMARY_COLUMNS_MAX)).collect();
        let summary = || {
            let narrowed = batches.iter().map(|batch| batch.project(&columns)).collect::<Result<Vec<_>, _>>()?;
            let summary = summarize_columns(&Arc::new(schema.project(&columns)?), &narrowed)?;
            if self.output.table.is_some() { with_types(&summary, schema) } else { Ok(summary) }
        };
        let summary = summary().map_err(|error| Error::internal(format!("a preview failed: {error}")))?;
        let mut body = new_text_body(self.format(), false, summary.schema_ref())?;
        body.write(&summary);
        body.write_end(false);
        Ok(body.take_rest().0)
    }

    fn describe_storage(&self, visible: u64, read: u64) -> String {
        let id = self.result.header().id;
        let stage = self.result.progress();
        let state = match &stage.end {
            None => "and more are being written".to_owned(),
            Some(end) => match (end.reason(), self.result.reached_row_limit()) {
                (Some(reason), _) => format!("and the result is incomplete: {reason}"),
                (None, Some(_)) => "as many as requested (limit, max_rows); more may exist".to_owned(),
                (None, None) => "which are all".to_owned(),
            },
        };
        if let Some(table) = &self.output.table {
            let name = table.alias.clone().unwrap_or_else(|| id.table_name());
            let until = format_time(self.result.header().expires_at_ms).unwrap_or_default();
            return format!(
                "The answer is the table {RESULTS_DATABASE}.{name}, for sql and query, until {until}. It has {} rows so far, \
                 {state}. Showing the first {visible} rows, and a summary of the columns over the first {read}.",
                stage.rows(),
            );
        }
        format!(
            "Showing the first {visible} rows, and a summary of the columns over the first {read}. Stored: {} rows so \
             far, {state}. The stored rows: {}, over HTTP /results/{id}/data. Page by page: repeat the call with \
             \"cursor\": \"{}\".",
            stage.rows(),
            id.uri(),
            next_page(self.store, self.result, visible, self.output, self.reply.job()).cursor,
        )
    }

    /// The rows of the preview as structured content that conforms to the output schema of the tool.
    fn render_structured(&self, batches: &[RecordBatch]) -> String {
        let mut structured = StructuredRows::new(self.result.schema());
        let mut left = PREVIEW_ROWS_MAX;
        for batch in batches {
            let cells = batch_cells(batch);
            for row in 0..batch.num_rows().min(left) {
                structured.write_row(&cells, row);
            }
            left = left.saturating_sub(batch.num_rows());
        }
        structured.finish(true)
    }
}

/// Maximum characters of a minimum or maximum value.
const VALUE_CHARS_MAX: usize = 60;

/// Summarizes each column of `batches`: the number of values and nulls, the minimum, the maximum, and the number of
/// distinct values. Columns that cannot be compared have neither of the last three.
fn summarize_columns(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
    let rows = concat_batches(schema, batches)?;
    let cells = batch_cells(&rows);
    let (mut counts, mut nulls, mut distinct) = (Vec::new(), Vec::new(), Vec::new());
    let (mut least, mut greatest) = (Vec::new(), Vec::new());
    for (values, cells) in rows.columns().iter().zip(&cells) {
        let text = |row: &usize| {
            let mut text = String::new();
            cells.append_text(*row, &mut text);
            shorten(text, VALUE_CHARS_MAX)
        };
        let present: Vec<usize> = (0..rows.num_rows()).filter(|row| !cells.is_null(*row)).collect();
        counts.push(present.len() as u64);
        nulls.push((rows.num_rows() - present.len()) as u64);
        let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())]);
        let keys = converter.and_then(|converter| converter.convert_columns(std::slice::from_ref(values))).ok();
        let keys = keys.as_ref();
        least.push(keys.and_then(|keys| present.iter().min_by_key(|row| keys.row(**row))).map(text));
        greatest.push(keys.and_then(|keys| present.iter().max_by_key(|row| keys.row(**row))).map(text));
        distinct.push(keys.map(|keys| {
            let different: HashSet<&[u8]> = present.iter().map(|row| keys.row(*row).data()).collect();
            different.len() as u64
        }));
    }
    RecordBatch::try_from_iter_with_nullable([
        ("column", Arc::new(StringArray::from(unique_names(schema))) as ArrayRef, true),
        ("count", Arc::new(UInt64Array::from(counts)), true),
        ("nulls", Arc::new(UInt64Array::from(nulls)), true),
        ("min", Arc::new(StringArray::from_iter(least)), true),
        ("max", Arc::new(StringArray::from_iter(greatest)), true),
        ("distinct", Arc::new(UInt64Array::from(distinct)), true),
    ])
}

/// `summary` of the columns of `schema`, with their types behind their names.
fn with_types(summary: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let types = schema.fields().iter().take(summary.num_rows()).map(|field| field_type_name(field));
    let types: ArrayRef = Arc::new(StringArray::from_iter_values(types));
    let mut fields = summary.schema().fields().to_vec();
    let mut columns = summary.columns().to_vec();
    fields.insert(1, Arc::new(Field::new("type", DataType::Utf8, false)));
    columns.insert(1, types);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// The manifest of `result`, with links that act for `reader`. A reader that came by a link receives no further
/// links, because they would never expire.
pub fn result_manifest(store: &ResultStore, result: &StoredResult, reader: Option<&Caller>) -> Value {
    let header = result.header();
    let progress = result.progress();
    let blocks: Vec<Value> = progress
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| {
            json!({
                "index": index, "first_row": block.first_row, "rows": block.rows, "bytes": block.bytes,
                "sha256": block.sha256,
            })
        })
        .collect();
    let columns = result.schema().fields().iter();
    let columns: Vec<Value> = columns
        .map(|field| json!({"name": field.name(), "type": field_type_name(field), "nullable": field.is_nullable()}))
        .collect();
    let mut manifest = json!({
        "id": header.id.to_string(),
        "uri": header.id.uri(),
        "status": progress.status(),
        "created_at": format_time(header.created_at_ms),
        "expires_at": format_time(header.expires_at_ms),
        "job": header.job.to_string(),
        "rows": progress.rows(),
        "bytes": progress.bytes(),
        "columns": columns,
        "blocks": blocks,
    });
    match &header.file {
        Some(file) => {
            manifest["resource"] = header.tool.as_str().into();
            manifest["file"] = json!({"name": file.name, "bytes": file.bytes});
            if let Some(media_type) = &file.media_type {
                manifest["file"]["media_type"] = media_type.as_str().into();
            }
        }
        None => {
            manifest["tool"] = header.tool.as_str().into();
            manifest["database"] = header.database.as_str().into();
        }
    }
    if let Some(reason) = progress.end.as_ref().and_then(ResultEnd::reason) {
        manifest["reason"] = reason.into();
    }
    if let (Some(missing), Some(members)) = (&header.missing_nodes, manifest.as_object_mut()) {
        members.extend(missing.to_json_members());
    }
    if let Some(rows) = result.reached_row_limit() {
        manifest["asked_for"] = rows.into();
    }
    if let Some(reader) = reader.filter(|reader| !reader.is_link_only) {
        let (link, expires_at_ms) = store.create_link(result, reader);
        manifest["links"] = json!({
            "expires_at": format_time(expires_at_ms),
            "manifest": format!("/results/{}?link={link}", header.id),
            "data": format!("/results/{}/data?link={link}", header.id),
        });
    }
    manifest
}

fn format_time(ms: u64) -> Option<String> {
    let time = DateTime::from_timestamp_millis(i64::try_from(ms).ok()?)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Millis, true))
}
