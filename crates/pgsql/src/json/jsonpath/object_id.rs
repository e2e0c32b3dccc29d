//! The `id` of `keyvalue()`: the position of an object in PostgreSQL's binary form of its document.

use datafusion::common::exec_datafusion_err;

use super::super::value::JsonValue;
use super::budget::{Item, PathBudget, PathResult};

/// The bytes of a header, and of each entry of an array or object.
const ENTRY_BYTES: u64 = 4;
/// The prefix of the identifiers of variables.
const VARIABLES: u64 = 10_000_000_000;

/// Returns the identifier of the object `item`, which belongs to the document `root` or to `variables`.
pub(super) fn object_id(
    item: &Item<'_>,
    root: &JsonValue,
    variables: Option<&JsonValue>,
    budget: &mut PathBudget,
) -> PathResult<u64> {
    let Item::Borrowed(json_value) = item else { return Err(keyvalue_error().into()) };
    if let Some(position) = find_position(json_value, root, budget)? {
        return Ok(position);
    }
    let of_variables = variables.map(|variables| find_position(json_value, variables, budget)).transpose()?.flatten();
    of_variables.map(|position| VARIABLES + position).ok_or_else(|| keyvalue_error().into())
}

fn keyvalue_error() -> datafusion::common::DataFusionError {
    exec_datafusion_err!(
        "keyvalue() of the result of keyvalue() is not supported; write jsonb_each(value) in FROM instead of one"
    )
}

/// Returns the position of `json_value`, a part of `document`, in the binary form.
fn find_position(json_value: &JsonValue, document: &JsonValue, budget: &mut PathBudget) -> PathResult<Option<u64>> {
    let mut search = ObjectSearch { expected: json_value, position: None, end: 0, steps: 0 };
    search.advance_past(document);
    budget.spend(search.steps)?;
    Ok(search.position)
}

/// Passes through the binary form of a document.
struct ObjectSearch<'a> {
    expected: &'a JsonValue,
    position: Option<u64>,
    end: u64,
    steps: usize,
}

impl ObjectSearch<'_> {
    fn align(&mut self) {
        self.end = self.end.next_multiple_of(ENTRY_BYTES);
    }

    fn advance_past(&mut self, value: &JsonValue) {
        if self.position.is_some() {
            return;
        }
        self.steps += 1;
        match value {
            JsonValue::Null | JsonValue::Bool(_) => {}
            JsonValue::Text(text) => self.end += text.len() as u64,
            JsonValue::Number(number) => {
                self.align();
                self.end += number_bytes(number);
            }
            JsonValue::Array(items) => {
                self.begin(value, items.len());
                items.iter().for_each(|item| self.advance_past(item));
            }
            JsonValue::Object(pairs) => {
                self.begin(value, pairs.len() * 2);
                self.end += pairs.iter().map(|(key, _)| key.len() as u64).sum::<u64>();
                pairs.iter().for_each(|(_, value)| self.advance_past(value));
            }
        }
    }

    fn begin(&mut self, value: &JsonValue, entries: usize) {
        self.align();
        if std::ptr::eq(value, self.expected) {
            self.position = Some(self.end);
        }
        self.end += ENTRY_BYTES * (1 + entries as u64);
    }
}

/// Returns the bytes of a `numeric`: a length, a header, and two for each four digits.
fn number_bytes(number: &str) -> u64 {
    const GROUP: usize = 4;
    let digits = number.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let padding = whole.len().next_multiple_of(GROUP) - whole.len();
    let aligned = format!("{}{whole}{fraction}", "0".repeat(padding));
    let groups: Vec<bool> =
        aligned.as_bytes().chunks(GROUP).map(|group| group.iter().any(|digit| *digit != b'0')).collect();
    let Some(first) = groups.iter().position(|is_set| *is_set) else { return ENTRY_BYTES + 2 };
    let last = groups.iter().rposition(|is_set| *is_set).unwrap_or(first);
    let weight = ((whole.len() + padding) / GROUP) as i64 - 1 - first as i64;
    let is_short = fraction.len() <= 63 && (-64..=63).contains(&weight);
    let header = if is_short { 2 } else { 4 };
    ENTRY_BYTES + header + 2 * (last - first + 1) as u64
}
