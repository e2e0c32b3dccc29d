//! What two answers to one statement are to each other.

use tidegate_core::{Error, ErrorKind};

use super::answer::{Answer, TypeClass, Value, line};
use super::server::ServerError;

/// PostgreSQL's code for a number that is too large for its type.
const OUT_OF_RANGE: &str = "22003";
/// Words by which a message without a hint says what to write.
const ADVICE: &[&str] = &[" instead", "write ", " use ", "cast", "it takes "];
/// Rows that are matched one with each other where sorting does not bring them together.
const MATCHED_ROWS_MAX: usize = 2_000;

/// The result of one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Equal,
    /// Equal but for the names of the columns.
    EqualExceptNames,
    /// PostgreSQL fails, and so does the engine.
    BothFail,
    /// Refused with words that say what to write.
    Refused,
    /// Refused without them.
    RefusedWithoutHint,
    /// PostgreSQL's type is too small for the number, ours is not.
    Wider,
    /// PostgreSQL fails otherwise, and we answer.
    OnlyEngineAnswers,
    /// Fails the test: the reason.
    Different(String),
    /// Fails the test: an internal error or a panic.
    Internal,
}

/// What the engine answered, or why it did not.
pub(crate) enum EngineAnswer {
    Answer(Answer),
    Error(Error),
    /// It panicked or went on for too long.
    Broken(String),
}

impl std::fmt::Display for EngineAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Answer(answer) => answer.fmt(f),
            Self::Error(error) => {
                write!(f, "{}: {error}", error.kind().name())?;
                error.detail().map_or(Ok(()), |detail| write!(f, "\n      {}", first_lines(detail)))
            }
            Self::Broken(reason) => f.write_str(reason),
        }
    }
}

fn first_lines(text: &str) -> String {
    text.lines().take(3).map(|line| line.chars().take(300).collect::<String>()).collect::<Vec<_>>().join("\n      ")
}

/// Compares PostgreSQL's answer with ours, in sequence where the statement `is_ordered`.
pub(crate) fn outcome(theirs: &Result<Answer, ServerError>, ours: &EngineAnswer, is_ordered: bool) -> Outcome {
    match (theirs, ours) {
        (_, EngineAnswer::Broken(_)) => Outcome::Internal,
        (_, EngineAnswer::Error(error)) if matches!(error.kind(), ErrorKind::Internal | ErrorKind::TimedOut) => {
            Outcome::Internal
        }
        (Err(_), EngineAnswer::Error(_)) => Outcome::BothFail,
        (Ok(_), EngineAnswer::Error(error)) => {
            if says_what_to_write(error) {
                Outcome::Refused
            } else {
                Outcome::RefusedWithoutHint
            }
        }
        (Err(error), EngineAnswer::Answer(answer)) if error.code == OUT_OF_RANGE => {
            classify_overflow(&error.message, answer)
        }
        (Err(_), EngineAnswer::Answer(_)) => Outcome::OnlyEngineAnswers,
        (Ok(theirs), EngineAnswer::Answer(ours)) => compare_answers(theirs, ours, is_ordered),
    }
}

/// Whether the message says what to do next.
pub(crate) fn says_what_to_write(error: &Error) -> bool {
    let has_advice = ADVICE.iter().any(|advice| error.message().contains(advice));
    error.hint().is_some() || !error.choices().is_empty() || has_advice
}

/// An answer where PostgreSQL overflows is right only with a number that its type cannot hold.
fn classify_overflow(message: &str, ours: &Answer) -> Outcome {
    let bound = match message {
        message if message.starts_with("smallint") => 32_767.0,
        message if message.starts_with("integer") => 2_147_483_647.0,
        message if message.starts_with("bigint") => 9_223_372_036_854_775_807.0,
        _ => return Outcome::OnlyEngineAnswers,
    };
    if ours.columns.iter().all(|column| *column.class.leaf() != TypeClass::Number) {
        return Outcome::OnlyEngineAnswers;
    }
    let is_beyond = |value: &Value| match value {
        Value::Exact(number) => number.to_f64().abs() > bound,
        Value::Float(number, _) => number.abs() >= bound,
        // Numbers that were made text.
        Value::Plain(text) => {
            let mut numbers = text.split(|character: char| !character.is_ascii_digit());
            numbers.any(|digits| digits.parse::<f64>().is_ok_and(|number| number > bound))
        }
        _ => false,
    };
    match ours.rows.iter().flatten().any(is_beyond) {
        true => Outcome::Wider,
        false => Outcome::Different("no number is beyond the type that overflows in PostgreSQL".to_owned()),
    }
}

fn compare_answers(theirs: &Answer, ours: &Answer, is_ordered: bool) -> Outcome {
    if let Some(difference) = difference(theirs, ours, is_ordered) {
        return Outcome::Different(difference);
    }
    let names = |answer: &Answer| answer.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    if names(theirs) == names(ours) { Outcome::Equal } else { Outcome::EqualExceptNames }
}

fn difference(theirs: &Answer, ours: &Answer, is_ordered: bool) -> Option<String> {
    if theirs.columns.len() != ours.columns.len() {
        return Some("the number of columns".to_owned());
    }
    for (index, (theirs, ours)) in theirs.columns.iter().zip(&ours.columns).enumerate() {
        if !theirs.class.agrees(&ours.class) {
            return Some(format!("column {} is {} there and {} here", index + 1, theirs.class, ours.class));
        }
    }
    if theirs.rows.len() != ours.rows.len() {
        return Some("the number of rows".to_owned());
    }
    if is_ordered {
        return first_difference(&theirs.rows.iter().collect::<Vec<_>>(), &ours.rows.iter().collect::<Vec<_>>());
    }
    let difference = first_difference(&sorted(&theirs.rows), &sorted(&ours.rows))?;
    match theirs.rows.len() <= MATCHED_ROWS_MAX && match_each(&theirs.rows, &ours.rows) {
        true => None,
        false => Some(difference),
    }
}

fn first_difference(theirs: &[&Vec<Value>], ours: &[&Vec<Value>]) -> Option<String> {
    let pair = theirs.iter().zip(ours).find(|(theirs, ours)| !rows_equal(theirs, ours))?;
    Some(format!("the row {} is {} here", line(pair.0), line(pair.1)))
}

fn sorted(rows: &[Vec<Value>]) -> Vec<&Vec<Value>> {
    let mut sorted: Vec<&Vec<Value>> = rows.iter().collect();
    sorted.sort_by_cached_key(|row| row.iter().map(key).collect::<Vec<_>>());
    sorted
}

/// What is the same for equal values, but for floating point that is rounded apart.
fn key(value: &Value) -> String {
    match value {
        Value::Exact(number) => format!("{:.8e}", number.to_f64()),
        // Adding zero makes -0 the 0 that it is equal to.
        Value::Float(number, _) => format!("{:.8e}", number + 0.0),
        Value::Json(value) => json_key(value),
        Value::Array(values) => values.iter().map(key).collect::<Vec<_>>().join(","),
        value => value.to_string(),
    }
}

fn json_key(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(members) => {
            let mut keys: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}:{}", json_key(value))).collect();
            keys.sort();
            keys.join(",")
        }
        serde_json::Value::Array(values) => values.iter().map(json_key).collect::<Vec<_>>().join(","),
        serde_json::Value::Number(number) => number.as_f64().map_or_else(String::new, |number| format!("{number:.8e}")),
        value => value.to_string(),
    }
}

fn match_each(theirs: &[Vec<Value>], ours: &[Vec<Value>]) -> bool {
    let mut rest: Vec<&Vec<Value>> = ours.iter().collect();
    theirs.iter().all(|row| match rest.iter().position(|other| rows_equal(row, other)) {
        Some(index) => {
            rest.swap_remove(index);
            true
        }
        None => false,
    })
}

fn rows_equal(theirs: &[Value], ours: &[Value]) -> bool {
    theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(theirs, ours)| equal(theirs, ours))
}

fn equal(theirs: &Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (Value::Exact(theirs), Value::Exact(ours)) => theirs.equals_postgres(ours),
        (Value::Float(theirs, difference), Value::Float(ours, other)) => close(*theirs, *ours, difference.max(*other)),
        (Value::Exact(theirs), Value::Float(ours, difference)) => close(theirs.to_f64(), *ours, *difference),
        (Value::Float(theirs, difference), Value::Exact(ours)) => close(*theirs, ours.to_f64(), *difference),
        (Value::Json(theirs), Value::Plain(ours)) => {
            serde_json::from_str(ours).is_ok_and(|ours| json_equal(theirs, &ours))
        }
        (Value::Array(theirs), Value::Array(ours)) => rows_equal(theirs, ours),
        (theirs, ours) => theirs == ours,
    }
}

fn close(theirs: f64, ours: f64, difference: f64) -> bool {
    let is_same = theirs == ours || (theirs.is_nan() && ours.is_nan());
    is_same
        || (theirs.is_finite()
            && ours.is_finite()
            && (theirs - ours).abs() <= difference * theirs.abs().max(ours.abs()))
}

fn json_equal(theirs: &serde_json::Value, ours: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (theirs, ours) {
        (Number(theirs), Number(ours)) => match (theirs.as_f64(), ours.as_f64()) {
            (Some(theirs), Some(ours)) => close(theirs, ours, super::from_text::DOUBLE_DIFFERENCE),
            _ => theirs == ours,
        },
        (Array(theirs), Array(ours)) => {
            theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(theirs, ours)| json_equal(theirs, ours))
        }
        (Object(theirs), Object(ours)) => {
            let member = |name: &String, value| ours.get(name).is_some_and(|ours| json_equal(value, ours));
            theirs.len() == ours.len() && theirs.iter().all(|(name, value)| member(name, value))
        }
        (theirs, ours) => theirs == ours,
    }
}
