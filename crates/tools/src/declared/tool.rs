//! A declared tool: its parts that do not depend on what it runs.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_core::{Access, CallLimits, Error, ErrorKind};
use tidegate_runtime::{CacheHint, Handler, Tool, ToolAnnotations};

use super::confirmation::Confirmation;
use super::elicited_parameters::ElicitedParameters;
use super::input::{DeclaredInput, object_schema};
use super::{DeclarationProblem, FixedOutput, TextTemplate};
use crate::arguments::UNLISTED_OF_DECLARED;

/// A declared tool. `A` is what it runs: a statement ([`DeclaredSql`](super::DeclaredSql)), a row that is
/// added ([`DeclaredInsert`](super::DeclaredInsert)), or a request ([`HttpDefinition`](super::HttpDefinition)).
#[derive(Debug, Clone, Default)]
pub struct DeclaredTool<A> {
    /// 1 to 128 of letters, digits, `_`, `-`, `.`.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description for the model.
    pub description: String,
    /// Annotations; the defaults follow from the action.
    pub annotations: ToolAnnotations,
    /// What the tool runs.
    pub action: A,
    /// The parameters.
    pub inputs: Vec<DeclaredInput>,
    /// The output options that callers cannot choose.
    pub output: FixedOutput,
    /// The question that the person confirms before the tool runs; `{{name}}` is a parameter, and
    /// `{{changed_rows}}` is the number of rows that the tool would change.
    pub confirm: Option<TextTemplate>,
    /// What a caller must hold.
    pub access: Access,
    /// Limits of its calls.
    pub limits: CallLimits,
    /// How long clients may cache an answer.
    pub cache: Option<CacheHint>,
}

impl<A> DeclaredTool<A> {
    pub(super) fn check_reserved_names(&self, reserved: &[&str]) -> Result<(), Vec<DeclarationProblem>> {
        let conflicts = self.inputs.iter().filter(|input| reserved.contains(&input.name.as_str()));
        let problems: Vec<DeclarationProblem> = conflicts
            .map(|input| {
                let name = &input.name;
                let message =
                    format!("{name} is reserved: every tool with a table has this argument; choose another name");
                DeclarationProblem::new(format!("input.{name}"), Error::new(ErrorKind::InvalidArguments, message))
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Parses the prompts to the person; all errors are reported together. If `writes_rows`, a question may contain the
    /// number of changed rows.
    pub(super) fn elicitation(
        &self,
        writes_rows: bool,
    ) -> Result<(ElicitedParameters, Option<Confirmation>), Vec<DeclarationProblem>> {
        let elicited = ElicitedParameters::from_inputs(&self.inputs);
        let confirm = |question| Confirmation::new(question, &self.inputs, writes_rows);
        let confirmation = self.confirm.clone().map(confirm).transpose();
        match (elicited, confirmation) {
            (Ok(elicited), Ok(confirmation)) => Ok((elicited, confirmation)),
            (elicited, confirmation) => {
                Err([elicited.err(), confirmation.err()].into_iter().flatten().flatten().collect())
            }
        }
    }

    pub(super) fn into_tool(
        self,
        handler: Arc<dyn Handler>,
        annotations: ToolAnnotations,
        arguments: Map<String, Value>,
    ) -> Result<Tool, Vec<DeclarationProblem>> {
        let mut tool = Tool::new(self.name, self.description, handler)
            .with_annotations(annotations)
            .with_access(self.access)
            .with_limits(self.limits);
        tool.title = self.title;
        tool.cache = self.cache;
        tool.meta.extend(self.cache.map(|cache| {
            let milliseconds = u64::try_from(cache.time_to_live.as_millis()).unwrap_or(u64::MAX);
            ("dev.tidegate/cache".to_owned(), json!({"ttlMs": milliseconds, "public": cache.public}))
        }));
        let arguments = self.output.remove_arguments(arguments);
        let tool = tool.with_input_schema(object_schema(&self.inputs, arguments));
        tool.and_then(|tool| tool.with_unlisted_arguments(&UNLISTED_OF_DECLARED)).map_err(|error| {
            vec![DeclarationProblem::new("input", Error::new(ErrorKind::InvalidArguments, error.to_string()))]
        })
    }
}
