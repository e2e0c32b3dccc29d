//! Prompts: message templates that a person selects.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Access, CallLimits, Icon};

use crate::handler::Completer;
use crate::handler::Handler;

/// An argument of a prompt; its value is always text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description.
    pub description: Option<String>,
    /// Whether a value is required.
    pub required: bool,
}

/// A prompt of the registry.
#[derive(Clone)]
pub struct Prompt {
    /// The name.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// The purpose.
    pub description: Option<String>,
    /// The arguments.
    pub arguments: Vec<PromptArgument>,
    /// Icons.
    pub icons: Vec<Icon>,
    /// Further members of `_meta`.
    pub meta: Map<String, Value>,
    /// What it requires of a caller.
    pub access: Access,
    /// The limits of its calls.
    pub limits: CallLimits,
    /// The handler.
    pub handler: Arc<dyn Handler>,
    /// Completes the arguments.
    pub completer: Option<Arc<dyn Completer>>,
}

impl Prompt {
    /// A prompt without arguments, open to all callers. Set the public fields for more.
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

tidegate_core::impl_debug!(Prompt { name });
