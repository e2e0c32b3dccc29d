//! The notes of a search that matched nothing.

use serde_json::{Map, Value};
use tidegate_telemetry::logs::{
    FACET_VALUES_MAX, FacetAnswer, FacetValue, FieldFacet, FieldSelections, LogScanRequest, SelectedValues,
};

use super::facets::facet_requests;
use super::scan::{ScanOutcome, run_scan};
use super::search::LogSearch;

/// If nothing matches, adds where words were searched, because they may be elsewhere, and the values that are written
/// otherwise than the selected ones.
pub(super) async fn add_notes(
    search: &LogSearch<'_>,
    request: &LogScanRequest,
    outcome: &ScanOutcome,
    json: &mut Map<String, Value>,
) {
    if outcome.answer.matched > 0 {
        return;
    }
    let mut notes: Vec<String> = search.searched_fields_note().into_iter().collect();
    // A page after a cursor reads few rows: callers who wait for new entries ask for it again and again.
    let has_cursor = request.page.as_ref().is_some_and(|page| page.cursor.is_some());
    if !has_cursor && request.context.is_none() && outcome.partial.is_none() {
        notes.extend(spelling_notes(search).await);
    }
    if !notes.is_empty() {
        json.insert("notes".to_owned(), notes.into());
    }
}

/// The values that differ from the selected ones in case only, or have one of them as their name. They are only looked up
/// where a selection has letters.
async fn spelling_notes(search: &LogSearch<'_>) -> Vec<String> {
    let selections = &search.request.selections;
    let has_letters =
        |values: &SelectedValues| values.to_sorted().iter().any(|value| value.chars().any(char::is_alphabetic));
    let fields: Vec<String> =
        selections.iter().filter(|(_, values)| has_letters(values)).map(|(field, _)| field.to_owned()).collect();
    if fields.is_empty() {
        return Vec::new();
    }
    let facets = facet_requests(search, "selections", &fields, FACET_VALUES_MAX, None, &mut Vec::new());
    let request = LogScanRequest { facets, selections: FieldSelections::default(), ..search.request.clone() };
    // The answer is complete without the notes.
    let Ok(outcome) = Box::pin(run_scan(search, &request, &search.filter_fields(), None)).await else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    for (field, selected) in selections.iter() {
        let of_field = outcome.answer.facets.iter().find_map(|facet| match facet {
            FacetAnswer::Values(facet) if facet.field == field => Some(facet),
            _ => None,
        });
        notes.extend(of_field.and_then(|facet| spelling_note(facet, selected)));
    }
    notes
}

fn spelling_note(facet: &FieldFacet, selected: &SelectedValues) -> Option<String> {
    let selected: Vec<(&str, String)> =
        selected.to_sorted().into_iter().map(|value| (value, value.to_lowercase())).collect();
    let is_meant = |value: &FacetValue, (exact, lowered): &(&str, String)| {
        let is_named = value.display_name.is_some_and(|name| name == lowered);
        value.value != *exact && (is_named || value.value.to_lowercase() == *lowered)
    };
    let meant: Vec<String> = facet
        .values
        .iter()
        .filter(|value| selected.iter().any(|selected| is_meant(value, selected)))
        .map(|value| format!("{:?} (rows: {})", value.value, value.rows))
        .collect();
    (!meant.is_empty())
        .then(|| format!("{} has {}; selections observe case and spelling.", facet.field, meant.join(", ")))
}
