//! Samples from the rows of tables: which column is what, and the series of each row, from columns of labels or of JSON
//! objects with labels.
//!
//! Samples are mostly stored in the same order of series again and again. So the combination of a row is first guessed
//! to be the one that followed last time, and the guess is checked, which is much cheaper than a look-up.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type};
use foldhash::fast::RandomState;
use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind};

use super::evaluator::{MetricEvaluator, SeriesHandle};
use super::model::{Labels, Sample};
use crate::logs::time::time_column;
use crate::logs::value::EncodedColumn;

/// The columns of a table that have samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleColumns {
    /// The time of a sample.
    pub time: String,
    /// The name of the metric. `None`: the column with the value is a metric of its own name.
    pub metric: Option<String>,
    /// The value of a sample.
    pub value: String,
    /// The labels.
    pub labels: Vec<String>,
    /// Columns with further labels.
    pub json_labels: Vec<JsonLabels>,
}

/// Receives samples by series.
pub trait SampleSink {
    /// Identifies a series.
    type Series: Copy;

    /// The series of a metric; `None` if its samples are not needed.
    ///
    /// # Errors
    /// If there are too many series.
    fn series(&mut self, metric: &str, labels: &Labels) -> Result<Option<Self::Series>, Error>;

    /// Adds a sample.
    ///
    /// # Errors
    /// If the samples need too much memory.
    fn push(&mut self, series: Self::Series, sample: Sample) -> Result<(), Error>;
}

impl SampleSink for MetricEvaluator {
    type Series = SeriesHandle;

    fn series(&mut self, metric: &str, labels: &Labels) -> Result<Option<SeriesHandle>, Error> {
        if metric == self.query().metric { Self::series(self, labels) } else { Ok(None) }
    }

    fn push(&mut self, series: SeriesHandle, sample: Sample) -> Result<(), Error> {
        Self::push(self, series, sample)
    }
}

/// Reads the samples of rows into one sink.
#[derive(Debug)]
pub struct SampleRows<S> {
    columns: SampleColumns,
    /// The combinations of metric and labels.
    combinations: LabelRows,
    /// The series of each combination; the outer `None` is not looked up yet.
    series: Vec<Option<Option<S>>>,
}

impl<S: Copy> SampleRows<S> {
    /// A reader of batches with these columns.
    pub fn new(columns: SampleColumns) -> Self {
        Self { columns, combinations: LabelRows::default(), series: Vec::new() }
    }

    /// Adds the samples of `batch` to `sink`.
    ///
    /// # Errors
    /// `Unavailable` if a column is missing or has no times or numbers; `TooLarge` if the labels have too many values; the
    /// errors of the sink.
    pub fn push<T: SampleSink<Series = S>>(&mut self, batch: &RecordBatch, sink: &mut T) -> Result<(), Error> {
        let times = read_times(batch, &self.columns.time)?;
        let texts = self.text_columns().map(|name| text_views(column(batch, name)?)).collect::<Result<Vec<_>, _>>()?;
        let values = read_numbers(batch, &self.columns.value)?;
        for row in 0..batch.num_rows() {
            // Without a time there is no sample.
            if times.is_null(row) {
                continue;
            }
            let combination = self.combinations.find(&texts, row)?;
            if values.is_null(row) {
                continue;
            }
            if let Some(series) = self.series_of(combination, batch, row, sink)? {
                sink.push(series, Sample { time_ns: times.value(row), value: values.value(row) })?;
            }
        }
        Ok(())
    }

    fn text_columns(&self) -> impl Iterator<Item = &String> {
        let with_members = self.columns.json_labels.iter().map(|labels| &labels.column);
        self.columns.metric.iter().chain(&self.columns.labels).chain(with_members)
    }

    fn series_of<T: SampleSink<Series = S>>(
        &mut self,
        combination: usize,
        batch: &RecordBatch,
        row: usize,
        sink: &mut T,
    ) -> Result<Option<S>, Error> {
        if self.series.len() <= combination {
            self.series.resize(combination + 1, None);
        }
        if let Some(Some(series)) = self.series.get(combination) {
            return Ok(*series);
        }
        let labels = self.columns.labels.iter().map(|name| (name.clone(), text(batch, name, row)));
        let columns = &self.columns;
        let members =
            columns.json_labels.iter().flat_map(|json| json.expand(&text(batch, &json.column, row), &columns.labels));
        let labels = Labels::new(labels.chain(members));
        let metric = match &self.columns.metric {
            Some(column) => text(batch, column, row),
            None => self.columns.value.clone(),
        };
        // A row without the name of its metric belongs to no metric.
        let series = if metric.is_empty() { None } else { sink.series(&metric, &labels)? };
        if let Some(place) = self.series.get_mut(combination) {
            *place = Some(series);
        }
        Ok(series)
    }
}

/// The text of a value; empty if it is null.
fn text(batch: &RecordBatch, name: &str, row: usize) -> String {
    let array = batch.column_by_name(name).filter(|array| !array.is_null(row));
    array.map(|array| crate::logs::display_value(array.as_ref(), row)).unwrap_or_default()
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, Error> {
    let column = batch.column_by_name(name).map(AsRef::as_ref);
    column.ok_or_else(|| Error::new(ErrorKind::Unavailable, format!("the column {name:?} does not exist any more")))
}

/// The values as text, null where they are.
fn text_views(array: &dyn Array) -> Result<StringViewArray, Error> {
    let is_text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let has_text = match array.data_type() {
        DataType::Dictionary(_, values) => is_text(values),
        kind => is_text(kind),
    };
    if has_text {
        let views = match array.as_any_dictionary_opt() {
            // Casting it as a whole would make nulls among its values empty texts.
            Some(dictionary) => {
                cast(dictionary.values(), &DataType::Utf8View).and_then(|values| take(&values, dictionary.keys(), None))
            }
            None => cast(array, &DataType::Utf8View),
        };
        let views = views.map_err(|error| Error::internal(format!("labels: {error}")))?;
        return Ok(views.as_string_view().clone());
    }
    let encoded = EncodedColumn::new(array, &BooleanBuffer::new_set(array.len()));
    let text = |row: usize| encoded.code(row).and_then(|code| encoded.values().get(code)).map(AsRef::as_ref);
    Ok((0..array.len()).map(|row| text(row).filter(|_| array.is_valid(row))).collect())
}

fn read_times(batch: &RecordBatch, name: &str) -> Result<Int64Array, Error> {
    let array = column(batch, name)?;
    time_column(array).ok_or_else(|| {
        let kind = array.data_type();
        Error::new(ErrorKind::Unavailable, format!("the column {name:?} has no times, but values of the type {kind}"))
    })
}

fn read_numbers(batch: &RecordBatch, name: &str) -> Result<Float64Array, Error> {
    let array = column(batch, name)?;
    let numbers = cast(array, &DataType::Float64).map_err(|_| {
        let kind = array.data_type();
        Error::new(ErrorKind::Unavailable, format!("the column {name:?} has no numbers, but values of the type {kind}"))
    })?;
    Ok(numbers.as_primitive::<Float64Type>().clone())
}

/// The maximum number of combinations of labels in the rows of one scan.
const COMBINATIONS_MAX: usize = 200_000;
/// The memory that the combinations may take, in bytes.
const BYTES_MAX: usize = 64 << 20;
/// The length of a missing value in keys; a text is shorter.
const MISSING_LENGTH: u32 = u32::MAX;
/// The longest text that a view contains itself, in bytes.
const INLINE_BYTES_MAX: u32 = 12;

/// The combinations that occurred so far, numbered in order of their first row.
#[derive(Debug, Default)]
struct LabelRows {
    numbers: HashMap<Box<[u8]>, usize, RandomState>,
    /// For each combination, its values.
    values: Vec<Vec<KnownText>>,
    /// For each combination, the one that followed last time.
    followers: Vec<usize>,
    previous: usize,
    bytes: usize,
    key: Vec<u8>,
}

/// A value of a combination.
#[derive(Debug)]
enum KnownText {
    Missing,
    /// The view of a short text, which is its length and its bytes.
    Short(u128),
    Long(Box<str>),
}

impl KnownText {
    fn new(texts: &StringViewArray, row: usize) -> Self {
        match texts.views().get(row) {
            Some(view) if texts.is_valid(row) && length(*view) <= INLINE_BYTES_MAX => Self::Short(*view),
            _ if texts.is_valid(row) => Self::Long(texts.value(row).into()),
            _ => Self::Missing,
        }
    }

    fn is_at(&self, texts: &StringViewArray, row: usize) -> bool {
        if texts.is_null(row) {
            return matches!(self, Self::Missing);
        }
        match self {
            Self::Missing => false,
            Self::Short(known) => texts.views().get(row) == Some(known),
            Self::Long(known) => texts.value(row) == known.as_ref(),
        }
    }
}

/// The length of the text of a view.
fn length(view: u128) -> u32 {
    (view & u128::from(u32::MAX)) as u32
}

impl LabelRows {
    /// The number of the combination that `columns` have in a row. They are the same columns in every call.
    ///
    /// # Errors
    /// `TooLarge` if there are too many combinations.
    fn find(&mut self, columns: &[StringViewArray], row: usize) -> Result<usize, Error> {
        let guess = self.followers.get(self.previous).copied().unwrap_or_default();
        let is_right =
            |values: &Vec<KnownText>| values.iter().zip(columns).all(|(known, texts)| known.is_at(texts, row));
        if self.values.get(guess).is_some_and(is_right) {
            self.previous = guess;
            return Ok(guess);
        }
        let found = self.look_up(columns, row)?;
        if let Some(follower) = self.followers.get_mut(self.previous) {
            *follower = found;
        }
        self.previous = found;
        Ok(found)
    }

    fn look_up(&mut self, columns: &[StringViewArray], row: usize) -> Result<usize, Error> {
        self.key.clear();
        for texts in columns {
            if texts.is_null(row) {
                self.key.extend(MISSING_LENGTH.to_le_bytes());
            } else {
                let text = texts.value(row);
                self.key.extend(u32::try_from(text.len()).unwrap_or(MISSING_LENGTH).to_le_bytes());
                self.key.extend(text.as_bytes());
            }
        }
        if let Some(number) = self.numbers.get(self.key.as_slice()) {
            return Ok(*number);
        }
        let number = self.values.len();
        self.bytes += 2 * self.key.len() + columns.len() * size_of::<KnownText>();
        if number >= COMBINATIONS_MAX || self.bytes > BYTES_MAX {
            let message = format!("the rows have more than {number} combinations of labels, which is the maximum");
            return Err(Error::new(ErrorKind::TooLarge, message).with_hint("Add conditions on labels."));
        }
        self.numbers.insert(self.key.as_slice().into(), number);
        self.values.push(columns.iter().map(|texts| KnownText::new(texts, row)).collect());
        self.followers.push(number);
        Ok(number)
    }
}

/// A column with a JSON object whose members are labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonLabels {
    /// The column.
    pub column: String,
    /// What is put before the names of the members.
    pub prefix: String,
}

impl JsonLabels {
    /// The labels of the object in `text`. A member whose name is among `taken` has the name of the column before its own,
    /// so that no series becomes another one. Text that is no object is one label with the name of the column.
    pub fn expand(&self, text: &str, taken: &[String]) -> Vec<(String, String)> {
        if text.is_empty() {
            return Vec::new();
        }
        let Ok(members) = serde_json::from_str::<Map<String, Value>>(text) else {
            return vec![(self.column.clone(), text.to_owned())];
        };
        let label = |(name, value): (String, Value)| {
            let name = format!("{}{name}", self.prefix);
            let name = if taken.contains(&name) { format!("{}.{name}", self.column) } else { name };
            let value = match value {
                Value::String(text) => text,
                Value::Null => String::new(),
                value => value.to_string(),
            };
            (name, value)
        };
        members.into_iter().map(label).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, StringArray, TimestampSecondArray};
    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Collected {
        series: Vec<(String, Labels)>,
        samples: Vec<(usize, Sample)>,
    }

    impl SampleSink for Collected {
        type Series = usize;

        fn series(&mut self, metric: &str, labels: &Labels) -> Result<Option<usize>, Error> {
            self.series.push((metric.to_owned(), labels.clone()));
            Ok((metric != "ignored").then_some(self.series.len() - 1))
        }

        fn push(&mut self, series: usize, sample: Sample) -> Result<(), Error> {
            self.samples.push((series, sample));
            Ok(())
        }
    }

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    #[test]
    fn rows_have_a_metric_labels_and_a_value() {
        let columns = SampleColumns {
            time: "ts".to_owned(),
            metric: Some("metric".to_owned()),
            value: "value".to_owned(),
            labels: vec!["host".to_owned()],
            json_labels: Vec::new(),
        };
        let rows = batch(vec![
            ("ts", Arc::new(TimestampSecondArray::from(vec![Some(1), Some(2), None, Some(4), Some(5)]))),
            ("metric", Arc::new(StringArray::from(vec![Some("up"), Some("up"), Some("up"), Some("ignored"), None]))),
            ("host", Arc::new(StringArray::from(vec![Some("a"), None, Some("a"), Some("a"), Some("a")]))),
            ("value", Arc::new(Int32Array::from(vec![Some(7), Some(8), Some(9), Some(1), Some(1)]))),
        ]);
        let (mut reader, mut collected) = (SampleRows::new(columns), Collected::default());
        reader.push(&rows, &mut collected).unwrap();
        reader.push(&rows, &mut collected).unwrap();
        let a = Labels::new([("host", "a")]);
        let up = |labels: &Labels| ("up".to_owned(), labels.clone());
        assert_eq!(collected.series, [up(&a), up(&Labels::default()), ("ignored".to_owned(), a)]);
        let first =
            [(0, Sample { time_ns: 1_000_000_000, value: 7.0 }), (1, Sample { time_ns: 2_000_000_000, value: 8.0 })];
        assert_eq!(collected.samples, [first, first].concat());
    }

    #[test]
    fn a_column_may_be_a_metric() {
        let columns = SampleColumns {
            time: "ts".to_owned(),
            metric: None,
            value: "cpu".to_owned(),
            labels: Vec::new(),
            json_labels: Vec::new(),
        };
        let rows = batch(vec![
            ("ts", Arc::new(TimestampSecondArray::from(vec![1, 2]))),
            ("cpu", Arc::new(Int32Array::from(vec![Some(7), None]))),
        ]);
        let (mut reader, mut collected) = (SampleRows::new(columns.clone()), Collected::default());
        reader.push(&rows, &mut collected).unwrap();
        let names: Vec<&str> = collected.series.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, collected.samples.len()), (vec!["cpu"], 1));
        let wrong = batch(vec![("ts", Arc::new(StringArray::from(vec!["x"])))]);
        let error = SampleRows::new(columns).push(&wrong, &mut collected).unwrap_err();
        assert_eq!(error.message(), "the column \"cpu\" does not exist any more");
    }

    fn any_text() -> impl Strategy<Value = Option<String>> {
        prop::option::of(prop::sample::select(vec![
            "",
            "a",
            "b",
            "short",
            "a text that is longer than a view",
            "a text that is longer than a veil",
        ]))
        .prop_map(|text| text.map(str::to_owned))
    }

    proptest! {
        /// Two rows have the same number exactly if all their values are the same, in whatever order they come.
        #[test]
        fn equal_rows_have_equal_numbers(rows in prop::collection::vec((any_text(), any_text()), 1..40), repeats in 1_usize..4, batch in 1_usize..9) {
            let rows = vec![rows; repeats].concat();
            let (mut known, mut numbers) = (LabelRows::default(), Vec::new());
            for batch in rows.chunks(batch) {
                let first: StringViewArray = batch.iter().map(|(first, _)| first.as_deref()).collect();
                let second: StringViewArray = batch.iter().map(|(_, second)| second.as_deref()).collect();
                let columns = [first, second];
                for row in 0..batch.len() {
                    numbers.push(known.find(&columns, row).unwrap());
                }
            }
            let mut expected: Vec<&(Option<String>, Option<String>)> = Vec::new();
            for (row, number) in rows.iter().zip(&numbers) {
                let place = expected.iter().position(|known| *known == row).unwrap_or_else(|| {
                    expected.push(row);
                    expected.len() - 1
                });
                prop_assert_eq!(*number, place);
            }
        }
    }

    #[test]
    fn rows_without_labels_are_one_combination() {
        let mut known = LabelRows::default();
        assert_eq!([known.find(&[], 0).unwrap(), known.find(&[], 1).unwrap()], [0, 0]);
    }

    #[test]
    fn members_are_labels() {
        let labels = JsonLabels { column: "attributes".to_owned(), prefix: String::new() };
        let expand = |text: &str| {
            labels.expand(text, &["host".to_owned()]).into_iter().map(|(name, value)| format!("{name}={value}"))
        };
        let members: Vec<String> =
            expand(r#"{"host": "a", "port": 80, "on": true, "list": [1], "none": null}"#).collect();
        assert_eq!(members.len(), 5);
        for label in ["attributes.host=a", "port=80", "on=true", "list=[1]", "none="] {
            assert!(members.contains(&label.to_owned()), "{members:?}");
        }
        assert_eq!(expand("").count(), 0);
        assert_eq!(expand("[1]").collect::<Vec<_>>(), ["attributes=[1]"]);
        let prefixed = JsonLabels { prefix: "resource.".to_owned(), ..labels.clone() };
        assert_eq!(prefixed.expand(r#"{"a": "b"}"#, &[]), [("resource.a".to_owned(), "b".to_owned())]);
    }
}
