//! Output options that a declaration fixes. Callers have no arguments for them.

use arrow::datatypes::SchemaRef;
use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind, Format};
use tidegate_query::{AnswerMode, Delivery, check_extract};

use super::DeclarationProblem;
use crate::arguments::OutputArguments;

/// Output options that a declaration fixes; `None` leaves the option to the caller.
#[derive(Debug, Clone, Default)]
pub struct FixedOutput {
    /// The format of the answer.
    pub format: Option<Format>,
    /// The column whose distinct values are returned instead of rows.
    pub extract: Option<String>,
    /// When rows are sent.
    pub mode: Option<AnswerMode>,
    /// How the rows are delivered.
    pub delivery: Option<Delivery>,
}

impl FixedOutput {
    pub(super) fn remove_arguments(&self, mut arguments: Map<String, Value>) -> Map<String, Value> {
        let fixed = [
            ("format", self.format.is_some()),
            ("extract", self.extract.is_some()),
            ("delivery", self.delivery.is_some()),
        ];
        fixed.iter().filter(|(_, is_fixed)| *is_fixed).for_each(|(name, _)| drop(arguments.shift_remove(*name)));
        arguments
    }

    pub(super) fn apply(&self, output: &mut OutputArguments) {
        if let Some(format) = self.format {
            output.format = Some(format.name().to_owned());
        }
        if let Some(extract) = &self.extract {
            output.extract = Some(extract.clone());
        }
    }

    /// Checks that the extracted column is among `columns`, if these are known.
    pub(super) fn check_columns(&self, columns: Option<&SchemaRef>) -> Result<(), Vec<DeclarationProblem>> {
        let (Some(extract), Some(columns)) = (&self.extract, columns) else { return Ok(()) };
        check_extract(extract, columns).map_err(|error| vec![DeclarationProblem::new("extract", error)])
    }

    /// A problem for each option of answers of any length, which `kind` of tool does not have.
    pub(super) fn reject_query_options(&self, kind: &str) -> Result<(), Vec<DeclarationProblem>> {
        reject(&[("mode", self.mode.is_some()), ("delivery", self.delivery.is_some())], kind)
    }

    /// A problem for each option, because `kind` of tool answers without rows.
    pub(super) fn reject_row_options(&self, kind: &str) -> Result<(), Vec<DeclarationProblem>> {
        reject(&[("format", self.format.is_some()), ("extract", self.extract.is_some())], kind)?;
        self.reject_query_options(kind)
    }
}

fn reject(options: &[(&str, bool)], kind: &str) -> Result<(), Vec<DeclarationProblem>> {
    let fixed = options.iter().filter(|(_, is_fixed)| *is_fixed);
    let problems: Vec<DeclarationProblem> = fixed
        .map(|(name, _)| {
            let error = Error::new(ErrorKind::InvalidArguments, format!("has no effect on {kind}; remove it"));
            DeclarationProblem::new(*name, error)
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
