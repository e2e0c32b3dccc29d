//! Series as rows of `prometheus_samples` and `prometheus_exemplars`.

use std::borrow::Cow;

use chrono::DateTime;

use super::RemoteWriteRows;
use super::messages::{MetadataV2, Sample};
use crate::formats::error::{FormatError, RecordError, RejectedRecords, cut_text};
use crate::formats::limits::TelemetryLimits;
use crate::formats::tables::{Cell, RowBudget, TableBatches, TableRows, TelemetryTable};
use crate::formats::text::write_string;

/// The label with the name of the metric.
const NAME_LABEL: &str = "__name__";
/// The float that marks the end of a series, by its bits.
const STALE_MARKER: u64 = 0x7ff0_0000_0000_0002;
/// The names of the types of metrics, by their numbers. The first means that the type is unknown.
const METRIC_TYPES: &[&str] = &["", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset"];
/// The longest name that a reason contains, in bytes.
const REPORTED_NAME_BYTES_MAX: usize = 100;

type Labels<'a> = Vec<(&'a str, &'a str)>;

/// The texts of a request of version 2.0, which its fields refer to.
pub(super) struct Symbols<'a>(&'a [String]);

impl<'a> Symbols<'a> {
    /// # Errors
    /// `Malformed` if the first symbol is not empty: what refers to it would get a text that the sender did not mean.
    pub(super) fn new(symbols: &'a [String]) -> Result<Self, FormatError> {
        match symbols.first() {
            None => Ok(Self(symbols)),
            Some(first) if first.is_empty() => Ok(Self(symbols)),
            Some(_) => Err(FormatError::Malformed("the first symbol is not the empty text".into())),
        }
    }

    fn get(&self, reference: u32) -> Result<&'a str, String> {
        let index = usize::try_from(reference).unwrap_or(usize::MAX);
        match self.0.get(index) {
            Some(text) => Ok(text),
            // The sender may omit the symbols if nothing but the empty text is referred to.
            None if reference == 0 => Ok(""),
            None => Err(format!("it refers to symbol {reference}; there are {}", self.0.len())),
        }
    }

    /// Labels from the positions of their names and values.
    pub(super) fn pairs(&self, references: &[u32]) -> Result<Labels<'a>, String> {
        let (pairs, []) = references.as_chunks::<2>() else {
            return Err("a label has a name and no value".to_owned());
        };
        pairs.iter().map(|[name, value]| Ok((self.get(*name)?, self.get(*value)?))).collect()
    }

    pub(super) fn metadata(&self, metadata: MetadataV2) -> Result<SampleMetadata<'a>, String> {
        let number = metadata.metric_type;
        let name = usize::try_from(number).ok().and_then(|index| METRIC_TYPES.get(index));
        Ok(SampleMetadata {
            metric_type: name.map_or_else(|| Cow::Owned(number.to_string()), |name| Cow::Borrowed(*name)),
            unit: self.get(metadata.unit_ref)?,
            help: self.get(metadata.help_ref)?,
        })
    }
}

/// What version 2.0 describes a series with.
#[derive(Default)]
pub(super) struct SampleMetadata<'a> {
    metric_type: Cow<'a, str>,
    unit: &'a str,
    help: &'a str,
}

/// The labels of a series.
pub(super) struct SeriesLabels<'a> {
    metric: &'a str,
    labels: String,
}

/// A series, or the reason why its records are rejected, with its position in the request.
pub(super) struct SharedSeries<'a> {
    index: usize,
    columns: Result<SeriesLabels<'a>, String>,
}

pub(super) struct SeriesDecoder<'a> {
    limits: &'a TelemetryLimits,
    budget: RowBudget,
    rejected: RejectedRecords,
    samples: TableRows,
    exemplars: TableRows,
}

impl<'a> SeriesDecoder<'a> {
    pub(super) fn new(limits: &'a TelemetryLimits) -> Self {
        Self {
            limits,
            budget: RowBudget::new(limits),
            rejected: RejectedRecords::default(),
            samples: TableRows::new(TelemetryTable::PrometheusSamples),
            exemplars: TableRows::new(TelemetryTable::PrometheusExemplars),
        }
    }

    pub(super) fn series<'b>(&self, index: usize, labels: Result<Labels<'b>, String>) -> SharedSeries<'b> {
        SharedSeries { index, columns: labels.and_then(|labels| series_labels(labels, self.limits)) }
    }

    pub(super) fn samples(
        &mut self,
        series: &SharedSeries<'_>,
        samples: impl Iterator<Item = Sample>,
        metadata: SampleMetadata<'_>,
    ) -> Result<(), FormatError> {
        for sample in samples {
            self.budget.take_record()?;
            let pushed = match &series.columns {
                Ok(columns) => push_sample(&mut self.samples, &mut self.budget, columns, sample, &metadata),
                Err(reason) => RecordError::rejected(reason),
            };
            self.count(series, "sample", pushed)?;
        }
        Ok(())
    }

    /// Rejects native histograms.
    pub(super) fn histograms(&mut self, series: &SharedSeries<'_>, count: usize) -> Result<(), FormatError> {
        for _ in 0..count {
            self.budget.take_record()?;
            self.count(series, "histogram", RecordError::rejected("native histograms are not stored"))?;
        }
        Ok(())
    }

    pub(super) fn exemplar(
        &mut self,
        series: &SharedSeries<'_>,
        labels: Result<Labels<'_>, String>,
        value: f64,
        timestamp: i64,
    ) -> Result<(), FormatError> {
        self.budget.take_record()?;
        let push = |table: &mut TableRows, budget: &mut RowBudget| {
            let columns = series.columns.as_ref().map_err(|reason| RecordError::Rejected(reason.clone()))?;
            let labels = labels.and_then(|labels| sorted_labels(labels, self.limits));
            let labels = labels_json(&labels.map_err(RecordError::Rejected)?);
            let time = Some(checked_time(timestamp)?).filter(|time| *time != 0);
            let cells = [
                Cell::from_option(time, Cell::Time),
                Cell::Text(columns.metric),
                Cell::Text(&columns.labels),
                Cell::Text(&labels),
                Cell::Double(value),
            ];
            table.push(budget, &cells)
        };
        let pushed = push(&mut self.exemplars, &mut self.budget);
        self.count(series, "exemplar", pushed)
    }

    /// Counts a record without a row as rejected.
    fn count(
        &mut self,
        series: &SharedSeries<'_>,
        record: &str,
        pushed: Result<(), RecordError>,
    ) -> Result<(), FormatError> {
        match pushed {
            Ok(()) => Ok(()),
            Err(RecordError::Refused(error)) => Err(error),
            Err(RecordError::Rejected(reason)) => {
                self.rejected.add(1, || match &series.columns {
                    Ok(columns) => {
                        let metric = cut_text(columns.metric, REPORTED_NAME_BYTES_MAX);
                        format!("series {} ({metric:?}), {record}: {reason}", series.index)
                    }
                    Err(_) => format!("series {}, {record}: {reason}", series.index),
                });
                Ok(())
            }
        }
    }

    pub(super) fn finish(self, ignored_metadata: usize) -> Result<RemoteWriteRows, FormatError> {
        let batches = [self.samples.finish()?, self.exemplars.finish()?];
        Ok(RemoteWriteRows {
            tables: TableBatches { batches: batches.into_iter().flatten().collect(), rejected: self.rejected },
            ignored_metadata: ignored_metadata as u64,
        })
    }
}

fn push_sample(
    table: &mut TableRows,
    budget: &mut RowBudget,
    series: &SeriesLabels<'_>,
    sample: Sample,
    metadata: &SampleMetadata<'_>,
) -> Result<(), RecordError> {
    let start_time = Some(checked_time(sample.start_timestamp)?).filter(|time| *time != 0);
    let value = Some(sample.value).filter(|value| value.to_bits() != STALE_MARKER);
    let cells = [
        Cell::Time(checked_time(sample.timestamp)?),
        Cell::Text(series.metric),
        Cell::Text(&series.labels),
        Cell::from_option(value, Cell::Double),
        Cell::from_option(start_time, Cell::Time),
        Cell::non_empty(&metadata.metric_type),
        Cell::non_empty(metadata.unit),
        Cell::non_empty(metadata.help),
    ];
    table.push(budget, &cells)
}

/// A time that calendars have: others could be stored, and not be read.
fn checked_time(milliseconds: i64) -> Result<i64, RecordError> {
    if DateTime::from_timestamp_millis(milliseconds).is_none() {
        return RecordError::rejected(format!("its time of {milliseconds} ms is out of range"));
    }
    Ok(milliseconds)
}

fn series_labels<'a>(labels: Labels<'a>, limits: &TelemetryLimits) -> Result<SeriesLabels<'a>, String> {
    let mut labels = sorted_labels(labels, limits)?;
    let Some(position) = labels.iter().position(|(name, _)| *name == NAME_LABEL) else {
        return Err(format!("it has no label {NAME_LABEL}, the name of the metric"));
    };
    let (_, metric) = labels.remove(position);
    Ok(SeriesLabels { metric, labels: labels_json(&labels) })
}

fn sorted_labels<'a>(mut labels: Labels<'a>, limits: &TelemetryLimits) -> Result<Labels<'a>, String> {
    let most = limits.attributes_max;
    if labels.len() > most {
        return Err(format!("it has {} labels; at most {most} are accepted", labels.len()));
    }
    // Symbols of a request are shared, so that few bytes of it can be long labels.
    let (bytes, most) =
        (labels.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>(), limits.record_bytes_max);
    if bytes > most {
        return Err(format!("its labels have {bytes} bytes; at most {most} are accepted"));
    }
    labels.sort_unstable();
    for (name, value) in &labels {
        if name.is_empty() {
            return Err("a label has no name".to_owned());
        }
        if value.is_empty() {
            return Err(format!("the label {:?} has no value", cut_text(name, REPORTED_NAME_BYTES_MAX)));
        }
    }
    if let Some([(twice, _), _]) = labels.array_windows().find(|[(one, _), (next, _)]| one == next) {
        return Err(format!("the label {:?} occurs twice", cut_text(twice, REPORTED_NAME_BYTES_MAX)));
    }
    Ok(labels)
}

fn labels_json(labels: &[(&str, &str)]) -> String {
    let mut output = String::from("{");
    for (index, (name, value)) in labels.iter().enumerate() {
        if index > 0 {
            output.push(',');
        }
        write_string(&mut output, name);
        output.push(':');
        write_string(&mut output, value);
    }
    output.push('}');
    output
}
