//! A tool that calls an HTTP API.

use serde_json::{Map, Value, json};
use tidegate_tools::declared::{AllowedHosts, HttpArgument, HttpDefinition, HttpRequestTemplate};

use super::super::yaml_tree::YamlNode;
use super::draft::ConfigDraft;
use super::parameters::Parameters;
use super::sql_tool::description;
use super::toolbox::Entry;
use super::toolbox_tool::convert_template;

/// The tool of `entry`, which calls the API of `source`.
///
/// # Errors
/// Why the tool must be left out.
pub(super) fn convert(
    entry: &Entry<'_>,
    name: &str,
    source: &YamlNode,
    draft: &mut ConfigDraft,
) -> Result<Map<String, Value>, String> {
    let node = entry.node;
    let mut parameters = Parameters::default();
    for list in ["pathParams", "queryParams", "bodyParams", "headerParams"] {
        parameters.add_all(items(node, list), &entry.subject(), draft)?;
    }
    if parameters.iter().any(|parameter| parameter.input.is_none()) {
        return Err("a value from the caller's token cannot be part of a request".to_owned());
    }
    let base = source.text_of("baseUrl").ok_or("its source has no baseUrl")?;
    let path = node.text_of("path").unwrap_or_default();
    let template = |text: &str| {
        let converted = convert_template(text, |old| Some(parameters.find(old)?.name.clone()));
        converted.ok_or_else(|| format!("{text:?} has template actions other than {{{{.name}}}}"))
    };
    let mut http = Map::new();
    http.insert("method".to_owned(), node.text_of("method").unwrap_or_else(|| "GET".to_owned()).into());
    http.insert("url".to_owned(), template(&join_url(&base, &path))?.into());
    let named = |list: &str| -> Vec<(String, Value)> {
        let old_names = items(node, list).iter().filter_map(|parameter| parameter.text_of("name"));
        old_names
            .filter_map(|old| Some((old.clone(), json!(format!("{{{{{}}}}}", parameters.find(&old)?.name)))))
            .collect()
    };
    let mut query = fixed_texts(source.get("queryParams"));
    query.extend(named("queryParams"));
    let mut headers = fixed_texts(source.get("headers"));
    headers.extend(fixed_texts(node.get("headers")));
    headers.extend(named("headerParams"));
    for (key, members) in [("query", query), ("headers", headers)] {
        if !members.is_empty() {
            http.insert(key.to_owned(), Value::Object(members));
        }
    }
    if let Some(body) = node.text_of("requestBody").filter(|body| !body.trim().is_empty()) {
        http.insert("body".to_owned(), convert_body(&body, &parameters)?);
    }
    let timeout = source.text_of("timeout").unwrap_or_else(|| "30s".to_owned());
    if timeout.trim_end_matches(['m', 's', 'h']).chars().all(|character| character.is_ascii_digit()) {
        http.insert("timeout".to_owned(), timeout.into());
    } else {
        draft.leave_out(source.line(), &entry.subject(), format!("the timeout {timeout}; write it with one unit"));
    }
    let inputs = parameters.inputs(|_| true);
    let host = check_request(&http, &base, &inputs)?;
    draft.allow_host(&host);
    let mut tool = Map::new();
    tool.insert("name".to_owned(), name.into());
    tool.insert("description".to_owned(), description(node).into());
    tool.insert("http".to_owned(), Value::Object(http));
    if !inputs.is_empty() {
        tool.insert("input".to_owned(), Value::Object(inputs));
    }
    Ok(tool)
}

fn items<'a>(node: &'a YamlNode, list: &str) -> &'a [YamlNode] {
    node.get(list).map(YamlNode::items).unwrap_or_default()
}

/// The members of a map as texts that contain no parameters.
fn fixed_texts(map: Option<&YamlNode>) -> Map<String, Value> {
    let members = map.map(YamlNode::members).unwrap_or_default().iter();
    members.filter_map(|(name, _, value)| Some((name.clone(), Value::from(value.text()?)))).collect()
}

fn join_url(base: &str, path: &str) -> String {
    if path.is_empty() {
        return base.to_owned();
    }
    format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/'))
}

/// A JSON body. A parameter outside of quotation marks keeps its type: `{"age": {{.age}}}` becomes `{"age": "{{age}}"}`.
fn convert_body(body: &str, parameters: &Parameters) -> Result<Value, String> {
    let (mut converted, mut rest) = (String::new(), body);
    let mut is_in_text = false;
    while let Some((before, behind)) = rest.split_once("{{") {
        let mut characters = before.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' if is_in_text => drop(characters.next()),
                '"' => is_in_text = !is_in_text,
                _ => {}
            }
        }
        let other = || "requestBody has template actions other than {{.name}} and {{json .name}}".to_owned();
        let (inside, after) = behind.split_once("}}").ok_or_else(other)?;
        let inside = inside.trim();
        let is_json = inside.starts_with("json ");
        let old = inside.strip_prefix("json").unwrap_or(inside).trim().strip_prefix('.').ok_or_else(other)?;
        let parameter = parameters.find(old).ok_or_else(|| format!("requestBody uses {old}, which is not declared"))?;
        let is_text = parameter.input.as_ref().and_then(|input| input.get("type")) == Some(&json!("string"));
        converted.push_str(before);
        match (is_in_text, is_json, is_text) {
            (true, false, true) => converted.push_str(&format!("{{{{{}}}}}", parameter.name)),
            (false, true, _) | (false, false, false) => converted.push_str(&format!("\"{{{{{}}}}}\"", parameter.name)),
            _ => return Err(format!("requestBody writes {old} in a form that is no JSON value")),
        }
        rest = after;
    }
    converted.push_str(rest);
    serde_json::from_str(&converted).map_err(|_| "requestBody is no JSON".to_owned())
}

/// Checks the request as the server will, and returns its host.
fn check_request(http: &Map<String, Value>, base: &str, inputs: &Map<String, Value>) -> Result<String, String> {
    let host = base.split_once("://").map(|(_, rest)| rest).unwrap_or(base);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    if host.contains("${") || host.contains('@') {
        return Err(format!("the host of {base:?} must be written out, because http.allow_hosts lists it"));
    }
    let allowed = AllowedHosts::parse(&[host.to_owned()]).map_err(|problems| join(&problems))?;
    let text = |member: &str| http.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let members = |member: &str| http.get(member).and_then(Value::as_object).cloned().unwrap_or_default();
    let headers = members("headers").into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
    let definition = HttpDefinition {
        method: text("method"),
        url: text("url"),
        query: members("query").into_iter().collect(),
        headers: headers.collect(),
        body: http.get("body").cloned(),
        ..HttpDefinition::default()
    };
    let arguments = inputs.iter().map(|(name, input)| HttpArgument {
        name: name.clone(),
        is_required: input.get("required") != Some(&json!(false)) && input.get("default").is_none(),
        default: input.get("default").cloned(),
    });
    let arguments: Vec<HttpArgument> = arguments.collect();
    HttpRequestTemplate::parse(&definition, &arguments, &allowed).map_err(|problems| join(&problems))?;
    Ok(host.to_owned())
}

fn join(problems: &[tidegate_tools::declared::HttpProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
