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
mod evaluator;
pub mod exposition;
mod model;
pub mod prometheus;
pub mod recorder;
mod request;
mod sample_rows;
mod selection;
mod time_grid;

pub use self::aggregation::{LabelAggregation, TimeAggregation};
pub use self::answer::{AnsweredSeries, LeftOutSeries, MetricAnswer, SampleCounts};
pub use self::catalog::{
    CatalogBuilder, CatalogFilter, LabelSummary, ListingEntry, MetricGroup, MetricListing, MetricSummary,
};
pub use self::cell::ValueSet;
pub use self::comparison::{
    ComparedSeries, ComparisonAnswer, ComparisonOptions, ComparisonSeries, DistributionSummary, WindowComparison,
    kolmogorov_smirnov_distance,
};
pub use self::evaluator::{MetricEvaluator, SeriesHandle};
pub use self::model::{Labels, MetricKind, Sample, TimeWindow, format_time};
pub use self::request::{MetricQuery, MetricRequest, POINTS_MAX, SERIES_ANSWERED_MAX, window_violation};
pub use self::sample_rows::{JsonLabels, SampleColumns, SampleRows, SampleSink};
pub use self::selection::{LabelCondition, LabelPattern, LabelSelection};
pub use self::time_grid::TimeGrid;
