//! What somebody may be after: whether it is listed, whether it can be had, and what is said if not.

use serde_json::{Value, json};

use super::line::{Answer, Line, Transport};

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
    Explored(&'static str),
    /// A tool behind `find_tool` and `call_tool`.
    Found(&'static str),
}

/// How it went.
#[derive(Debug)]
pub(super) struct Tried {
    /// Whether a list names it.
    pub(super) is_listed: bool,
    pub(super) had: Answer,
    /// If it was refused: the answer for one that there is not.
    pub(super) absent: Option<Answer>,
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
    found: Vec<String>,
}

impl Lists {
    /// The lists that every line has at every door.
    pub(super) async fn of_tools(line: &mut Line<'_>) -> Self {
        let tools = listed(line, "tools/list", "tools", "name").await;
        let databases = call(line, "list_databases", json!({"extract": "name"})).await;
        let has_finder = tools.iter().any(|tool| tool == "find_tool");
        let asked = json!({"words": "", "limit": 50});
        let found = if has_finder { call(line, "find_tool", asked).await } else { Answer::Done(Value::Null) };
        let found: Value = serde_json::from_str(&text_of(&found)).unwrap_or_default();
        Self {
            tools,
            databases: serde_json::from_str(&text_of(&databases)).unwrap_or_default(),
            found: names(&found, "tools", "name"),
            ..Self::default()
        }
    }

    /// All of them, which the command line has not.
    pub(super) async fn of_everything(line: &mut Line<'_>) -> Self {
        let of_tools = Self::of_tools(line).await;
        let reference = json!({"type": "ref/prompt", "name": "explore"});
        let explored = match completed(line, reference, "database").await {
            Answer::Done(result) => result["completion"]["values"].clone(),
            Answer::Refused(_) => json!([]),
        };
        Self {
            prompts: listed(line, "prompts/list", "prompts", "name").await,
            resources: listed(line, "resources/list", "resources", "uri").await,
            templates: listed(line, "resources/templates/list", "resourceTemplates", "uriTemplate").await,
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
            Self::Explored(name) => format!("database {name} by explore"),
            Self::Found(name) => format!("tool {name} by call_tool"),
        }
    }

    /// Whether it can be asked for over `transport`. Each question of the command line is a process, so that what is built
    /// in is asked for once there.
    pub(super) fn is_asked_over(&self, transport: Transport) -> bool {
        match self {
            Self::Tool(name, _) if transport == Transport::CommandLine => {
                name.starts_with("orders_") || *name == "node_status"
            }
            Self::Tool(..) | Self::Database(_) => true,
            _ => !transport.has_tools_alone(),
        }
    }

    /// Asks for it, and if that is refused for one that there is not.
    pub(super) async fn tried(&self, line: &mut Line<'_>, lists: &Lists) -> Tried {
        let had = self.asked(line, self.name()).await;
        let absent = match &had {
            Answer::Done(_) => None,
            Answer::Refused(_) => {
                let absent = self.absent_name();
                Some(self.asked(line, &absent).await.instead_of(&absent, self.name()))
            }
        };
        Tried { is_listed: self.is_listed(lists), had, absent }
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
            | Self::Explored(name)
            | Self::Found(name) => name,
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
            Self::Explored(name) => (&lists.explored, name),
            Self::Found(name) => (&lists.found, name),
        };
        list.iter().any(|listed| listed == name)
    }

    async fn asked(&self, line: &mut Line<'_>, name: &str) -> Answer {
        match self {
            Self::Tool(_, arguments) => call(line, name, arguments.clone()).await,
            Self::Resource(..) | Self::Template(..) => line.ask("resources/read", json!({"uri": name})).await,
            Self::Prompt(_, arguments) => line.ask("prompts/get", json!({"name": name, "arguments": arguments})).await,
            Self::PromptCompletion(_) => completed(line, json!({"type": "ref/prompt", "name": name}), "database").await,
            Self::TemplateCompletion(_, variable) => {
                completed(line, json!({"type": "ref/resource", "uri": name}), variable).await
            }
            Self::Database(_) => call(line, "sql", json!({"database": name, "sql": "SELECT 1 AS one"})).await,
            Self::Explored(_) => {
                line.ask("prompts/get", json!({"name": "explore", "arguments": {"database": name}})).await
            }
            Self::Found(_) => call(line, "call_tool", json!({"name": name})).await,
        }
    }
}

pub(super) async fn call(line: &mut Line<'_>, tool: &str, arguments: Value) -> Answer {
    line.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
}

async fn completed(line: &mut Line<'_>, reference: Value, argument: &str) -> Answer {
    line.ask("completion/complete", json!({"ref": reference, "argument": {"name": argument, "value": ""}})).await
}

/// Everything that `method` lists.
async fn listed(line: &mut Line<'_>, method: &str, member: &str, name: &str) -> Vec<String> {
    match line.ask(method, json!({})).await {
        Answer::Done(result) => {
            assert!(result["nextCursor"].is_null(), "a page holds all");
            names(&result, member, name)
        }
        Answer::Refused(refused) => panic!("{method}: {refused}"),
    }
}

fn names(result: &Value, member: &str, name: &str) -> Vec<String> {
    let entries = result[member].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry[name].as_str().map(str::to_owned)).collect()
}

/// The text of a tool's answer; nothing if it was refused.
pub(super) fn text_of(answer: &Answer) -> String {
    match answer {
        Answer::Done(result) => result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
        Answer::Refused(_) => String::new(),
    }
}
