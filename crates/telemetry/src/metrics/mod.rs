//! Metrics: what a sample is, which samples a request selects, and how they become the points of an answer.
//!
//! - [`MetricRequest`] is checked against the [`MetricSummary`] of its metric and becomes a [`MetricQuery`].
//! - [`SampleRows`] reads samples from the rows of tables.
//! - [`MetricEvaluator`] receives samples in one pass and returns a [`MetricAnswer`].
//! - [`CatalogBuilder`] collects metrics, and [`MetricListing`] groups them when there are too many.
//! - [`WindowComparison`] ranks the series that changed most between two windows.
//! - [`recorder`] stores the node's own samples, compressed, in memory and in files.
//! - [`exposition`] parses the text format of Prometheus, and [`prometheus`] speaks its HTTP API.
//!
//! Times are nanoseconds since 1970-01-01 UTC. A window contains its start and not its end.

mod aggregation;
mod answer;
mod catalog;
mod cell;
mod comparison;
mod counter;
mod distribution;
mod evaluator;
pub mod exposition;
mod json_labels;
mod label_groups;
mod label_rows;
mod listing;
mod model;
pub mod prometheus;
pub mod recorder;
mod request;
mod sample_rows;
mod selection;
mod time_grid;
mod value_set;

pub use aggregation::{LabelAggregation, TimeAggregation};
pub use answer::{AnsweredSeries, LeftOutSeries, MetricAnswer, SampleCounts};
pub use catalog::{CatalogBuilder, LabelSummary, MetricSummary};
pub use comparison::{ComparedSeries, ComparisonAnswer, ComparisonOptions, ComparisonSeries, WindowComparison};
pub use distribution::{DistributionSummary, kolmogorov_smirnov_distance};
pub use evaluator::{MetricEvaluator, SeriesHandle};
pub use json_labels::JsonLabels;
pub use listing::{CatalogFilter, ListingEntry, MetricGroup, MetricListing};
pub use model::{Labels, MetricKind, Sample, TimeWindow, format_time};
pub use request::{MetricQuery, MetricRequest, POINTS_MAX, SERIES_ANSWERED_MAX, window_violation};
pub use sample_rows::{SampleColumns, SampleRows, SampleSink};
pub use selection::{LabelCondition, LabelPattern, LabelSelection};
pub use time_grid::TimeGrid;
pub use value_set::ValueSet;
