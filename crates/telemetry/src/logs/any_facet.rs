//! The counter of one facet: of single values, or of ranges of numbers.

use super::facet::FacetCounter;
use super::number_ranges::NumberRangeCounter;
use super::request::FacetRequest;
use super::scan::FacetAnswer;
use super::value::is_missing;

#[derive(Debug)]
pub(super) enum AnyFacetCounter {
    Values(FacetCounter),
    Ranges(NumberRangeCounter),
}

impl AnyFacetCounter {
    pub(super) fn add(&mut self, value: &str, rows: u64) {
        match self {
            Self::Values(counter) => counter.add(value, rows),
            Self::Ranges(counter) if is_missing(value) => counter.add_missing(rows),
            Self::Ranges(counter) => counter.add(value, rows),
        }
    }

    pub(super) fn finish(self, request: FacetRequest) -> FacetAnswer {
        match self {
            Self::Values(counter) => {
                FacetAnswer::Values(counter.finish(request.field, request.values_max, request.scale))
            }
            Self::Ranges(counter) => FacetAnswer::Ranges(counter.finish(request.field, request.ranges.unwrap_or(1))),
        }
    }
}
