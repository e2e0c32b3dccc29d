//! Parquet footers without what would be misread.
//!
//! - Columns of floating-point numbers have no bounds. Writers omit NaN from them (parquet-format, `ColumnOrder`), but PostgreSQL
//!   sorts NaN above all numbers. With the bounds, parts of a file with NaN would be skipped for `d > 1` or for the largest values.
//!   This is DataFusion's issue 15812; `docs/decisions/upstream` says when the removal can go.
//! - Groups without fields are no columns (`files/empty_groups.rs`).
//! - Intervals and times of 96 bits are bytes (`files/logical_types.rs`), without bounds. Both have the same encodings as bytes.
//!
//! In Delta tables, columns may have other names in the data files. Their footers get the names of the table, so that
//! everything else finds columns, bounds and fields by those.
//!
//! Row groups are read within the decode budget. Columns with pages that a query has no memory for are refused.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::{CachedParquetFileReaderFactory, CachedParquetMetaData};
use datafusion::execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadataCache};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::{ObjectMeta, ObjectStore};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::basic::{LogicalType, Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type as ParquetType, TypePtr};
use thiserror::Error;
use tidegate_delta::ColumnMapping;
use tidegate_ingest_formats::decompressed_parquet_bytes;

use crate::embedded::decode_budget::{DecodeBudget, DecodePermit, ReaderPause, with_permit};
use crate::embedded::files::{DeltaFiles, WIDE_BYTES, is_read_as_bytes, without_empty_groups};

/// However little memory a query has, the pages of a column may have so many bytes. Some writers make one page of all values of a
/// row group, and some end a page at 100 MB.
const PAGE_BYTES_MIN: u64 = 128 << 20;
/// The part of the memory of a query that pages of a column may have: their values are copied.
const MEMORY_SHARE: u64 = 2;

/// A column whose pages take more memory than a query may have.
#[derive(Debug, Error)]
#[error(
    "{column} has pages of {bytes} bytes after decompression, and the memory of a query has room for {bytes_max} bytes of \
     them; select other columns, write smaller pages, or give queries more memory"
)]
pub(super) struct PagesTooLarge {
    column: String,
    bytes: u64,
    bytes_max: u64,
}

/// Creates readers that correct footers.
#[derive(Debug)]
pub(super) struct ParquetFooterFactory {
    cached: CachedParquetFileReaderFactory,
    cache: Arc<FileMetadataCache>,
    decoding: Option<Decoding>,
    delta: Option<Arc<DeltaFiles>>,
    page_bytes_max: u64,
}

/// The decode budget, and the reader of the query.
type Decoding = (Arc<DecodeBudget>, Arc<ReaderPause>);

impl ParquetFooterFactory {
    /// For files in `store`, those of the Delta table if `delta` is one, and queries with so much memory. Footers are cached in
    /// `cache`.
    pub(super) fn new(
        store: Arc<dyn ObjectStore>,
        cache: Arc<FileMetadataCache>,
        decoding: Option<Decoding>,
        delta: Option<Arc<DeltaFiles>>,
        query_memory_bytes: usize,
    ) -> Self {
        let page_bytes_max = (query_memory_bytes as u64 / MEMORY_SHARE).max(PAGE_BYTES_MIN);
        let cached = CachedParquetFileReaderFactory::new(store, cache.clone());
        Self { cached, cache, decoding, delta, page_bytes_max }
    }
}

impl ParquetFileReaderFactory for ParquetFooterFactory {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let meta = file.object_meta.clone();
        let inner = self.cached.create_reader(partition_index, file, metadata_size_hint, metrics)?;
        let (cache, decoding, delta) = (self.cache.clone(), self.decoding.clone(), self.delta.clone());
        let page_bytes_max = self.page_bytes_max;
        let (footer, row_group) = (None, None);
        Ok(Box::new(FooterReader { inner, meta, cache, decoding, delta, page_bytes_max, footer, row_group }))
    }
}

struct FooterReader {
    inner: Box<dyn AsyncFileReader + Send>,
    meta: ObjectMeta,
    cache: Arc<FileMetadataCache>,
    decoding: Option<Decoding>,
    delta: Option<Arc<DeltaFiles>>,
    page_bytes_max: u64,
    /// As it was read last.
    footer: Option<Arc<ParquetMetaData>>,
    /// Of the row group that was read last.
    row_group: Option<Arc<DecodePermit>>,
}

impl FooterReader {
    fn end_row_group(&mut self) {
        if let Some(permit) = self.row_group.take() {
            permit.end_decoding();
        }
    }
}

impl Drop for FooterReader {
    fn drop(&mut self) {
        self.end_row_group();
    }
}

impl FooterReader {
    /// DataFusion compares only the size and the modification time with those of a cached footer. Another file may have
    /// the same, because programs can set times.
    fn forget_other_version(&self) {
        let cached = self.cache.get(&self.meta.location);
        if cached.is_some_and(|cached| cached.meta.e_tag != self.meta.e_tag) {
            self.cache.remove(&self.meta.location);
        }
    }

    /// The corrected footer of the file.
    async fn read_footer(
        &mut self,
        options: Option<&ArrowReaderOptions>,
    ) -> Result<Arc<ParquetMetaData>, ParquetError> {
        self.forget_other_version();
        let read = self.inner.get_metadata(options).await?;
        let Some(corrected) = correct(&read)? else { return Ok(read) };
        let footer = Arc::new(corrected);
        let kept = Arc::new(CachedParquetMetaData::new(footer.clone()));
        self.cache.put(&self.meta.location, CachedFileMetadataEntry::new(self.meta.clone(), kept));
        Ok(footer)
    }

    /// Refuses the pages in the parts `read` of the file, whose positions are `ranges`, if they do not fit into memory.
    fn check_pages(&self, ranges: &[Range<u64>], read: &[Bytes]) -> Result<(), ParquetError> {
        for (range, bytes) in ranges.iter().zip(read) {
            let decompressed = decompressed_parquet_bytes(bytes);
            if decompressed > self.page_bytes_max {
                let (column, bytes_max) = (self.describe_column_at(range.start), self.page_bytes_max);
                let too_large = PagesTooLarge { column, bytes: decompressed, bytes_max };
                return Err(ParquetError::External(Box::new(too_large)));
            }
        }
        Ok(())
    }

    /// The column whose bytes are at `position`.
    fn describe_column_at(&self, position: u64) -> String {
        let is_there = |column: &&ColumnChunkMetaData| {
            let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
            let end = start.saturating_add(column.compressed_size());
            i64::try_from(position).is_ok_and(|position| (start..end).contains(&position))
        };
        let mut columns = self.footer.iter().flat_map(|footer| footer.row_groups()).flat_map(RowGroupMetaData::columns);
        let path = columns.find(is_there).map(|column| column.column_path().string());
        path.map_or_else(|| "a column".to_owned(), |path| format!("column {path:?}"))
    }
}

impl AsyncFileReader for FooterReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        self.inner.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move {
            // The columns of a row group are read together, when all rows of the last one are decoded.
            self.end_row_group();
            let permit = match &self.decoding {
                Some((budget, reader)) => {
                    let lengths =
                        ranges.iter().map(|range| usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0));
                    Some(budget.acquire(lengths, reader).await)
                }
                None => None,
            };
            let read = self.inner.get_byte_ranges(ranges.clone()).await?;
            self.check_pages(&ranges, &read)?;
            let Some(permit) = permit else { return Ok(read) };
            self.row_group = Some(permit.clone());
            Ok(read.into_iter().map(|bytes| with_permit(bytes, permit.clone())).collect())
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move {
            let footer = self.read_footer(options).await?;
            // Not cached: a column gets another name without a new file.
            let footer = match self.delta.as_ref().and_then(|delta| delta.mapping()) {
                Some(mapping) => Arc::new(with_table_names(&footer, mapping)?),
                None => footer,
            };
            self.footer = Some(footer.clone());
            Ok(footer)
        }
        .boxed()
    }
}

/// The footer that is read instead of `footer`, unless it is the same.
fn correct(footer: &ParquetMetaData) -> Result<Option<ParquetMetaData>, ParquetError> {
    let without_groups = without_empty_groups(footer);
    let footer = without_groups.as_ref().unwrap_or(footer);
    let file = footer.file_metadata();
    let leaves = file.schema_descr().columns();
    let is_bytes: Vec<bool> = leaves.iter().map(|leaf| is_read_as_bytes(leaf.self_type(), file)).collect();
    let has_bytes = is_bytes.contains(&true);
    let is_unbounded: Vec<bool> =
        leaves.iter().zip(is_bytes).map(|(leaf, is_bytes)| is_bytes || is_floating(leaf)).collect();
    if !has_bytes && !has_bounds(footer, &is_unbounded) {
        return Ok(without_groups);
    }
    let column = |(column, is_unbounded): (&ColumnChunkMetaData, &bool)| match is_unbounded {
        // Otherwise the reader would load the page index and use its bounds.
        true => {
            let without_pages =
                column.clone().into_builder().set_column_index_offset(None).set_column_index_length(None);
            without_pages.clear_statistics().build()
        }
        false => Ok(column.clone()),
    };
    let group = |group: &RowGroupMetaData| {
        let columns = group.columns().iter().zip(&is_unbounded).map(column).collect::<Result<Vec<_>, _>>()?;
        group.clone().into_builder().set_column_metadata(columns).build()
    };
    let groups = footer.row_groups().iter().map(group).collect::<Result<Vec<_>, _>>()?;
    let mut index = footer.column_index().cloned();
    for group in index.iter_mut().flatten() {
        for (column, _) in group.iter_mut().zip(&is_unbounded).filter(|(_, is_unbounded)| **is_unbounded) {
            *column = ColumnIndexMetaData::NONE;
        }
    }
    let file = if has_bytes { with_bytes(file)? } else { file.clone() };
    let corrected = ParquetMetaDataBuilder::new(file).set_row_groups(groups).set_column_index(index);
    Ok(Some(corrected.set_offset_index(footer.offset_index().cloned()).build()))
}

fn is_floating(leaf: &ColumnDescriptor) -> bool {
    matches!(leaf.physical_type(), Type::FLOAT | Type::DOUBLE)
        || matches!(leaf.logical_type_ref(), Some(LogicalType::Float16))
}

/// Whether columns that must have no bounds have some.
fn has_bounds(footer: &ParquetMetaData, is_unbounded: &[bool]) -> bool {
    let of_column =
        |column: &ColumnChunkMetaData| column.statistics().is_some() || column.column_index_offset().is_some();
    let of_group = |group: &RowGroupMetaData| {
        group.columns().iter().zip(is_unbounded).any(|(column, is_unbounded)| *is_unbounded && of_column(column))
    };
    let of_pages = |group: &Vec<ColumnIndexMetaData>| {
        let mut columns = group.iter().zip(is_unbounded);
        columns.any(|(column, is_unbounded)| *is_unbounded && !matches!(column, ColumnIndexMetaData::NONE))
    };
    footer.row_groups().iter().any(of_group) || footer.column_index().is_some_and(|index| index.iter().any(of_pages))
}

/// The description of a file in which intervals and times of 96 bits are bytes.
fn with_bytes(file: &FileMetaData) -> Result<FileMetaData, ParquetError> {
    let schema = SchemaDescriptor::new(type_with_bytes(&file.schema_descr().root_schema_ptr(), file)?);
    Ok(FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(schema),
        file.column_orders().cloned(),
    ))
}

fn type_with_bytes(node: &TypePtr, file: &FileMetaData) -> Result<TypePtr, ParquetError> {
    match node.as_ref() {
        ParquetType::GroupType { basic_info, fields } => {
            let fields = fields.iter().map(|field| type_with_bytes(field, file)).collect::<Result<_, _>>()?;
            Ok(Arc::new(ParquetType::GroupType { basic_info: basic_info.clone(), fields }))
        }
        leaf if is_read_as_bytes(leaf, file) => {
            let info = leaf.get_basic_info();
            let bytes = ParquetType::primitive_type_builder(info.name(), Type::FIXED_LEN_BYTE_ARRAY)
                .with_repetition(info.repetition())
                .with_length(WIDE_BYTES)
                .with_id(info.has_id().then(|| info.id()));
            Ok(Arc::new(bytes.build()?))
        }
        _ => Ok(node.clone()),
    }
}

/// The footer with the names of the table, without the types that the writer noted by its own names.
fn with_table_names(footer: &ParquetMetaData, mapping: &ColumnMapping) -> Result<ParquetMetaData, ParquetError> {
    let file = footer.file_metadata();
    let columns = Arc::new(mapping.rename(file.schema_descr())?);
    let (writer, orders) = (file.created_by().map(str::to_owned), file.column_orders().cloned());
    let file = FileMetaData::new(file.version(), file.num_rows(), writer, None, columns, orders);
    let builder = ParquetMetaDataBuilder::new(file).set_row_groups(footer.row_groups().to_vec());
    let builder = builder.set_column_index(footer.column_index().cloned());
    Ok(builder.set_offset_index(footer.offset_index().cloned()).build())
}
