//! The sources of DataFusion that read files. Their errors and panics name the file.
//!
//! [`ReaderSource`] reads the files of all formats but Parquet with the readers of this crate. It replaces
//! DataFusion's sources for these reasons:
//!
//! - A file of a folder with different columns is refused instead of read by position.
//! - An error names file, row and column, and corrects the type of the column.
//! - The length of a row is limited, and the lengths that an Arrow file declares are checked.
//! - Text files are not split into byte ranges, which would break rows with quoted line breaks.
//! - If a reader panics on a damaged file, the statement fails with an error that names the file.
//!
//! [`IsolatedParquetSource`] reads Parquet. DataFusion does so in steps: planners read the footer and choose row
//! groups, morsels decode them. Each step may panic on a damaged file. Everything else is DataFusion's source.
//!
//! Types in the data files of Delta tables are checked: a cast that loses nothing reads what was written before a
//! column became wider. DataFusion would also cast where the file has something else, and change values without an
//! error.

use std::fmt;
use std::fs::File;
use std::io::Seek;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::ExpressionPlacement;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, PhysicalExpr, SortOrderPushdownResult, apply_expression_roots};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::{GetOptions, GetResultPayload, ObjectStore};
use thiserror::Error;
use tidegate_delta::is_readable_type;
use tidegate_query::type_name;

use super::footer::PagesTooLarge;
use super::json_rows::JsonRows;
use super::leaf_values::{convert_leaves, leaf_as_text};
use super::text_rows::{
    BATCH_BYTES_MAX, CsvRows, LogFile, LogRows, ReadContext, ReadFailure, explain_csv_error, explain_json_error,
    explain_read_error, find_cause, unreadable_error,
};
use crate::embedded::files::{
    CHANGED_WHILE_READ, ColumnCorrections, Compression, ContentFormat, CsvDialect, FileSnapshots, FileTable, IpcReader,
    JsonRecords, LogDialect, READER_PANICKED, ReadBudget, STORE_ERROR_PREFIX, TableDeclarations, TextDecoding,
    WorkbookSheet, arrow_table_schema, catch_reader_panic, column_names, from_location, open_records, open_text,
    read_header, read_workbook, split_compression, strip_error_kind, without_encodings,
};
use crate::embedded::row_bytes::{compact, cut_rows, value_bytes};

#[derive(Clone)]
pub(crate) struct ReaderSource {
    table: Arc<FileTable>,
    corrections: Arc<ColumnCorrections>,
    declarations: TableDeclarations,
    row_bytes_max: usize,
    columns_max: usize,
    /// The maximum size of a compressed batch of an Arrow file after decompression.
    decompressed_bytes_max: u64,
    batch_rows: usize,
    projection: SplitProjection,
    metrics: ExecutionPlanMetricsSet,
}

impl ReaderSource {
    pub(crate) fn new(table: Arc<FileTable>, files: &FileSnapshots) -> Self {
        let projection = SplitProjection::unprojected(&table.schema);
        Self {
            table,
            corrections: files.corrections.clone(),
            declarations: files.declarations.clone(),
            row_bytes_max: files.limits.row_bytes_max,
            columns_max: files.limits.columns_max,
            decompressed_bytes_max: files.engine().options().query_memory_bytes as u64,
            batch_rows: 1_024,
            projection,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl FileSource for ReaderSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        _base: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let opener = ReaderOpener { store, source: self.clone() };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), self.table.schema.file_schema())
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table.schema
    }

    fn with_batch_size(&self, batch_rows: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_rows, ..self.clone() })
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table.schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        match &self.table.format {
            ContentFormat::Csv(_) => "csv",
            ContentFormat::Sheet(..) => "sheet",
            ContentFormat::Log(_) => "log",
            ContentFormat::ArrowFile => "arrow",
            ContentFormat::ArrowStream => "arrow_stream",
            _ => "json",
        }
    }

    fn fmt_extra(&self, _: DisplayFormatType, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// The footer of an Arrow file lists where its batches begin.
    fn supports_repartitioning(&self) -> bool {
        self.table.format == ContentFormat::ArrowFile
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.projection.source.iter(), visit)
    }
}

struct ReaderOpener {
    store: Arc<dyn ObjectStore>,
    source: ReaderSource,
}

impl FileOpener for ReaderOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let (store, source) = (self.store.clone(), self.source.clone());
        Ok(Box::pin(async move {
            let (location, part) = (file.object_meta.location, file.range);
            let found = store.get_opts(&location, GetOptions::default()).await?;
            let GetResultPayload::File(file, _) = found.payload else {
                return Err(DataFusionError::Internal("files are opened as files".to_owned()));
            };
            let position = |position: i64| u64::try_from(position).unwrap_or_default();
            let part = part.map(|part| position(part.start)..position(part.end));
            let location = from_location(&location);
            let opened = catch_reader_panic(|| source.open_rows(file, &location, part.as_ref()));
            let batches = opened.unwrap_or_else(|reason| Err(unreadable_error(&location, reason)))?;
            Ok(futures::stream::iter(IsolatedBatches { batches: Some(batches), location }).boxed())
        }))
    }
}

/// The batches of a file. A panic of its reader is an error that names the file.
struct IsolatedBatches {
    /// `None` after a panic.
    batches: Option<BatchIterator<DataFusionError>>,
    location: String,
}

impl Iterator for IsolatedBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.batches.as_mut()?;
        catch_reader_panic(|| batches.next()).unwrap_or_else(|reason| {
            self.batches = None;
            Some(Err(unreadable_error(&self.location, reason)))
        })
    }
}

type BatchIterator<E> = Box<dyn Iterator<Item = Result<RecordBatch, E>> + Send>;

impl ReaderSource {
    fn columns(&self) -> &[usize] {
        &self.projection.file_indices
    }

    /// The batches of `file`, or of `part` of an Arrow file.
    fn open_rows(
        &self,
        file: File,
        location: &str,
        part: Option<&Range<u64>>,
    ) -> Result<BatchIterator<DataFusionError>> {
        let batches = match &self.table.format {
            ContentFormat::ArrowFile | ContentFormat::ArrowStream => return self.ipc_batches(file, location, part),
            ContentFormat::Csv(dialect) => return self.csv_rows(file, dialect, location),
            ContentFormat::Sheet(sheet) => self.sheet_rows(file, sheet, location)?,
            ContentFormat::Log(dialect) => self.log_rows(file, dialect, location)?,
            _ => return self.json_rows(file, location),
        };
        let (source, location) = (self.clone(), location.to_owned());
        Ok(Box::new(batches.map(move |batch| {
            batch.map_err(|error| source.with_context(&location, |context| explain_read_error(&error, context)))
        })))
    }

    fn csv_rows(&self, file: File, dialect: &CsvDialect, location: &str) -> Result<BatchIterator<DataFusionError>> {
        self.check_header(&file, dialect, location)?;
        let records = open_records(file, self.table.compression, dialect, ReadBudget::new(self.row_bytes_max))
            .map_err(|error| unreadable_error(location, &error))?;
        let options = self.declarations.options_for_file(location);
        let schema = Arc::new(self.table.schema.file_schema().project(self.columns())?);
        let rows = CsvRows::new(records, dialect, &self.table, &options, self.columns(), schema, self.batch_rows);
        let (source, location) = (self.clone(), location.to_owned());
        Ok(Box::new(rows.batches().map(move |batch| {
            batch.map_err(|error| source.with_context(&location, |context| explain_csv_error(&error, context)))
        })))
    }

    fn ipc_batches(
        &self,
        file: File,
        location: &str,
        part: Option<&Range<u64>>,
    ) -> Result<BatchIterator<DataFusionError>> {
        let location = location.to_owned();
        let failed = move |reason: String| unreadable_error(&location, &reason);
        let reader = IpcReader::open(file, part).map_err(&failed)?;
        let in_table = |schema: &Schema| arrow_table_schema(&without_encodings(schema));
        if !has_same_columns(&in_table(reader.schema()), self.table.schema.file_schema()) {
            return Err(failed("its columns differ from those of the table".to_owned()));
        }
        let selected = reader.schema().project(self.columns())?;
        let schema: SchemaRef = Arc::new(in_table(&selected));
        let is_converted = !has_same_columns(&schema, &selected);
        let batch_rows = if is_converted { self.batch_rows.max(1) } else { usize::MAX };
        let batches = reader.select(self.columns().to_vec(), self.decompressed_bytes_max);
        let batches = batches.map({
            let (schema, failed) = (schema.clone(), failed.clone());
            move |batch| match batch.map_err(&failed)? {
                batch if is_converted => convert_dictionaries(&batch, &schema),
                batch => Ok(batch),
            }
        });
        let row_bytes_max = self.decompressed_bytes_max;
        // Rows are measured and cut before their values are written out.
        let to_rows = move |(part, is_cut): (RecordBatch, bool)| {
            let bytes = if part.num_rows() == 1 { value_bytes(&part) } else { 0 };
            if bytes > row_bytes_max {
                return Err(failed(format!(
                    "a row has {bytes} bytes when its values are written out, and a query may have {row_bytes_max} bytes \
                     of memory; select other columns"
                )));
            }
            let rows = if is_converted { with_types(&part, &schema)? } else { part };
            if is_converted || is_cut { compact(&rows) } else { Ok(rows) }
        };
        Ok(Box::new(batches.flat_map(move |batch| -> BatchIterator<DataFusionError> {
            let batch = match batch {
                Ok(batch) => batch,
                error => return Box::new(std::iter::once(error)),
            };
            let (to_rows, starts) = (to_rows.clone(), (0..batch.num_rows()).step_by(batch_rows));
            let parts = starts.flat_map(move |start| {
                let rows = batch.slice(start, batch_rows.min(batch.num_rows() - start));
                let parts = cut_rows(&rows, BATCH_BYTES_MAX as u64);
                let is_cut = parts.len() > 1;
                parts.into_iter().map(move |part| (part, is_cut))
            });
            Box::new(parts.map(to_rows))
        })))
    }

    /// Reads the whole sheet. Its file must be the one that was probed.
    fn sheet_rows(&self, file: File, sheet: &WorkbookSheet, location: &str) -> Result<BatchIterator<ArrowError>> {
        let rows = read_workbook(file, sheet.format, location, &self.declarations, Some(sheet))
            .and_then(|mut sheets| {
                sheets.pop().map_or(Err("the sheet no longer exists".to_owned()), |(_, found)| found)
            })
            .map_err(|reason| unreadable_error(location, &reason))?
            .rows;
        if rows.schema().fields() != self.table.schema.file_schema().fields() {
            return Err(unreadable_error(location, CHANGED_WHILE_READ));
        }
        let (rows, batch_rows) = (rows.project(self.columns())?, self.batch_rows.max(1));
        let starts = (0..rows.num_rows()).step_by(batch_rows);
        Ok(Box::new(starts.map(move |start| Ok(rows.slice(start, batch_rows.min(rows.num_rows() - start))))))
    }

    /// Reads the entries of a log up to the size that the file had in the snapshot.
    fn log_rows(&self, file: File, dialect: &LogDialect, location: &str) -> Result<BatchIterator<ArrowError>> {
        let version = self.table.version_of(location);
        let modified = match version {
            Some(version) => version.modified,
            None => file.metadata()?.modified()?,
        };
        let log =
            LogFile { bytes: version.map(|version| version.bytes), compression: self.compression(location), modified };
        let schema: SchemaRef = Arc::new(self.table.schema.file_schema().project(self.columns())?);
        let rows = LogRows::open(file, &log, dialect, schema, self.columns(), self.batch_rows)
            .map_err(|reason| unreadable_error(location, &reason))?;
        Ok(Box::new(rows))
    }

    /// The files of a log have different compressions.
    fn compression(&self, location: &str) -> Compression {
        match &self.table.format {
            ContentFormat::Log(_) => split_compression(location).1,
            _ => self.table.compression,
        }
    }

    fn json_rows(&self, file: File, location: &str) -> Result<BatchIterator<DataFusionError>> {
        let budget = ReadBudget::new(self.row_bytes_max);
        let text = open_text(file, self.table.compression, TextDecoding::default(), budget.clone())
            .map_err(|reason| unreadable_error(location, &reason))?;
        let (records, options) = (JsonRecords::new(text, budget), self.declarations.options_for_file(location));
        let schema = Arc::new(self.table.schema.file_schema().project(self.columns())?);
        let rows = JsonRows::new(records, &self.table, options, self.columns(), schema, location, self.batch_rows);
        let (source, location) = (self.clone(), location.to_owned());
        Ok(Box::new(rows.batches().map(move |batch| {
            batch.map_err(|error| source.with_context(&location, |context| explain_json_error(&error, context)))
        })))
    }

    /// Each CSV file of a folder must have the columns of the table, because CSV is read by position.
    fn check_header(&self, mut file: &File, dialect: &CsvDialect, location: &str) -> Result<()> {
        if self.table.files.len() < 2 {
            return Ok(());
        }
        let budget = ReadBudget::new(self.row_bytes_max);
        let fields = self.table.schema.file_schema().fields();
        let header = read_header(file.try_clone()?, self.table.compression, dialect, budget, fields.len())
            .map_err(|reason| unreadable_error(location, &reason))?;
        file.rewind()?;
        let names = column_names(&header, dialect.has_header);
        let same = names.len() == fields.len() && names.iter().zip(fields).all(|(name, field)| name == field.name());
        if same || names.is_empty() {
            return Ok(());
        }
        let reason = format!("its columns ({}) differ from those of the table", names.join(", "));
        Err(unreadable_error(location, &reason))
    }

    fn with_context(&self, location: &str, explain: impl FnOnce(&ReadContext<'_>) -> ReadFailure) -> DataFusionError {
        let context = ReadContext {
            location,
            file: self.table.version_of(location),
            schema: self.table.schema.file_schema(),
            columns_max: self.columns_max,
            compression: self.compression(location),
            numbers: self.table.numbers(),
            corrections: &self.corrections,
            options: &self.declarations.options_for_file(location),
        };
        DataFusionError::External(Box::new(explain(&context)))
    }
}

/// The batch, whose dictionaries have values of the types of `schema`: they are converted once for all parts of the batch.
fn convert_dictionaries(batch: &RecordBatch, schema: &Schema) -> Result<RecordBatch> {
    let column = |(column, field): (&ArrayRef, &FieldRef)| match column.as_any_dictionary_opt() {
        Some(dictionary) => {
            let values = convert_leaves::<ArrowError>(dictionary.values(), field.data_type(), &leaf_as_text)?;
            Ok(dictionary.with_values(values))
        }
        None => Ok(column.clone()),
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(column).collect::<Result<Vec<_>, ArrowError>>()?;
    let fields = batch.schema_ref().fields().iter().zip(&columns);
    let fields = fields.map(|(field, column)| field.as_ref().clone().with_data_type(column.data_type().clone()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

/// The batch with the types of `schema`, in which UUIDs and structures without members are text.
fn with_types(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| convert_leaves::<ArrowError>(column, field.data_type(), &leaf_as_text));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_, _>>()?, &options)
}

fn has_same_columns(file: &Schema, table: &Schema) -> bool {
    let is_same = |(a, b): (&FieldRef, &FieldRef)| a.name() == b.name() && a.data_type() == b.data_type();
    file.fields().len() == table.fields().len() && file.fields().iter().zip(table.fields()).all(is_same)
}

/// A [`ParquetSource`], also after DataFusion has changed it.
pub(super) struct IsolatedParquetSource(Arc<dyn FileSource>);

impl IsolatedParquetSource {
    pub(super) fn new(source: ParquetSource) -> Self {
        Self(Arc::new(source))
    }
}

fn isolated(source: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
    Arc::new(IsolatedParquetSource(source))
}

impl FileSource for IsolatedParquetSource {
    tidegate_pgsql::delegate_to! { 0 =>
        fn create_file_opener(
            &self, store: Arc<dyn ObjectStore>, base: &FileScanConfig, partition: usize
        ) -> Result<Arc<dyn FileOpener>>;
        fn table_schema(&self) -> &TableSchema;
        fn filter(&self) -> Option<Arc<dyn PhysicalExpr>>;
        fn projection(&self) -> Option<&ProjectionExprs>;
        fn metrics(&self) -> &ExecutionPlanMetricsSet;
        fn file_type(&self) -> &str;
        fn fmt_extra(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result;
        fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile>;
        fn apply_expressions(
            &self, visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>
        ) -> Result<TreeNodeRecursion>;
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        base: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        Ok(Box::new(IsolatedMorselizer(self.0.create_morselizer(store, base, partition)?)))
    }

    fn with_batch_size(&self, batch_rows: usize) -> Arc<dyn FileSource> {
        isolated(self.0.with_batch_size(batch_rows))
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let pushed = self.0.try_pushdown_filters(filters, config)?;
        Ok(FilterPushdownPropagation { filters: pushed.filters, updated_node: pushed.updated_node.map(isolated) })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(self.0.try_pushdown_sort(order, properties)?.map(isolated))
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        // The rows of a batch may share the values of a dictionary. Expressions are computed when it has been cut.
        if projection.iter().any(|column| column.expr.placement() == ExpressionPlacement::KeepInPlace) {
            return Ok(None);
        }
        Ok(self.0.try_pushdown_projection(projection)?.map(isolated))
    }
}

#[derive(Debug)]
struct IsolatedMorselizer(Box<dyn Morselizer>);

impl Morselizer for IsolatedMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let location: Arc<str> = from_location(&file.object_meta.location).into();
        let planner = named(catch_reader_panic(|| self.0.plan_file(file)), &location)?;
        Ok(Box::new(IsolatedPlanner { planner, location }))
    }
}

#[derive(Debug)]
struct IsolatedPlanner {
    planner: Box<dyn MorselPlanner>,
    location: Arc<str>,
}

impl MorselPlanner for IsolatedPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { planner, location } = *self;
        let plan = named(catch_reader_panic(|| planner.plan()), &location)?;
        Ok(plan.map(|plan| isolated_plan(plan, &location)))
    }
}

fn isolated_plan(mut plan: MorselPlan, location: &Arc<str>) -> MorselPlan {
    let morsel = |morsel| Box::new(IsolatedMorsel { morsel, location: location.clone() }) as Box<dyn Morsel>;
    let planner = |planner| Box::new(IsolatedPlanner { planner, location: location.clone() }) as Box<dyn MorselPlanner>;
    let steps = MorselPlan::new()
        .with_morsels(plan.take_morsels().into_iter().map(morsel).collect())
        .with_planners(plan.take_ready_planners().into_iter().map(planner).collect());
    let Some(pending) = plan.take_pending_planner() else { return steps };
    let location = location.clone();
    steps.with_pending_planner(async move {
        let planner = named(AssertUnwindSafe(pending).catch_unwind().await, &location)?;
        Ok(Box::new(IsolatedPlanner { planner, location }) as Box<dyn MorselPlanner>)
    })
}

#[derive(Debug)]
struct IsolatedMorsel {
    morsel: Box<dyn Morsel>,
    location: Arc<str>,
}

impl Morsel for IsolatedMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { morsel, location } = *self;
        // The first batch may be decoded before there is a stream.
        let batches = futures::stream::once(async move { morsel.into_stream() }).flatten();
        AssertUnwindSafe(batches).catch_unwind().map(move |batch| named(batch, &location)).boxed()
    }
}

/// The result of a step that reads the file at `location`. `Err` of `outcome` is a panic.
fn named<T, P>(outcome: Result<Result<T>, P>, location: &str) -> Result<T> {
    match outcome {
        Ok(result) => result.map_err(|error| name_file(error, location)),
        Err(_) => Err(unreadable_error(location, READER_PANICKED)),
    }
}

/// Names the file in an error of Parquet's reader, or about its types or pages. Errors of the store name it already.
fn name_file(error: DataFusionError, location: &str) -> DataFusionError {
    let of_type = find_cause::<TypeMismatch>(&error).map(ToString::to_string);
    let reason = of_type.or_else(|| find_cause::<PagesTooLarge>(&error).map(ToString::to_string));
    if let Some(reason) = reason {
        return unreadable_error(location, &reason);
    }
    match parquet_reason(&error) {
        Some(reason) if !reason.contains(STORE_ERROR_PREFIX) => {
            let reason = format!("it is not a readable Parquet file: {}", strip_error_kind(&reason));
            unreadable_error(location, &reason)
        }
        _ => error,
    }
}

fn parquet_reason(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::ParquetError(error) => Some(error.to_string()),
        DataFusionError::ArrowError(error, _) => match &**error {
            ArrowError::ParquetError(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Why a data file cannot be read.
#[derive(Debug, Error)]
#[error("column {column:?} has the type {in_file}, and {in_table} in the Delta table")]
struct TypeMismatch {
    column: String,
    in_file: String,
    in_table: String,
}

/// Refuses a file whose columns do not have the types of the table.
pub(super) fn check_delta_types(table: &Schema, file: &Schema) -> Result<()> {
    for declared in table.fields() {
        if let Ok(found) = file.field_with_name(declared.name())
            && !is_readable_type(found.data_type(), declared.data_type())
        {
            let (in_file, in_table) = (type_name(found.data_type()), type_name(declared.data_type()));
            let mismatch = TypeMismatch { column: declared.name().clone(), in_file, in_table };
            return Err(DataFusionError::External(Box::new(mismatch)));
        }
    }
    Ok(())
}
