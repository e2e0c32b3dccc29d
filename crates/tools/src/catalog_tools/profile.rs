//! Profiles of columns: how many values are null or distinct, their bounds, the frequent ones, and the form of texts.
//!
//! One statement of the caller reads a bounded number of rows of a table. So row policies apply, and a masked column has no
//! profile: neither its values nor how many there are. Once a table is read, only numbers and a few short values of it stay
//! in memory.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, BooleanArray, ListBuilder, RecordBatch, StringBuilder, UnionArray};
use arrow::datatypes::{DataType, Field};
use arrow::row::{OwnedRow, RowConverter, SortField};
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind, shorten};
use tidegate_query::{ColumnEntry, ColumnFormatter, Database, ExtensionType, declared_type_name};
use tidegate_runtime::Job;
use tidegate_sql::Statement;
use tokio::time::{Instant, timeout_at};

use crate::tool_services::ToolServices;
use crate::typed_rows::{TableBuilder, boolean_column, count_column, text_column};

/// How long one call reads rows.
const READ_TIME: Duration = Duration::from_secs(10);
/// Rows of a table that are read at most.
const ROWS_MAX: usize = 100_000;
/// Values of a table that are read at most: of wide tables, fewer rows are read.
const VALUES_MAX: usize = 2_000_000;
/// Columns of a table that are read at most; the others have no profile.
const COLUMNS_MAX: usize = 200;
/// Distinct values that are counted at most.
const DISTINCT_MAX: usize = 10_000;
/// Distinct values at most of a column with frequent values.
const FREQUENT_AMONG_MAX: usize = 1_000;
const FREQUENT_LISTED_MAX: usize = 5;
/// Different forms of texts at most of a column with a pattern.
const PATTERNS_MAX: usize = 200;
/// Characters of a text with a pattern at most.
const PATTERN_CHARS_MAX: usize = 40;
/// Characters of a value; longer ones are cut and end with `…`.
const VALUE_CHARS_MAX: usize = 60;

/// The profiles of the columns of a call, in their order.
pub(super) struct ProfileColumns {
    columns: Vec<ProfiledColumn>,
    deadline: Instant,
}

/// One column, with what was read of its table.
struct ProfiledColumn {
    rows: u64,
    is_whole: bool,
    /// `None` for a masked column, for one too many, and where there was no time to read.
    profile: Option<ColumnProfile>,
}

/// The profile of one column, as the answer has it.
struct ColumnProfile {
    nulls: u64,
    distinct: String,
    is_unique: Option<bool>,
    least: Option<String>,
    greatest: Option<String>,
    frequent: Vec<String>,
    pattern: Option<String>,
    length: Option<String>,
}

impl ProfileColumns {
    pub(super) fn new() -> Self {
        Self { columns: Vec::new(), deadline: Instant::now() + READ_TIME }
    }

    /// Adds the profiles of `columns`, which are all of `table`.
    ///
    /// # Errors
    /// `Unavailable` where it is unknown which columns are masked; those of the database.
    pub(super) async fn add(
        &mut self,
        services: &ToolServices,
        database: &dyn Database,
        table: &str,
        columns: &[ColumnEntry],
        job: &Arc<Job>,
    ) -> Result<(), Error> {
        if columns.iter().any(|column| column.is_masked.is_none()) {
            let message = format!("{table:?} cannot be profiled: another server decides which columns you see masked");
            return Err(Error::new(ErrorKind::Unavailable, message).with_hint("Count with query or sql instead."));
        }
        let unmasked = columns.iter().filter(|column| column.is_masked == Some(false));
        let read: Vec<&str> = unmasked.map(|column| column.name.as_str()).take(COLUMNS_MAX).collect();
        let mut reading = TableReading::default();
        if !read.is_empty() {
            reading.read(services, database, (table, &read), self.deadline, job).await?;
        }
        let (rows, is_whole) = (reading.rows as u64, reading.is_whole);
        let profiles = reading.values.into_iter().map(ColumnValues::into_profile);
        let mut profiles: HashMap<&str, ColumnProfile> = read.into_iter().zip(profiles).collect();
        let profiled = |column: &ColumnEntry| {
            let profile = profiles.remove(column.name.as_str());
            ProfiledColumn { rows, is_whole, profile }
        };
        self.columns.extend(columns.iter().map(profiled));
        Ok(())
    }

    /// Adds the columns with the profiles to `table`, which has a row for each column.
    pub(super) fn append_to(&self, table: TableBuilder) -> TableBuilder {
        let profiles = || self.columns.iter().map(|column| column.profile.as_ref());
        let text = |value: fn(&ColumnProfile) -> Option<String>| text_column(profiles().map(|it| it.and_then(value)));
        let unique: BooleanArray = profiles().map(|profile| profile.and_then(|it| it.is_unique)).collect();
        let mut frequent = ListBuilder::new(StringBuilder::new());
        for profile in profiles() {
            profile.into_iter().flat_map(|it| &it.frequent).for_each(|it| frequent.values().append_value(it));
            frequent.append(profile.is_some());
        }
        table
            .with_column("nulls", count_column(profiles().map(|profile| profile.map(|profile| profile.nulls))))
            .with_column("distinct", text(|profile| Some(profile.distinct.clone())))
            .with_column("unique", Arc::new(unique))
            .with_column("min", text(|profile| profile.least.clone()))
            .with_column("max", text(|profile| profile.greatest.clone()))
            .with_column("frequent", Arc::new(frequent.finish()))
            .with_column("pattern", text(|profile| profile.pattern.clone()))
            .with_column("length", text(|profile| profile.length.clone()))
            .with_column("rows_read", count_column(self.columns.iter().map(|column| Some(column.rows))))
            .with_column("all_rows", boolean_column(self.columns.iter().map(|column| column.is_whole)))
    }
}

/// What was read of one table.
#[derive(Default)]
struct TableReading {
    values: Vec<ColumnValues>,
    rows: usize,
    is_whole: bool,
}

impl TableReading {
    async fn read(
        &mut self,
        services: &ToolServices,
        database: &dyn Database,
        (table, columns): (&str, &[&str]),
        deadline: Instant,
        job: &Arc<Job>,
    ) -> Result<(), Error> {
        let rows_max = ROWS_MAX.min(VALUES_MAX / columns.len().max(1));
        let dialect = database.dialect();
        let listed: Vec<String> = columns.iter().map(|name| dialect.quote_identifier(name)).collect();
        let (listed, table) = (listed.join(", "), dialect.quote_table(table));
        let sql = format!("SELECT {listed} FROM {table} LIMIT {}", rows_max + 1);
        let statement = Statement::parse(&sql, dialect)?;
        // A view may compute for long before its first row.
        let Ok(opened) = timeout_at(deadline, services.executor.open_rows(database, &statement, job)).await else {
            return Ok(());
        };
        let rows = opened?;
        self.values = rows.schema.fields().iter().map(|field| ColumnValues::new(field)).collect();
        let mut batches = rows.batches;
        self.is_whole = true;
        while self.is_whole {
            let batch = match timeout_at(deadline, batches.next()).await {
                Ok(Some(batch)) => batch?,
                Ok(None) => break,
                Err(_) => {
                    self.is_whole = false;
                    break;
                }
            };
            let expected = batch.num_rows().min(rows_max - self.rows);
            self.is_whole = expected == batch.num_rows();
            self.rows += expected;
            self.add(batch.slice(0, expected)).await?;
        }
        Ok(())
    }

    /// Adds the rows of `batch`, on a thread for computations.
    async fn add(&mut self, batch: RecordBatch) -> Result<(), Error> {
        let mut values = std::mem::take(&mut self.values);
        let adding = tokio::task::spawn_blocking(move || {
            let columns = batch.schema_ref().fields().iter().zip(batch.columns());
            values.iter_mut().zip(columns).for_each(|(values, (field, column))| values.add(field, column));
            values
        });
        self.values = adding.await.map_err(|error| Error::internal(format!("a profile: {error}")))?;
        Ok(())
    }
}

/// What is known of the values of one column while they are read.
struct ColumnValues {
    nulls: u64,
    values: u64,
    /// The hashes of the values, up to [`DISTINCT_MAX`].
    distinct: HashSet<u64>,
    has_more: bool,
    /// How often each value occurs, with its text, by its hash. Empty once there are too many.
    counts: HashMap<u64, (u64, String)>,
    bounds: Bounds,
    texts: TextForms,
}

impl ColumnValues {
    fn new(field: &Field) -> Self {
        Self {
            nulls: 0,
            values: 0,
            distinct: HashSet::new(),
            has_more: false,
            counts: HashMap::new(),
            bounds: Bounds::new(field),
            texts: TextForms::default(),
        }
    }

    fn add(&mut self, field: &Field, column: &ArrayRef) {
        let formatter = ColumnFormatter::new(field, column.as_ref());
        let union = column.as_any().downcast_ref::<UnionArray>();
        let is_text_column = is_text(column.data_type()) && ExtensionType::from_field(field).is_none();
        self.bounds.add_typed(column, &formatter);
        for row in 0..column.len() {
            let Some(value) = formatter.format_value(row) else {
                self.nulls += 1;
                continue;
            };
            let own_type = union.map(|union| union.child(union.type_id(row)).data_type());
            if let Some(own_type) = own_type {
                self.bounds.add_untyped(&value, own_type);
            }
            if own_type.map_or(is_text_column, is_text) {
                self.texts.add(&value);
            }
            self.add_value(value);
        }
    }

    fn add_value(&mut self, value: String) {
        self.values += 1;
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        let hash = hasher.finish();
        if self.distinct.len() < DISTINCT_MAX {
            self.distinct.insert(hash);
        } else {
            self.has_more |= !self.distinct.contains(&hash);
        }
        if self.distinct.len() > FREQUENT_AMONG_MAX {
            self.counts.clear();
        } else {
            self.counts.entry(hash).or_insert_with(|| (0, shorten(value, VALUE_CHARS_MAX))).0 += 1;
        }
    }

    fn into_profile(self) -> ColumnProfile {
        let distinct = self.distinct.len();
        ColumnProfile {
            nulls: self.nulls,
            distinct: if self.has_more { format!("more than {DISTINCT_MAX}") } else { distinct.to_string() },
            is_unique: self.is_unique(),
            least: self.bounds.bound(0),
            greatest: self.bounds.bound(1),
            frequent: self.frequent(),
            pattern: self.texts.most_frequent_pattern(),
            length: self.texts.length_range(),
        }
    }

    /// Whether no two values are equal; `None` if that is unknown.
    fn is_unique(&self) -> Option<bool> {
        match (self.values, self.has_more) {
            (0, _) => None,
            (values, false) => Some(values == self.distinct.len() as u64),
            // So many values were not distinguished.
            (_, true) => None,
        }
    }

    /// The values that occur several times, with their counts, the most frequent first.
    fn frequent(&self) -> Vec<String> {
        let mut counts: Vec<&(u64, String)> = self.counts.values().filter(|(count, _)| *count > 1).collect();
        counts.sort_by(|left, right| (right.0, &left.1).cmp(&(left.0, &right.1)));
        counts.truncate(FREQUENT_LISTED_MAX);
        counts.into_iter().map(|(count, value)| format!("{value} ({count})")).collect()
    }
}

/// The lengths and the forms of texts.
#[derive(Default)]
struct TextForms {
    lengths: Option<(usize, usize)>,
    /// How often each form occurs. Empty once there are too many, or a text is too long.
    patterns: HashMap<String, u64>,
    is_varied: bool,
}

impl TextForms {
    fn add(&mut self, text: &str) {
        let length = text.chars().count();
        let (least, greatest) = self.lengths.unwrap_or((length, length));
        self.lengths = Some((least.min(length), greatest.max(length)));
        if self.is_varied {
            return;
        }
        self.is_varied = length > PATTERN_CHARS_MAX || self.patterns.len() > PATTERNS_MAX;
        if self.is_varied {
            self.patterns.clear();
        } else {
            *self.patterns.entry(pattern_of(text)).or_default() += 1;
        }
    }

    fn most_frequent_pattern(&self) -> Option<String> {
        let most = self.patterns.iter().max_by(|left, right| (left.1, right.0).cmp(&(right.1, left.0)));
        most.map(|(pattern, count)| format!("{pattern} ({count})"))
    }

    fn length_range(&self) -> Option<String> {
        let (least, greatest) = self.lengths?;
        Some(if least == greatest { least.to_string() } else { format!("{least} to {greatest}") })
    }
}

/// The form of a text: `9` for digits, `a` for small letters and `A` for all others.
fn pattern_of(text: &str) -> String {
    let form = |character: char| match character {
        digit if digit.is_numeric() => '9',
        letter if letter.is_lowercase() => 'a',
        letter if letter.is_alphabetic() => 'A',
        other => other,
    };
    text.chars().map(form).collect()
}

/// A number whose type is its own.
#[derive(Clone, Copy)]
enum OwnNumber {
    Integer(i64),
    Real(f64),
}

impl OwnNumber {
    fn parse(text: &str, data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Int64 => text.parse().ok().map(Self::Integer),
            DataType::Float64 => text.parse().ok().map(Self::Real),
            _ => None,
        }
    }

    /// By their values: a float does not have all digits of a large integer.
    fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(&right),
            (Self::Real(left), Self::Real(right)) => left.total_cmp(&right),
            (Self::Integer(left), Self::Real(right)) => {
                let floor = right.floor();
                let fraction = if right > floor { Ordering::Less } else { Ordering::Equal };
                i128::from(left).cmp(&(floor as i128)).then(fraction)
            }
            (Self::Real(_), Self::Integer(_)) => other.compare(self).reverse(),
        }
    }
}

/// The least and the greatest value.
#[derive(Default)]
struct Bounds {
    /// Makes values comparable; `None` if the type has no order here.
    converter: Option<RowConverter>,
    typed: Option<[(OwnedRow, String); 2]>,
    /// Of a column whose values have types of their own.
    numbers: Option<[(OwnNumber, String); 2]>,
    texts: Option<[String; 2]>,
}

impl Bounds {
    fn new(field: &Field) -> Self {
        let sort_field = || SortField::new(field.data_type().clone());
        let converter = has_order(field).then(|| RowConverter::new(vec![sort_field()]).ok()).flatten();
        Self { converter, ..Self::default() }
    }

    fn add_typed(&mut self, column: &ArrayRef, formatter: &ColumnFormatter<'_>) {
        let Some(converter) = &self.converter else { return };
        let Ok(rows) = converter.convert_columns(std::slice::from_ref(column)) else {
            *self = Self::default();
            return;
        };
        let nulls = column.logical_nulls();
        let is_present = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        let present = || (0..column.len()).filter(is_present);
        let least = present().min_by_key(|row| rows.row(*row));
        let greatest = present().max_by_key(|row| rows.row(*row));
        let value = |row: usize| {
            let text = formatter.format_value(row)?;
            Some((rows.row(row).owned(), shorten(text, VALUE_CHARS_MAX)))
        };
        let (Some(least), Some(greatest)) = (least.and_then(value), greatest.and_then(value)) else { return };
        self.typed = Some(match self.typed.take() {
            None => [least, greatest],
            Some([first, last]) => {
                [if least.0 < first.0 { least } else { first }, if greatest.0 > last.0 { greatest } else { last }]
            }
        });
    }

    /// Adds a value of a column whose values have types of their own, with its type.
    fn add_untyped(&mut self, value: &str, data_type: &DataType) {
        let Some(number) = OwnNumber::parse(value, data_type) else {
            let [first, last] = self.texts.get_or_insert_with(|| [value.to_owned(), value.to_owned()]);
            if value < first.as_str() {
                value.clone_into(first);
            } else if value > last.as_str() {
                value.clone_into(last);
            }
            return;
        };
        let bound = || (number, value.to_owned());
        let [first, last] = self.numbers.get_or_insert_with(|| [bound(), bound()]);
        if number.compare(first.0).is_lt() {
            *first = bound();
        } else if number.compare(last.0).is_gt() {
            *last = bound();
        }
    }

    /// Numbers and texts of one column have no common order.
    fn bound(&self, index: usize) -> Option<String> {
        match (&self.typed, &self.numbers, &self.texts) {
            (Some(typed), None, None) => Some(typed[index].1.clone()),
            (None, Some(numbers), None) => Some(numbers[index].1.clone()),
            (None, None, Some(texts)) => Some(shorten(texts[index].clone(), VALUE_CHARS_MAX)),
            _ => None,
        }
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text(values),
        other => other.is_string(),
    }
}

/// Whether values of `field` have the order of their type in Arrow. A text that stands for another type, such as a number
/// with all its digits, has not.
fn has_order(field: &Field) -> bool {
    let data_type = field.data_type();
    if ExtensionType::from_field(field).is_some() {
        return false;
    }
    if is_text(data_type) {
        let declared = declared_type_name(field).unwrap_or("text").to_ascii_lowercase();
        return ["text", "varchar", "character varying"].iter().any(|name| declared.starts_with(name));
    }
    data_type.is_numeric() || (data_type.is_temporal() && !matches!(data_type, DataType::Interval(_)))
}
