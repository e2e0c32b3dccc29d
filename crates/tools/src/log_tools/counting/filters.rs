//! The filters of a search as exact conditions for the database of a source.

use tidegate_query::QueryCondition;
use tidegate_telemetry::logs::SelectedValues;

use super::column_sql::{ColumnSql, constant};
use super::text_match::text_match;
use crate::log_sources::{ResolvedSource, SOURCE_FIELD, SourceSet};
use crate::log_tools::scan::SourceSearch;

/// A field of a search in one source.
#[derive(Debug, Clone)]
pub(super) enum SourceField {
    Column(ColumnSql),
    /// The same value in all rows: the name of the source, or missing.
    Constant(Option<String>),
}

/// The conditions of a search over one source. Each is exact for rows that all of `countable` include.
pub(super) struct SourceFilters {
    /// What the caller's conditions and the range leave.
    conditions: Vec<QueryCondition>,
    text: Option<QueryCondition>,
    /// For each field with a selection.
    selections: Vec<(String, QueryCondition)>,
    pub(super) countable: Vec<QueryCondition>,
}

impl SourceFilters {
    /// `None` if the database cannot apply the search exactly.
    pub(super) fn new(input: &SourceSearch<'_>) -> Option<Self> {
        let SourceSearch { search, request, source, .. } = *input;
        let mut filters = Self {
            conditions: search.conditions.iter().cloned().collect(),
            text: None,
            selections: Vec::new(),
            countable: Vec::new(),
        };
        if let Some(condition) = &request.condition {
            let column = |name: &str| match source_field(&search.set, source, name)? {
                SourceField::Column(column) => Some(Some(column)),
                SourceField::Constant(None) => Some(None),
                SourceField::Constant(Some(_)) => None,
            };
            filters.text = Some(text_match(condition, source.database.dialect(), &column, &mut filters.countable)?);
        }
        for (field, values) in request.selections.iter() {
            let condition = filters.selection(&search.set, source, field, values)?;
            filters.selections.push((field.to_owned(), condition));
        }
        Some(filters)
    }

    fn selection(
        &mut self,
        set: &SourceSet,
        source: &ResolvedSource,
        field: &str,
        values: &SelectedValues,
    ) -> Option<QueryCondition> {
        match source_field(set, source, field)? {
            SourceField::Column(column) => {
                let condition = column.is_selected(values)?;
                column.has_display_text().into_iter().for_each(|condition| self.require(condition));
                Some(condition)
            }
            SourceField::Constant(value) => Some(constant(match value {
                Some(value) => values.contains(&value),
                None => values.selects_missing(),
            })),
        }
    }

    /// Leaves rows to the scan that `condition` does not include.
    pub(super) fn require(&mut self, condition: QueryCondition) {
        if !self.countable.contains(&condition) {
            self.countable.push(condition);
        }
    }

    /// Whether a full-text query or a selection applies.
    pub(super) fn is_selective(&self) -> bool {
        self.text.is_some() || !self.selections.is_empty()
    }

    /// The selection of `field`.
    pub(super) fn has_selection(&self, field: &str) -> bool {
        self.selections.iter().any(|(selected, _)| selected == field)
    }

    /// The rows that match everything, but for the selection of `excepted`, and have a time among `time`.
    pub(super) fn matching(&self, excepted: Option<&str>, time: Option<QueryCondition>) -> Vec<QueryCondition> {
        let selections = self.selections.iter().filter(|(field, _)| Some(field.as_str()) != excepted);
        let mut all = self.countable_rows(time);
        all.extend(self.text.clone());
        all.extend(selections.map(|(_, condition)| condition.clone()));
        all
    }

    /// The rows that match the caller's conditions and have a time among `time`.
    pub(super) fn countable_rows(&self, time: Option<QueryCondition>) -> Vec<QueryCondition> {
        let mut all = self.conditions.clone();
        all.extend(self.countable.iter().cloned());
        all.extend(time);
        all
    }

    /// The rows that must be scanned.
    pub(super) fn uncountable(&self) -> Option<QueryCondition> {
        (!self.countable.is_empty()).then(|| QueryCondition::Not(Box::new(QueryCondition::And(self.countable.clone()))))
    }
}

/// A field of `set` in `source`; `None` if SQL may compare it in another way.
pub(super) fn source_field(set: &SourceSet, source: &ResolvedSource, field: &str) -> Option<SourceField> {
    if !set.is_single() && field == SOURCE_FIELD {
        return Some(SourceField::Constant(Some(source.name.clone())));
    }
    match set.fields(source).find(|(name, _)| *name == field) {
        Some((_, column)) => ColumnSql::new(source.database.dialect(), column).map(SourceField::Column),
        None => Some(SourceField::Constant(None)),
    }
}
