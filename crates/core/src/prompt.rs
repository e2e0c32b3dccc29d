//! Prompts: message templates that a person picks.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::access::Access;
use crate::completion::Completer;
use crate::content::Icon;
use crate::handler::Handler;
use crate::limits::CallLimits;

/// An argument of a prompt; its value is always text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Whether it must be given.
    pub required: bool,
}

/// A prompt of the registry.
#[derive(Clone)]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its arguments.
    pub arguments: Vec<PromptArgument>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// Further facts for clients that know them.
    pub meta: Map<String, Value>,
    /// What a caller must hold.
    pub access: Access,
    /// Bounds of its calls.
    pub limits: CallLimits,
    /// The code.
    pub handler: Arc<dyn Handler>,
    /// Completes its arguments.
    pub completer: Option<Arc<dyn Completer>>,
}

impl Prompt {
    /// A prompt without arguments, open to everybody; set the public fields for more.
    pub fn new(name: impl Into<String>, description: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: Some(description.into()),
            arguments: Vec::new(),
            icons: Vec::new(),
            meta: Map::new(),
            access: Access::default(),
            limits: CallLimits::default(),
            handler,
            completer: None,
        }
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.name).finish_non_exhaustive()
    }
}
