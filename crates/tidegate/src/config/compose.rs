//! PostgreSQL servers in a file of [Docker Compose](https://docs.docker.com/reference/compose-file/services/).

use super::yaml_tree::{YamlContent, YamlNode, parse_document};

const POSTGRES_PORT: &str = "5432";
/// Images whose names contain one of these are PostgreSQL.
const IMAGES: [&str; 5] = ["postgres", "postgis", "pgvector", "timescale", "supabase"];

/// A PostgreSQL server that this machine reaches through a published port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ComposePostgres {
    pub(crate) service: String,
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) port: u16,
}

/// The PostgreSQL servers of a Compose file that publish their port.
///
/// # Errors
/// Why the text cannot be read.
pub(crate) fn postgres_services(text: &str) -> Result<Vec<ComposePostgres>, String> {
    let problem = |problems: Vec<super::ConfigProblem>| {
        problems.into_iter().next().map_or_else(String::new, |problem| problem.message)
    };
    let root = parse_document(text, 0).map_err(problem)?;
    let services = root.get("services").map(YamlNode::members).unwrap_or_default().iter();
    Ok(services.filter_map(|(name, _, service)| postgres_service(name, service)).collect())
}

fn postgres_service(name: &str, service: &YamlNode) -> Option<ComposePostgres> {
    let image = service.get("image").and_then(scalar)?;
    if !IMAGES.iter().any(|known| image.contains(known)) {
        return None;
    }
    let port = service.get("ports")?.items().iter().find_map(published_port)?;
    let variable = |variable| environment(service, variable);
    let user = variable("POSTGRES_USER").unwrap_or_else(|| "postgres".to_owned());
    let database = variable("POSTGRES_DB").unwrap_or_else(|| user.clone());
    Some(ComposePostgres { service: name.to_owned(), user, database, port })
}

/// `5432:5432`, `127.0.0.1:5433:5432`, or `{target: 5432, published: 5433}`.
fn published_port(node: &YamlNode) -> Option<u16> {
    if let Some(target) = node.get("target").and_then(scalar) {
        let published = node.get("published").and_then(scalar)?;
        return (target == POSTGRES_PORT).then(|| published.parse().ok()).flatten();
    }
    let text = scalar(node)?;
    let (rest, target) = text.trim_end_matches("/tcp").rsplit_once(':')?;
    let published = rest.rsplit(':').next()?;
    if target == POSTGRES_PORT { published.parse().ok() } else { None }
}

/// A variable of a service, whose variables are a map or a list of `NAME=value`.
fn environment(service: &YamlNode, name: &str) -> Option<String> {
    let node = service.get("environment")?;
    if let Some(value) = node.get(name) {
        return scalar(value);
    }
    let mut pairs = node.items().iter().filter_map(scalar);
    pairs.find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()))
}

/// A text, with the default instead of a variable: `${PORT:-5432}`. A variable without one is `None`, because Compose
/// may take its value from a file.
fn scalar(node: &YamlNode) -> Option<String> {
    let (YamlContent::Plain(text) | YamlContent::Text(text)) = &node.kind else { return None };
    let mut expanded = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("${") {
        let (variable, following) = after.split_once('}')?;
        let (_, default) = variable.split_once(":-").or_else(|| variable.split_once('-'))?;
        expanded.push_str(before);
        expanded.push_str(default);
        rest = following;
    }
    (!rest.contains('$')).then(|| expanded + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_servers_are_found() {
        let text = r#"
services:
  web: {image: nginx, ports: ["80:80"]}
  db:
    image: postgres:17
    ports: ["127.0.0.1:${DB_PORT:-5433}:5432"]
    environment: {POSTGRES_USER: shop, POSTGRES_PASSWORD: secret, POSTGRES_DB: orders}
  maps:
    image: postgis/postgis:17-3.5
    ports: [{target: 5432, published: "5434"}]
    environment: [POSTGRES_USER=ann]
  hidden: {image: postgres}
  other: {image: postgres, ports: ["${PORT}:5432"]}
"#;
        let server = |service: &str, user: &str, database: &str, port| ComposePostgres {
            service: service.to_owned(),
            user: user.to_owned(),
            database: database.to_owned(),
            port,
        };
        let expected = [server("db", "shop", "orders", 5433), server("maps", "ann", "ann", 5434)];
        assert_eq!(postgres_services(text).unwrap(), expected);
        assert!(postgres_services("services: [").is_err());
        assert_eq!(postgres_services("").unwrap(), []);
    }
}
