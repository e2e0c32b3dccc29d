//! The answer to a write, as JSON.

use serde_json::{Map, Value, json};
use tidegate_core::Error;
use tidegate_ingest_formats::{RejectedRow, RowPosition};
use tidegate_runtime::{Answer, AnswerMeta, Job, WriteSummary};

use super::destination::Destination;
use super::store_body::StoredRows;

/// How many rejected rows an answer has, until it fits: all that are reported, some, none.
const REJECTIONS_MAX: [usize; 3] = [usize::MAX, 10, 0];

/// Answers with what was stored. This cannot fail because of the size or the content of the answer: the rows are stored.
pub(super) fn answer_stored(destination: &Destination, stored: &StoredRows, job: &Job) -> Result<Answer, Error> {
    let rows = stored.receipt.rows.first().copied().unwrap_or_default();
    let is_created = !destination.exists && !stored.is_repeated;
    let budget = if job.format().is_some() { None } else { job.limits().inline.bytes };
    let texts = REJECTIONS_MAX.iter().map(|max| {
        let rejections = stored.rejections.iter().take(*max).map(rejection_json);
        json!({
            "database": destination.target.database(),
            "table": destination.table.name,
            "rows": rows,
            "rejected": stored.rejected,
            "rejections": rejections.collect::<Vec<_>>(),
            "sequence": stored.receipt.sequence,
            "created": is_created,
            "repeated": stored.is_repeated,
        })
        .to_string()
    });
    // The last one has neither rows nor reasons of the sender.
    let fitting = texts.filter(|text| budget.is_none_or(|max| text.len() <= max));
    let mut redacted = fitting.map(|text| job.protection().redact_json(text));
    let first = redacted.next();
    let text = match first {
        Some(Ok(text)) => text,
        Some(Err(error)) => redacted.next_back().unwrap_or(Err(error))?,
        None => format!("{rows} rows are stored"),
    };
    // A transformation may leave rows out.
    let is_comparable = stored.is_repeated && destination.table.schema.is_some();
    let repeated_rows = is_comparable.then_some(rows);
    let (rejected, sequence) = (stored.rejected, stored.receipt.sequence);
    let write = WriteSummary { rejected, sequence, is_created, repeated_rows };
    let meta = AnswerMeta { rows: Some(rows), write: Some(Box::new(write)), ..AnswerMeta::default() };
    Ok(Answer::data(text).with_meta(meta))
}

/// Answers that the table was dropped.
pub(super) fn answer_dropped(destination: &Destination, job: &Job) -> Result<Answer, Error> {
    let answer = json!({
        "database": destination.target.database(),
        "table": destination.table.name,
        "dropped": true,
    });
    Ok(Answer::data(job.protection().redact_json(answer.to_string())?))
}

fn rejection_json(row: &RejectedRow) -> Value {
    let (position, number) = match row.position {
        RowPosition::Line(line) => ("line", line),
        RowPosition::Index(index) => ("row", index),
    };
    let mut members = Map::from_iter([(position.to_owned(), Value::from(number))]);
    if let Some(column) = &row.column {
        members.insert("column".to_owned(), column.as_str().into());
    }
    members.insert("reason".to_owned(), row.reason.as_str().into());
    if !row.text.is_empty() {
        members.insert("text".to_owned(), row.text.as_str().into());
    }
    Value::Object(members)
}
