//! The table provider for a table of a snapshot.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{DFSchema, Result, ScalarValue, Statistics};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::listing::helpers::expr_applicable_for_cols;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::union::UnionExec;
use object_store::ObjectStore;

use super::file_sources::{IsolatedParquetSource, ReaderSource};
use super::footer::ParquetFooterFactory;
use super::parquet_values::ParquetValues;
use crate::embedded::files::{ContentFormat, FileSnapshots, FileTable};
use crate::embedded::query_cancellation::session_reader;

/// The URL prefix of file locations. The store of the query's snapshot is registered for it, in place of the local file
/// system.
pub(crate) fn files_url() -> ObjectStoreUrl {
    ObjectStoreUrl::local_filesystem()
}

#[derive(Debug)]
pub(crate) struct FileTableProvider {
    pub(crate) table: Arc<FileTable>,
    pub(crate) files: Arc<FileSnapshots>,
    /// The files of the snapshot.
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) footers: Arc<FileMetadataCache>,
}

impl FileTableProvider {
    fn is_about_partitions(&self, filter: &Expr) -> bool {
        let names: Vec<&str> = self.table.partition_columns().map(|column| column.name().as_str()).collect();
        !names.is_empty() && expr_applicable_for_cols(&names, filter)
    }

    fn files(&self, filters: &[Expr]) -> Result<Vec<PartitionedFile>> {
        let filters = filters.iter().filter(|filter| self.is_about_partitions(filter)).cloned();
        let filter = conjunction(filters).map(|condition| self.partition_filter(&condition)).transpose()?;
        let mut files = Vec::with_capacity(self.table.files.len());
        for file in self.table.files.iter() {
            if let Some(filter) = &filter
                && !filter.is_true_for(&file.partition_values)?
            {
                continue;
            }
            let mut partitioned =
                PartitionedFile::new_from_meta(file.meta.clone()).with_partition_values(file.partition_values.clone());
            if let Some(statistics) = &file.statistics {
                partitioned = partitioned.with_statistics(statistics.clone());
            }
            let delta = self.table.delta.as_ref();
            if let Some(deletions) = delta.and_then(|delta| delta.deletions(&file.meta.location)) {
                partitioned = partitioned.with_extension(ParquetRowSelection::new(deletions.remaining()));
            }
            files.push(partitioned);
        }
        Ok(files)
    }

    fn partition_filter(&self, condition: &Expr) -> Result<PartitionFilter> {
        let columns = self.table.partition_columns().map(|column| column.as_ref().clone().with_nullable(true));
        let columns = DFSchema::from_unqualified_fields(columns.collect(), Default::default())?;
        let (properties, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        let condition = create_physical_expr(condition, &columns, &properties, &context)?;
        Ok(PartitionFilter { condition, columns: columns.inner().clone() })
    }

    fn source(&self, state: &dyn Session) -> Result<Arc<dyn FileSource>> {
        if self.table.format != ContentFormat::Parquet {
            return Ok(Arc::new(ReaderSource::new(self.table.clone(), &self.files)));
        }
        let decoding = session_reader(state).map(|reader| (self.files.engine().decode_budget().clone(), reader));
        let (store, delta) = (self.store.clone(), self.table.delta.clone());
        let memory_bytes = self.files.engine().options().query_memory_bytes;
        let footers = ParquetFooterFactory::new(store, self.footers.clone(), decoding, delta, memory_bytes);
        let source = ParquetSource::new(self.table.schema.clone())
            .with_table_parquet_options(state.default_table_options().parquet)
            .with_parquet_file_reader_factory(Arc::new(footers));
        Ok(Arc::new(IsolatedParquetSource::new(source)))
    }

    fn statistics_of(&self, files: &[PartitionedFile], is_all: bool) -> Result<Statistics> {
        let schema = self.schema();
        let of_files: Option<Vec<&Statistics>> = files.iter().map(|file| file.statistics.as_deref()).collect();
        let mut statistics = match of_files {
            Some(of_files) => Statistics::try_merge_iter(of_files, &schema)?,
            None => Statistics::new_unknown(&schema),
        };
        // An estimate helps to choose the smaller side of a join.
        if statistics.num_rows == Precision::Absent && is_all {
            let rows = self.table.estimated_rows.and_then(|rows| usize::try_from(rows).ok());
            statistics.num_rows = rows.map_or(Precision::Absent, Precision::Inexact);
        }
        Ok(statistics)
    }
}

/// A condition on the partition columns.
struct PartitionFilter {
    condition: Arc<dyn PhysicalExpr>,
    columns: SchemaRef,
}

impl PartitionFilter {
    /// Whether the rows of a file with these partition values match. The condition may be null, which is not true; DataFusion's
    /// own filter of files reads the value below the null.
    fn is_true_for(&self, values: &[ScalarValue]) -> Result<bool> {
        let arrays = values.iter().map(ScalarValue::to_array).collect::<Result<_>>()?;
        let row = RecordBatch::try_new(self.columns.clone(), arrays)?;
        let matches = self.condition.evaluate(&row)?.into_array(1)?;
        Ok(matches.as_boolean_opt().is_some_and(|matches| matches.iter().next() == Some(Some(true))))
    }
}

#[async_trait]
impl TableProvider for FileTableProvider {
    fn schema(&self) -> SchemaRef {
        self.table.columns().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // Recent rows are not filtered by the scan.
        let is_exact = self.table.recent.batches.is_empty();
        let support = |filter: &&Expr| match is_exact && self.is_about_partitions(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Inexact,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let of_files = self.scan_files(state, projection, filters, limit)?;
        if self.table.recent.batches.is_empty() {
            return Ok(match of_files {
                Some(of_files) => of_files,
                None => Arc::new(EmptyExec::new(self.projected_schema(projection)?)),
            });
        }
        let recent = [self.table.recent.batches.to_vec()];
        let recent: Arc<dyn ExecutionPlan> =
            MemorySourceConfig::try_new_exec(&recent, self.schema(), projection.cloned())?;
        match of_files {
            Some(of_files) => UnionExec::try_new(vec![of_files, recent]),
            None => Ok(recent),
        }
    }
}

impl FileTableProvider {
    fn projected_schema(&self, projection: Option<&Vec<usize>>) -> Result<SchemaRef> {
        Ok(match projection {
            Some(columns) => Arc::new(self.schema().project(columns)?),
            None => self.schema(),
        })
    }

    /// The scan of the files. `None` if no file can have a matching row.
    fn scan_files(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let files = self.files(filters)?;
        if files.is_empty() {
            return Ok(None);
        }
        let is_all = files.len() == self.table.files.len();
        // A plan with one partition reads the files one after the other, in order.
        let parts = state.config().target_partitions().max(1);
        let statistics = self.statistics_of(&files, is_all)?;
        let groups = if parts == 1 { vec![FileGroup::new(files)] } else { FileGroup::new(files).split_files(parts) };
        let columns_read = projection.map_or(self.table.columns().fields().len(), Vec::len);
        let batch_rows = self.table.batch_rows(columns_read).min(state.config().batch_size());
        // With other filters, the number of rows to read is unknown.
        let limit = limit.filter(|_| filters.iter().all(|filter| self.is_about_partitions(filter)));
        let (table, corrections) = (self.table.clone(), self.files.corrections.clone());
        let parquet_values = matches!(self.table.format, ContentFormat::Parquet)
            .then(|| Arc::new(ParquetValues { table, corrections }) as _);
        let config: FileScanConfig = FileScanConfigBuilder::new(files_url(), self.source(state)?)
            .with_expr_adapter(parquet_values)
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .with_batch_size(Some(batch_rows))
            .with_preserve_order(parts == 1)
            .build();
        Ok(Some(DataSourceExec::from_data_source(config)))
    }
}
