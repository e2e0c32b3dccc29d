//! Declared tools that call a built-in one, with arguments that the declaration fixes, and others that it has as
//! defaults.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Access, CalledEntry, Error, ErrorKind, JsonSchema, JsonSchemaError, Violation};
use tidegate_runtime::{Tool, ToolAnnotations, ToolPreset};

use super::{DeclarationProblem, DeclaredTool};

/// What is wrong with `cache` in the declaration of a tool that writes, whose answers no client may cache.
pub const CACHE_OF_WRITER: &str = "has no effect on a tool that writes; remove it";

/// The arguments of a built-in tool that a declaration has.
#[derive(Debug, Clone, Default)]
pub struct DeclaredPreset {
    /// The arguments that callers cannot choose.
    pub arguments: Map<String, Value>,
    /// The arguments that apply to calls without them.
    pub defaults: Map<String, Value>,
}

impl DeclaredTool<DeclaredPreset> {
    /// Builds the tool, which calls `built_in`. Its arguments are those of `built_in` without the fixed ones, and callers
    /// need the rights to both.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub fn prepare(self, built_in: &Tool) -> Result<Tool, Vec<DeclarationProblem>> {
        let hints = built_in.annotations.clone().unwrap_or_default();
        let has_vain_cache = self.cache.is_some() && hints.read_only == Some(false);
        let vain_cache = has_vain_cache
            .then(|| DeclarationProblem::new("cache", Error::new(ErrorKind::InvalidArguments, CACHE_OF_WRITER)));
        let preset = match (self.action.check(built_in), vain_cache) {
            (Ok(preset), None) => preset,
            (checked, vain_cache) => return Err(checked.err().into_iter().flatten().chain(vain_cache).collect()),
        };
        let narrow = |schema: &JsonSchema| JsonSchema::object(preset.narrow(schema.json())).map(Arc::new);
        let input_schema = narrow(&built_in.input_schema).map_err(at_tool)?;
        let full_schema = built_in.full_schema.as_deref().map(narrow).transpose().map_err(at_tool)?;
        let annotations = ToolAnnotations {
            read_only: self.annotations.read_only.or(hints.read_only),
            destructive: self.annotations.destructive.or(hints.destructive),
            idempotent: self.annotations.idempotent.or(hints.idempotent),
            open_world: self.annotations.open_world.or(hints.open_world),
        };
        let called = CalledEntry { name: built_in.name.clone(), access: built_in.access.clone() };
        let access = Access {
            reads_caller_databases: built_in.access.reads_caller_databases,
            calls: Some(Arc::new(called)),
            ..self.access
        };
        let DeclaredPreset { arguments, defaults } = preset;
        Ok(Tool {
            name: self.name,
            title: self.title,
            description: Some(self.description),
            input_schema,
            full_schema,
            request_body: None,
            annotations: Some(annotations),
            access,
            limits: self.limits,
            cache: self.cache.or(built_in.cache),
            preset: Some(Arc::new(ToolPreset { tool: built_in.name.clone(), arguments, defaults })),
            ..built_in.clone()
        })
    }
}

impl DeclaredPreset {
    /// The arguments as the schema of `built_in` has them, if it accepts all.
    fn check(self, built_in: &Tool) -> Result<Self, Vec<DeclarationProblem>> {
        let Self { arguments, defaults } = self;
        let problem =
            |at: String, message: &str| DeclarationProblem::new(at, Error::new(ErrorKind::InvalidArguments, message));
        let twice = defaults.keys().filter(|name| arguments.contains_key(*name)).map(|name| {
            problem(format!("defaults.{name}"), "is in arguments too, whose values callers cannot change; remove one")
        });
        let lists = [("arguments", &arguments), ("defaults", &defaults)];
        let null = lists.iter().flat_map(|(list, values)| {
            let names = values.iter().filter(|(_, value)| value.is_null());
            names.map(move |(name, _)| problem(format!("{list}.{name}"), "is null, which is no value; remove it"))
        });
        let mut problems: Vec<DeclarationProblem> = twice.chain(null).collect();
        let mut all = Value::Object(defaults.iter().chain(&arguments).map(|(k, v)| (k.clone(), v.clone())).collect());
        // Callers add the arguments that are required.
        let mut schema = built_in.call_schema().json().clone();
        if let Some(members) = schema.as_object_mut() {
            members.shift_remove("required");
        }
        let schema = JsonSchema::object(schema).map_err(at_tool)?;
        let at_value = |Violation { path, message }: Violation| {
            let name = path.split(['.', '[']).next().unwrap_or_default();
            let list = if defaults.contains_key(name) { "defaults" } else { "arguments" };
            problem(format!("{list}.{path}").trim_end_matches('.').to_owned(), &message)
        };
        problems.extend(schema.coerce_and_check(&mut all).err().into_iter().flatten().map(at_value));
        // A caller could choose a fixed argument that is left out.
        let is_left_out = |name: &str, value: &Value| !value.is_null() && all.get(name).is_none();
        for (list, values) in lists {
            for (name, _) in values.iter().filter(|(name, value)| is_left_out(name, value)) {
                problems.push(problem(format!("{list}.{name}"), "counts as absent in a call; remove it"));
            }
        }
        match all {
            Value::Object(checked) if problems.is_empty() => {
                let (defaults, arguments) = checked.into_iter().partition(|(name, _)| defaults.contains_key(name));
                Ok(Self { arguments, defaults })
            }
            _ => Err(problems),
        }
    }

    /// `schema` without the fixed arguments, and with the defaults.
    fn narrow(&self, schema: &Value) -> Value {
        let mut schema = schema.clone();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|name, _| !self.arguments.contains_key(name));
            for (name, value) in &self.defaults {
                if let Some(Value::Object(property)) = properties.get_mut(name) {
                    property.insert("default".to_owned(), value.clone());
                }
            }
        }
        let is_preset = |name: &Value| {
            name.as_str().is_some_and(|name| self.arguments.contains_key(name) || self.defaults.contains_key(name))
        };
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| !is_preset(name));
        }
        schema
    }
}

fn at_tool(error: JsonSchemaError) -> Vec<DeclarationProblem> {
    vec![DeclarationProblem::new("tool", Error::new(ErrorKind::InvalidArguments, error.to_string()))]
}
