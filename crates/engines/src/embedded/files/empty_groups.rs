//! Columns of Parquet files that are groups without fields. Such a file has no values of them.
//!
//! The Arrow library omits these columns. DataFusion counts them where it finds columns by their position, so that it would read
//! another column. `docs/decisions/upstream` has the text to be filed, and says when the module can go.

use std::sync::Arc;

use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataBuilder};
use parquet::schema::types::{SchemaDescriptor, Type as ParquetType, TypePtr};

/// `footer` without columns that are groups without fields. `None` if it has none.
pub(crate) fn without_empty_groups(footer: &ParquetMetaData) -> Option<ParquetMetaData> {
    let file = footer.file_metadata();
    let root = file.schema_descr().root_schema();
    let fields: Vec<TypePtr> = root.get_fields().iter().filter(|column| has_leaves(column)).cloned().collect();
    if fields.len() == root.get_fields().len() {
        return None;
    }
    let columns = ParquetType::GroupType { basic_info: root.get_basic_info().clone(), fields };
    let columns = Arc::new(SchemaDescriptor::new(Arc::new(columns)));
    let (writer, orders) = (file.created_by().map(str::to_owned), file.column_orders().cloned());
    // The types that the writer noted are those of all columns, by their position.
    let file = FileMetaData::new(file.version(), file.num_rows(), writer, None, columns, orders);
    let builder = ParquetMetaDataBuilder::new(file).set_row_groups(footer.row_groups().to_vec());
    let builder = builder.set_column_index(footer.column_index().cloned());
    Some(builder.set_offset_index(footer.offset_index().cloned()).build())
}

fn has_leaves(node: &TypePtr) -> bool {
    match node.as_ref() {
        ParquetType::GroupType { fields, .. } => fields.iter().any(has_leaves),
        ParquetType::PrimitiveType { .. } => true,
    }
}
