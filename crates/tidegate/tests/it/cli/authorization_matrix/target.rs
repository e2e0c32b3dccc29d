//! What somebody may be after: whether it is listed, whether it can be had, and what is said if not.

use serde_json::{Value, json};

use super::client_connection::{Attempt, ClientConnection, Transport};

/// Something that a role reaches or does not.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// A tool and arguments that it takes.
    Tool(&'static str, Value),
    /// The URI of a resource that is listed, and one like it that nothing has.
    Resource(&'static str, &'static str),
    /// A template, a URI that it answers for, and one like it that nothing has.
    Template(&'static str, &'static str, &'static str),
    /// A prompt and arguments that it takes.
    Prompt(&'static str, Value),
    /// Values of the first argument of a prompt.
    PromptCompletion(&'static str),
    /// Values of a variable of a template.
    TemplateCompletion(&'static str, &'static str),
    /// A database, as the tools that take its name see it.
    Database(&'static str),
    /// A database, as completion knows it and the prompt `explore` shows it.
    ExploredDatabase(&'static str),
    /// A tool behind `find_tool` and `call_tool`.
    DiscoveredTool(&'static str),
}

/// How it went.
#[derive(Debug)]
pub(super) struct AttemptOutcome {
    /// Whether a list names it.
    pub(super) is_listed: bool,
    pub(super) answer: Attempt,
    /// If it was refused: the answer for one that there is not.
    pub(super) absent_answer: Option<Attempt>,
}

/// Everything that somebody finds in lists.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) tools: Vec<String>,
    pub(super) prompts: Vec<String>,
    resources: Vec<String>,
    pub(super) templates: Vec<String>,
    /// As `list_databases` has them.
    databases: Vec<String>,
    /// As completion has them.
    explored: Vec<String>,
    /// As `find_tool` has them.
    discovered_tools: Vec<String>,
}

impl Lists {
    /// The lists of every client at every endpoint.
    pub(super) async fn list_tools(line: &mut ClientConnection<'_>) -> Self {
        let tools = list_names(line, "tools/list", "tools", "name").await;
        let databases = call(line, "list_databases", json!({"extract": "name"})).await;
        let has_finder = tools.iter().any(|tool| tool == "find_tool");
        let requested = json!({"words": "", "limit": 50});
        let found = if has_finder { call(line, "find_tool", requested).await } else { Attempt::Done(Value::Null) };
        let found: Value = serde_json::from_str(&answer_text(&found)).unwrap_or_default();
        Self {
            tools,
            databases: serde_json::from_str(&answer_text(&databases)).unwrap_or_default(),
            discovered_tools: names(&found, "tools", "name"),
            ..Self::default()
        }
    }

    /// All of them, which the command line has not.
    pub(super) async fn list_all(line: &mut ClientConnection<'_>) -> Self {
        let of_tools = Self::list_tools(line).await;
        let reference = json!({"type": "ref/prompt", "name": "explore"});
        let explored = match complete(line, reference, "database").await {
            Attempt::Done(result) => result["completion"]["values"].clone(),
            Attempt::Refused(_) => json!([]),
        };
        Self {
            prompts: list_names(line, "prompts/list", "prompts", "name").await,
            resources: list_names(line, "resources/list", "resources", "uri").await,
            templates: list_names(line, "resources/templates/list", "resourceTemplates", "uriTemplate").await,
            explored: serde_json::from_value(explored).unwrap(),
            ..of_tools
        }
    }
}

impl Target {
    /// What it is called in the matrix.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Tool(name, _) => format!("tool {name}"),
            Self::Resource(uri, _) => format!("resource {uri}"),
            Self::Template(template, ..) => format!("template {template}"),
            Self::Prompt(name, _) => format!("prompt {name}"),
            Self::PromptCompletion(name) => format!("completion of prompt {name}"),
            Self::TemplateCompletion(template, _) => format!("completion of {template}"),
            Self::Database(name) => format!("database {name} by sql"),
            Self::ExploredDatabase(name) => format!("database {name} by explore"),
            Self::DiscoveredTool(name) => format!("tool {name} by call_tool"),
        }
    }

    /// Whether it can be asked for over `transport`. Each question of the command line is a process, so that what is built
    /// in is asked for once there.
    pub(super) fn supports(&self, transport: Transport) -> bool {
        match self {
            Self::Tool(name, _) if transport == Transport::CommandLine => {
                name.starts_with("orders_") || *name == "node_status"
            }
            Self::Tool(..) | Self::Database(_) => true,
            _ => !transport.supports_only_tools(),
        }
    }

    /// Asks for it, and if that is refused for one that there is not.
    pub(super) async fn attempt(&self, line: &mut ClientConnection<'_>, lists: &Lists) -> AttemptOutcome {
        let had = self.request(line, self.name()).await;
        let absent = match &had {
            Attempt::Done(_) => None,
            Attempt::Refused(_) => {
                let absent = self.absent_name();
                Some(self.request(line, &absent).await.with_name_of(&absent, self.name()))
            }
        };
        AttemptOutcome { is_listed: self.is_listed(lists), answer: had, absent_answer: absent }
    }

    /// The name or URI that is asked for.
    fn name(&self) -> &'static str {
        match self {
            Self::Tool(name, _)
            | Self::Resource(name, _)
            | Self::Template(_, name, _)
            | Self::Prompt(name, _)
            | Self::PromptCompletion(name)
            | Self::TemplateCompletion(name, _)
            | Self::Database(name)
            | Self::ExploredDatabase(name)
            | Self::DiscoveredTool(name) => name,
        }
    }

    /// A name of the same length that nothing has.
    fn absent_name(&self) -> String {
        match self {
            Self::Resource(_, absent) | Self::Template(_, _, absent) => (*absent).to_owned(),
            _ => {
                let name = self.name();
                format!("{}~", &name[..name.len() - 1])
            }
        }
    }

    fn is_listed(&self, lists: &Lists) -> bool {
        let (list, name) = match self {
            Self::Tool(name, _) => (&lists.tools, name),
            Self::Resource(uri, _) => (&lists.resources, uri),
            Self::Template(template, ..) | Self::TemplateCompletion(template, _) => (&lists.templates, template),
            Self::Prompt(name, _) | Self::PromptCompletion(name) => (&lists.prompts, name),
            Self::Database(name) => (&lists.databases, name),
            Self::ExploredDatabase(name) => (&lists.explored, name),
            Self::DiscoveredTool(name) => (&lists.discovered_tools, name),
        };
        list.iter().any(|listed| listed == name)
    }

    async fn request(&self, line: &mut ClientConnection<'_>, name: &str) -> Attempt {
        match self {
            Self::Tool(_, arguments) => call(line, name, arguments.clone()).await,
            Self::Resource(..) | Self::Template(..) => line.request("resources/read", json!({"uri": name})).await,
            Self::Prompt(_, arguments) => {
                line.request("prompts/get", json!({"name": name, "arguments": arguments})).await
            }
            Self::PromptCompletion(_) => complete(line, json!({"type": "ref/prompt", "name": name}), "database").await,
            Self::TemplateCompletion(_, variable) => {
                complete(line, json!({"type": "ref/resource", "uri": name}), variable).await
            }
            Self::Database(_) => call(line, "sql", json!({"database": name, "sql": "SELECT 1 AS one"})).await,
            Self::ExploredDatabase(_) => {
                line.request("prompts/get", json!({"name": "explore", "arguments": {"database": name}})).await
            }
            Self::DiscoveredTool(_) => call(line, "call_tool", json!({"name": name})).await,
        }
    }
}

pub(super) async fn call(line: &mut ClientConnection<'_>, tool: &str, arguments: Value) -> Attempt {
    line.request("tools/call", json!({"name": tool, "arguments": arguments})).await
}

async fn complete(line: &mut ClientConnection<'_>, reference: Value, argument: &str) -> Attempt {
    line.request("completion/complete", json!({"ref": reference, "argument": {"name": argument, "value": ""}})).await
}

/// Everything that `method` lists.
pub(super) async fn list_names(line: &mut ClientConnection<'_>, method: &str, member: &str, name: &str) -> Vec<String> {
    match line.request(method, json!({})).await {
        Attempt::Done(result) => {
            assert!(result["nextCursor"].is_null(), "a page holds all");
            names(&result, member, name)
        }
        Attempt::Refused(refused) => panic!("{method}: {refused}"),
    }
}

fn names(result: &Value, member: &str, name: &str) -> Vec<String> {
    let entries = result[member].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry[name].as_str().map(str::to_owned)).collect()
}

/// The text of a tool's answer; nothing if it was refused.
pub(super) fn answer_text(answer: &Attempt) -> String {
    match answer {
        Attempt::Done(result) => result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
        Attempt::Refused(_) => String::new(),
    }
}
