//! Opens a network of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_auth::{CallerTokenOptions, CallerTokenSigner, TokenAlgorithm};
use tidegate_core::CallerTokens;
use tidegate_engines::{Engine, HeldRows, HeldValues, NetworkDatabase, NetworkNode, NetworkOptions, PartialAnswers};
use tidegate_network::{FlightSqlDatabase, FlightSqlOptions, FlightTls, NodeCredential};
use tidegate_query::NodeDatabase;

use super::super::OpenedDatabase;
use super::super::remote::servers::{check_urls, to_dialect};
use super::NodesConfig;
use crate::config::problem::ConfigProblem;
use crate::config::problems::Problems;
use crate::config::quantities::OneOrMany;
use crate::config::types::network::{
    HeldConfig, HeldRangeConfig, NetworkConfig, NodeConfig, PartialConfig, ScalarText, TrustConfig,
};

const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// Every node is sent the statements of a call at once.
const NODES_MAX: usize = 256;
const NODE_NAME_CHARS_MAX: usize = 64;

/// Opens the network `name` of `entry`, which stands at `path`.
pub(super) fn open(
    name: &str,
    entry: &NetworkConfig,
    tls: FlightTls,
    path: &str,
    previous: Option<PreviousNetwork<'_>>,
    engine: &Engine,
) -> Result<Arc<NetworkDatabase>, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    check_network(entry, &problems);
    let signer = entry.trust.as_ref().and_then(|trust| open_signer(trust, &problems.at("trust")));
    let previous = previous.filter(|previous| previous.has_same_options(entry));
    let timeout = entry.timeout.map_or(FlightSqlOptions::new(Vec::new()).timeout, |time| time.0);
    let shared = SharedOptions { entry, tls, signer, timeout, previous };
    let mut nodes = Vec::new();
    for (index, node) in entry.nodes.iter().enumerate() {
        nodes.extend(shared.application(node, &problems.at(format_args!("nodes[{index}]"))));
    }
    let nodes = problems.checked(nodes)?;
    let partial = match entry.partial {
        PartialConfig::Forbid => PartialAnswers::Forbid,
        PartialConfig::Allow => PartialAnswers::Allow,
    };
    let ranges = entry.ranges.clone().map(OneOrMany::into_vec).unwrap_or_default();
    let options = NetworkOptions { partial, timeout: shared.timeout, ranges };
    let opened = NetworkDatabase::new(name, options, nodes, engine);
    let opened = opened.map_err(|error| vec![ConfigProblem::new(path, error.to_string())])?;
    Ok(Arc::new(opened))
}

/// What all nodes have in common.
struct SharedOptions<'a> {
    entry: &'a NetworkConfig,
    tls: FlightTls,
    signer: Option<Arc<CallerTokenSigner>>,
    timeout: Duration,
    previous: Option<PreviousNetwork<'a>>,
}

impl SharedOptions<'_> {
    fn application(&self, node: &NodeConfig, problems: &Problems) -> Option<NetworkNode> {
        let before = problems.len();
        let replicas = node.replicas.iter().enumerate();
        let replicas = replicas.map(|(index, url)| (format!("replicas[{index}]"), url));
        let urls = check_urls([("url".to_owned(), &node.url)].into_iter().chain(replicas), problems);
        let holds = node.holds.as_ref().map(|holds| parse_held_rows(holds, &problems.at("holds")));
        if node.audience.is_some() && self.entry.trust.is_none() {
            let message = "has no effect without trust, which signs the tokens that have it";
            problems.add("audience", message);
        }
        if node.token.is_some() && self.entry.trust.is_some() {
            let message = "is a second credential: trust signs a token for this node; remove one of both";
            problems.add("token", message);
        }
        if problems.len() > before {
            return None;
        }
        if let Some(database) = self.previous.as_ref().and_then(|previous| previous.find(node)) {
            return Some(NetworkNode { database, holds });
        }
        let token = node.token.as_ref().or(self.entry.token.as_ref());
        let credential = match (&self.signer, token) {
            (Some(signer), _) => NodeCredential::CallerTokens(signer.clone() as Arc<dyn CallerTokens>),
            (None, Some(token)) => NodeCredential::Token(token.0.expose().to_owned()),
            (None, None) => NodeCredential::None,
        };
        let options = FlightSqlOptions {
            database: node.database.clone(),
            dialect: to_dialect(node.dialect),
            credential,
            audience: node.audience.clone(),
            tls: self.tls.clone(),
            timeout: self.timeout,
            ..FlightSqlOptions::new(urls)
        };
        match FlightSqlDatabase::new(node.name.clone(), options) {
            Ok(database) => Some(NetworkNode { database: Arc::new(database), holds }),
            Err(error) => {
                problems.add("", error.to_string());
                None
            }
        }
    }
}

/// The network before a change of the configuration. A node that does not change keeps its connections, and what is known of
/// it.
pub(super) struct PreviousNetwork<'a> {
    entry: &'a NetworkConfig,
    nodes: &'a [Arc<dyn NodeDatabase>],
}

impl<'a> PreviousNetwork<'a> {
    pub(super) fn of_database(opened: &'a OpenedDatabase) -> Option<Self> {
        let entry = &opened.entry.of_kind::<NodesConfig>()?.network;
        Some(Self { entry, nodes: opened.database.network()?.nodes() })
    }

    fn has_same_options(&self, entry: &NetworkConfig) -> bool {
        let of = |entry: &NetworkConfig| (entry.trust.clone(), entry.token.clone(), entry.timeout);
        of(self.entry) == of(entry)
    }

    /// The database of `node`, if only its declared rows have changed.
    fn find(&self, node: &NodeConfig) -> Option<Arc<dyn NodeDatabase>> {
        let without_rows = |node: &NodeConfig| NodeConfig { holds: None, ..node.clone() };
        let old = self.entry.nodes.iter().find(|old| old.name == node.name)?;
        let is_same = without_rows(old) == without_rows(node);
        self.nodes.iter().find(|database| is_same && database.name() == node.name).cloned()
    }
}

/// Problems of `entry` beyond single nodes.
fn check_network(entry: &NetworkConfig, problems: &Problems) {
    match entry.nodes.len() {
        0 => {
            problems.add("nodes", "is empty; a network has at least one node: {name: oslo, url: grpc+tls://oslo:7071}");
        }
        count if count > NODES_MAX => {
            problems.add("nodes", format!("has {count} nodes; the maximum is {NODES_MAX}"));
        }
        _ => {}
    }
    if entry.trust.is_some() && entry.token.is_some() {
        let message = "is a second credential beside trust; a token identifies this server, trust its callers";
        problems.add("token", message);
    }
    if entry.timeout.is_some_and(|timeout| timeout.0 > TIMEOUT_MAX) {
        problems.add("timeout", "is longer than 10m, and no call waits so long for its first rows");
    }
    check_names(&entry.nodes, problems);
    check_servers(&entry.nodes, problems);
}

fn check_names(nodes: &[NodeConfig], problems: &Problems) {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let key = format!("nodes[{index}].name");
        let is_name = (1..=NODE_NAME_CHARS_MAX).contains(&node.name.len())
            && node.name.chars().all(|character| character.is_ascii_alphanumeric() || "_-.".contains(character));
        if !is_name {
            let message = format!(
                "{:?} is no name of a node: 1 to {NODE_NAME_CHARS_MAX} of letters, digits, _, - and .",
                node.name
            );
            problems.add(key, message);
            continue;
        }
        match names.get(&node.name) {
            Some(first) => {
                let message = format!("{} is the name of another node", node.name);
                problems.add_related(key, format_args!("nodes[{first}].name"), message);
            }
            None => {
                names.insert(node.name.clone(), index);
            }
        }
    }
}

/// Two nodes with the same database on the same server would count its rows twice.
fn check_servers(nodes: &[NodeConfig], problems: &Problems) {
    let mut servers: BTreeMap<(String, Option<&String>), usize> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let replicas = node.replicas.iter().enumerate();
        let replicas = replicas.map(|(replica, url)| (format!("nodes[{index}].replicas[{replica}]"), url));
        for (key, url) in [(format!("nodes[{index}].url"), &node.url)].into_iter().chain(replicas) {
            // An address that is none is reported with its node.
            let Ok(url) = tidegate_network::normalized_flight_url(url) else { continue };
            let first = *servers.entry((url.clone(), node.database.as_ref())).or_insert(index);
            let are_separate = node.holds.is_some() && nodes[first].holds.is_some() && node.holds != nodes[first].holds;
            if first != index && !are_separate {
                let message = format!(
                    "{url} is also a server of the node {}, whose rows would count twice; name another database, or \
                     in holds which rows each node has",
                    nodes[first].name
                );
                problems.add_related(key, format_args!("nodes[{first}].url"), message);
            }
        }
    }
}

/// The signer of tokens that name the callers of this server to other nodes.
fn open_signer(entry: &TrustConfig, problems: &Problems) -> Option<Arc<CallerTokenSigner>> {
    let before = problems.len();
    let algorithm = match entry.algorithm.as_deref().map(str::parse).transpose() {
        Ok(algorithm) => algorithm.unwrap_or(TokenAlgorithm::EdDsa),
        Err(message) => {
            let message: String = message;
            problems.add("algorithm", message);
            return None;
        }
    };
    let names = [
        ("issuer", Some(&entry.issuer)),
        ("tenant_claim", entry.tenant_claim.as_ref()),
        ("roles_claim", entry.roles_claim.as_ref()),
        ("key_id", entry.key_id.as_ref()),
    ];
    for (member, _) in names.into_iter().filter(|(_, name)| name.is_some_and(|name| name.trim().is_empty())) {
        problems.add(member, "is empty");
    }
    if problems.len() > before {
        return None;
    }
    let default = CallerTokenOptions::new(entry.issuer.clone(), entry.key.0.clone(), algorithm);
    let options = CallerTokenOptions {
        tenant_claim: entry.tenant_claim.clone().unwrap_or(default.tenant_claim),
        roles_claim: entry.roles_claim.clone().unwrap_or(default.roles_claim),
        key_id: entry.key_id.clone(),
        ..default
    };
    match CallerTokenSigner::new(options) {
        Ok(signer) => Some(Arc::new(signer)),
        Err(error) => {
            problems.add("", error.to_string());
            None
        }
    }
}

/// The rows that a node contributes to the network.
fn parse_held_rows(entry: &BTreeMap<String, HeldConfig>, problems: &Problems) -> HeldRows {
    if entry.is_empty() {
        problems.add("", "names no column; omit it if all rows of the node are part of the network");
    }
    let mut columns = BTreeMap::new();
    for (column, held) in entry {
        if let Some(message) = find_problem(held) {
            problems.add(column, message);
        }
        columns.insert(column.clone(), to_values(held));
    }
    HeldRows { columns }
}

fn find_problem(held: &HeldConfig) -> Option<String> {
    match held {
        HeldConfig::One(_) => None,
        HeldConfig::Many(values) if values.is_empty() => {
            Some("is an empty list: no row has one of its values".to_owned())
        }
        HeldConfig::Many(values) => {
            let repeated = values.iter().enumerate().find(|(index, value)| values[..*index].contains(value));
            repeated.map(|(_, ScalarText(value))| format!("has {value} twice"))
        }
        HeldConfig::Range(HeldRangeConfig { from: None, before: None }) => {
            Some("needs from, before or both: {from: 2026-01-01, before: 2027-01-01}".to_owned())
        }
        HeldConfig::Range(HeldRangeConfig { from: Some(ScalarText(from)), before: Some(ScalarText(before)) })
            if is_empty_range(from, before) =>
        {
            Some(format!("has no value: from {from} is not below before {before}"))
        }
        HeldConfig::Range(_) => None,
    }
}

/// Whether no value is between both, as far as it is known without the type of the column: of numbers, and of dates and
/// times of UTC in the same form.
fn is_empty_range(from: &str, before: &str) -> bool {
    if let (Ok(from), Ok(before)) = (from.parse::<f64>(), before.parse::<f64>()) {
        return from >= before;
    }
    let is_time = |text: &str| {
        let bytes = text.as_bytes();
        let is_date =
            bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[..4].iter().all(u8::is_ascii_digit);
        is_date && (bytes.len() == 10 || text.ends_with('Z'))
    };
    from.len() == before.len() && is_time(from) && is_time(before) && from >= before
}

fn to_values(held: &HeldConfig) -> HeldValues {
    let text = |value: &ScalarText| value.0.clone();
    match held {
        HeldConfig::One(value) => HeldValues { values: vec![text(value)], ..HeldValues::default() },
        HeldConfig::Many(values) => HeldValues { values: values.iter().map(text).collect(), ..HeldValues::default() },
        HeldConfig::Range(range) => HeldValues {
            from: range.from.as_ref().map(text),
            before: range.before.as_ref().map(text),
            ..HeldValues::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, before: &str, is_empty: bool) {
        assert_eq!(is_empty_range(from, before), is_empty, "{from} to {before}");
    }

    #[test]
    fn only_ranges_that_are_surely_empty_are_refused() {
        check("1", "2", false);
        check("10", "9", true);
        check("-1.5", "-1.5", true);
        check("2026-01-01", "2026-01-01", true);
        check("2026-02-01", "2026-01-01", true);
        check("2026-01-01", "2026-01-02", false);
        check("2026-01-01T12:00:00Z", "2026-01-01T11:00:00Z", true);
        // Other forms, and texts of an unknown collation.
        check("2026-01-02", "2026-01-01T00:00:00Z", false);
        check("2026-01-01T12:00:00+02:00", "2026-01-01T11:00:00-05:00", false);
        check("zulu", "alpha", false);
        check("ä123-45-67", "a123-45-67", false);
    }
}
