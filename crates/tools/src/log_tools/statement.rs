//! The statement that reads the rows of a source. It may return more rows than match, because each row is checked again.

use tidegate_query::{ComparisonOperator, Operand, QueryCondition, QuerySpec, Selection};
use tidegate_sql::Parameter;

use super::scan::{RowRange, SourceSearch};
use crate::log_sources::ResolvedSource;
use crate::source_columns::{FieldKind, time_conditions};

/// The values of a selection that become a part of the statement.
pub(super) const PUSHED_VALUES_MAX: usize = 200;

/// The query for the rows of a source that may match and meet `further`; with a context, for all rows of the range.
pub(super) fn build_query(input: &SourceSearch<'_>, further: Option<QueryCondition>) -> QuerySpec {
    let (conditions, selections) = match input.request.context {
        Some(_) => (None, Vec::new()),
        None => (input.search.conditions.clone(), selection_filters(input)),
    };
    let filters = conditions.into_iter().chain(time_filter(input.source, input.rows)).chain(selections).chain(further);
    input.query(filters.collect(), input.columns.iter().copied().map(Selection::column).collect())
}

impl SourceSearch<'_> {
    /// A query for the rows with `conditions`.
    pub(super) fn query(&self, conditions: Vec<QueryCondition>, select: Vec<Selection>) -> QuerySpec {
        let filter = QueryCondition::all(conditions);
        QuerySpec { select, filter, limit: QuerySpec::UNLIMITED, ..QuerySpec::new(&self.source.table) }
    }
}

/// The range of time, where the database compares the column as a time.
fn time_filter(source: &ResolvedSource, rows: RowRange) -> Option<QueryCondition> {
    let name = &source.columns.time;
    let kind = source.columns.columns.iter().find(|column| column.name == *name)?.kind;
    let bounds: Vec<QueryCondition> = time_conditions(name, kind, source.database.dialect(), rows.range).collect();
    if bounds.is_empty() {
        return None;
    }
    let bounded = QueryCondition::And(bounds);
    if !rows.includes_no_time {
        return Some(bounded);
    }
    let is_null = QueryCondition::compare(name, ComparisonOperator::IsNull, Operand::None);
    Some(QueryCondition::Or(vec![bounded, is_null]))
}

/// The selections of text columns that apply to everything that is computed.
pub(super) fn selection_filters(input: &SourceSearch<'_>) -> Vec<QueryCondition> {
    let SourceSearch { search, request, source, .. } = *input;
    let mut filters = Vec::new();
    for (field, values) in request.selections.iter() {
        let values_sorted = values.to_sorted();
        if values.selects_missing()
            || values_sorted.len() > PUSHED_VALUES_MAX
            || request.facets.iter().any(|facet| facet.field == field)
        {
            continue;
        }
        let Some((_, column)) = search.set.fields(source).find(|(name, _)| *name == field) else { continue };
        // In SQLite, an integer in a column without a type is no text, although its display form may be equal.
        let has_type = source.database.dialect().has_typed_columns();
        if column.kind != FieldKind::Text || !has_type && !has_text_affinity(&column.type_name) {
            continue;
        }
        let list = values_sorted.into_iter().map(|value| Parameter::Text(value.to_owned())).collect();
        filters.push(QueryCondition::compare(&column.name, ComparisonOperator::In, Operand::List(list)));
    }
    filters
}

/// Whether SQLite stores numbers in a column of this declared type as text. A type of integers has another kind.
fn has_text_affinity(type_name: &str) -> bool {
    let name = type_name.to_ascii_lowercase();
    ["char", "clob", "text"].into_iter().any(|part| name.contains(part))
}
