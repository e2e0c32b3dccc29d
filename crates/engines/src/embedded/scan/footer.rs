//! Parquet footers without the bounds of floating-point columns.
//!
//! Writers omit NaN from the bounds (parquet-format, `ColumnOrder`), but PostgreSQL sorts NaN above all numbers. With
//! the bounds, parts of a file with NaN would be skipped for `d > 1` or for the largest values.
//! This is DataFusion's issue 15812; `docs/decisions/upstream` says when the removal can go.
//!
//! Row groups are read within the decode budget.

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
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use crate::embedded::decode_budget::{DecodeBudget, DecodePermit, ReaderPause, with_permit};

/// Creates readers that remove the bounds of floating-point columns from footers.
#[derive(Debug)]
pub(super) struct ParquetFooterFactory {
    cached: CachedParquetFileReaderFactory,
    cache: Arc<FileMetadataCache>,
    decoding: Option<Decoding>,
}

/// The decode budget, and the reader of the query.
type Decoding = (Arc<DecodeBudget>, Arc<ReaderPause>);

impl ParquetFooterFactory {
    /// For files in `store`. Footers are cached in `cache`.
    pub(super) fn new(store: Arc<dyn ObjectStore>, cache: Arc<FileMetadataCache>, decoding: Option<Decoding>) -> Self {
        Self { cached: CachedParquetFileReaderFactory::new(store, cache.clone()), cache, decoding }
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
        let (cache, decoding) = (self.cache.clone(), self.decoding.clone());
        Ok(Box::new(FooterReader { inner, meta, cache, decoding, row_group: None }))
    }
}

struct FooterReader {
    inner: Box<dyn AsyncFileReader + Send>,
    meta: ObjectMeta,
    cache: Arc<FileMetadataCache>,
    decoding: Option<Decoding>,
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
}

impl AsyncFileReader for FooterReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        self.inner.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move {
            // The columns of a row group are read together, when all rows of the last one are decoded.
            self.end_row_group();
            let Some((budget, reader)) = &self.decoding else { return self.inner.get_byte_ranges(ranges).await };
            let lengths =
                ranges.iter().map(|range| usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0));
            let permit = budget.acquire(lengths, reader).await;
            let read = self.inner.get_byte_ranges(ranges).await?;
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
            self.forget_other_version();
            let read = self.inner.get_metadata(options).await?;
            if !has_floating_bounds(&read) {
                return Ok(read);
            }
            let footer = Arc::new(without_floating_bounds(&read)?);
            let kept = Arc::new(CachedParquetMetaData::new(footer.clone()));
            self.cache.put(&self.meta.location, CachedFileMetadataEntry::new(self.meta.clone(), kept));
            Ok(footer)
        }
        .boxed()
    }
}

fn is_floating(column: &ColumnChunkMetaData) -> bool {
    matches!(column.column_type(), Type::FLOAT | Type::DOUBLE)
        || matches!(column.column_descr().logical_type_ref(), Some(LogicalType::Float16))
}

fn has_floating_bounds(footer: &ParquetMetaData) -> bool {
    let has_bounds = |column: &ColumnChunkMetaData| {
        is_floating(column) && (column.statistics().is_some() || column.column_index_offset().is_some())
    };
    footer.row_groups().iter().flat_map(RowGroupMetaData::columns).any(has_bounds)
        || footer.column_index().is_some_and(|index| index.iter().flatten().any(is_floating_index))
}

fn is_floating_index(index: &ColumnIndexMetaData) -> bool {
    matches!(index, ColumnIndexMetaData::FLOAT(_) | ColumnIndexMetaData::DOUBLE(_))
}

fn without_floating_bounds(footer: &ParquetMetaData) -> Result<ParquetMetaData, ParquetError> {
    let column = |column: &ColumnChunkMetaData| match is_floating(column) {
        // Otherwise the reader would load the page index and use its bounds.
        true => {
            let without_pages =
                column.clone().into_builder().set_column_index_offset(None).set_column_index_length(None);
            without_pages.clear_statistics().build()
        }
        false => Ok(column.clone()),
    };
    let group = |group: &RowGroupMetaData| {
        let columns = group.columns().iter().map(column).collect::<Result<Vec<_>, _>>()?;
        group.clone().into_builder().set_column_metadata(columns).build()
    };
    let groups = footer.row_groups().iter().map(group).collect::<Result<Vec<_>, _>>()?;
    let index = footer.column_index().cloned().map(|mut index| {
        for column in index.iter_mut().flatten().filter(|column| is_floating_index(column)) {
            *column = ColumnIndexMetaData::NONE;
        }
        index
    });
    Ok(footer.clone().into_builder().set_row_groups(groups).set_column_index(index).build())
}
