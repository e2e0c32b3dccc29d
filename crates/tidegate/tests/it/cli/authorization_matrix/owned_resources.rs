//! What belongs to somebody: jobs and stored results. To others they are as if they were not there.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client_connection::{Attempt, ClientConnection, Transport};
use super::target::{AttemptOutcome, Lists, answer_text, call};
use super::{Matrix, MatrixNode, ROLES};
use crate::cli::server::{CHANGE_TIMEOUT, wait_until};

/// An id of the right form that nothing has.
const ABSENT: &str = "01234567-89ab-4cde-8f01-23456789abcd";

/// The paths of a stored result.
const PATHS: [&str; 3] = ["", "/data", "/blocks/0"];

/// Jobs and results of others, by every way that leads to one; and results of one's own.
pub(super) async fn try_owned(
    matrix_node: &MatrixNode,
    line: &mut ClientConnection<'_>,
    matrix: &mut Matrix,
    role: usize,
    transport: Transport,
    letter: char,
) {
    let templates = if transport.supports_only_tools() { Vec::new() } else { Lists::list_all(line).await.templates };
    for (owner_key, mut other) in matrix_node.other_principals().await {
        let (job, result) = job_and_result_of(&mut other).await;
        // Who may list jobs may end them, and no others.
        let is_listed = job_ids(line).await.contains(&job);
        let tried = attempt_both(line, &job, is_listed, AccessMethod::CancelJob).await;
        matrix.record_attempt(&format!("job of {owner_key}"), role, letter, &tried);
        let is_readable = is_listed && templates.iter().any(|template| template == "tidegate://jobs/{id}");
        let job_read =
            OwnedResource { label: format!("job of {owner_key} as a resource"), id: &job, is_expected: is_readable };
        let result_read =
            OwnedResource { label: format!("stored result of {owner_key}"), id: &result, is_expected: false };
        job_read.attempt_read(matrix, line, role, transport, letter, "tidegate://jobs/").await;
        result_read.attempt_read(matrix, line, role, transport, letter, "tidegate://results/").await;
        let tried = attempt_both(line, &result, false, AccessMethod::Table).await;
        matrix.record_attempt(&format!("stored result of {owner_key} as a table"), role, letter, &tried);
    }
    let label = "stored result of one's own".to_owned();
    let table_label = format!("{label} as a table");
    if transport.supports_only_tools() {
        matrix.add_mark(&table_label, role, '.');
        return matrix.add_mark(&label, role, '.');
    }
    let own = store_result(line).await;
    match &own {
        None => matrix.add_mark(&table_label, role, '-'),
        Some(own) => {
            let tried = attempt_both(line, own, true, AccessMethod::Table).await;
            matrix.record_attempt(&table_label, role, letter, &tried);
        }
    }
    match &own {
        None => matrix.add_mark(&label, role, '-'),
        Some(own) => {
            let owned = OwnedResource { label, id: own, is_expected: true };
            owned.attempt_read(matrix, line, role, transport, letter, "tidegate://results/").await;
        }
    }
}

/// Stored results by their paths, which belong to no transport of MCP.
pub(super) async fn try_http_results(matrix_node: &MatrixNode, matrix: &mut Matrix, role: usize) {
    let mut results = Vec::new();
    for (owner_key, mut other) in matrix_node.other_principals().await {
        results.push((format!("GET /results/{{id}} of {owner_key}"), job_and_result_of(&mut other).await.1));
    }
    let mut line = matrix_node.connect(ROLES[role], Transport::Modern, None).await.unwrap();
    let label = "GET /results/{id} of one's own".to_owned();
    match store_result(&mut line).await {
        None => matrix.add_mark(&label, role, '-'),
        Some(own) => {
            // Its first block is there when it is whole.
            let manifest = format!("/results/{own}");
            wait_until(async || matrix_node.fetch(ROLES[role], &manifest).await.1.contains(r#""complete""#)).await;
            results.push((label, own));
        }
    }
    for (label, id) in results {
        let mut had = 0;
        for path in PATHS {
            let at = |id: &str| format!("/results/{id}{path}");
            let (status, message) = matrix_node.fetch(ROLES[role], &at(&id)).await;
            let (absent, of_absent) = matrix_node.fetch(ROLES[role], &at(ABSENT)).await;
            had += usize::from(status == 200);
            if status != 200 && (status, message.replace(&id, ABSENT)) != (absent, of_absent) {
                matrix.violations.push(format!("{label}{path} for {}: {status} {message}", ROLES[role]));
            }
        }
        matrix.add_mark(&label, role, if had == PATHS.len() { '+' } else { '-' });
        if ![0, PATHS.len()].contains(&had) {
            matrix.violations.push(format!("{label} for {}: {had} of its paths", ROLES[role]));
        }
    }
}

/// Something with an id.
struct OwnedResource<'a> {
    label: String,
    id: &'a str,
    is_expected: bool,
}

impl OwnedResource<'_> {
    /// Reads it as a resource whose URI begins like that.
    async fn attempt_read(
        &self,
        matrix: &mut Matrix,
        line: &mut ClientConnection<'_>,
        role: usize,
        transport: Transport,
        letter: char,
        beginning: &'static str,
    ) {
        if transport.supports_only_tools() {
            return matrix.add_mark(&self.label, role, '.');
        }
        let tried = attempt_both(line, self.id, self.is_expected, AccessMethod::Read(beginning)).await;
        matrix.record_attempt(&self.label, role, letter, &tried);
    }
}

/// How something is asked for by its id.
#[derive(Clone, Copy)]
enum AccessMethod {
    CancelJob,
    /// As a table of SQL.
    Table,
    /// As a resource whose URI begins like that.
    Read(&'static str),
}

async fn attempt_both(line: &mut ClientConnection<'_>, id: &str, is_listed: bool, way: AccessMethod) -> AttemptOutcome {
    let had = attempt(line, id, way).await;
    let names = [ABSENT, id].map(|id| if let AccessMethod::Table = way { table_name(id) } else { id.to_owned() });
    let absent = attempt(line, ABSENT, way).await.with_name_of(&names[0], &names[1]);
    AttemptOutcome { is_listed, answer: had, absent_answer: Some(absent) }
}

/// The name of the stored result `id` as a table.
fn table_name(id: &str) -> String {
    format!("r_{}", id.replace('-', ""))
}

async fn attempt(line: &mut ClientConnection<'_>, id: &str, way: AccessMethod) -> Attempt {
    match way {
        AccessMethod::CancelJob => call(line, "cancel_job", json!({"id": id})).await,
        AccessMethod::Table => {
            let sql = format!("SELECT count(*) AS rows FROM results.{}", table_name(id));
            call(line, "sql", json!({"sql": sql})).await
        }
        AccessMethod::Read(beginning) => {
            line.request("resources/read", json!({"uri": format!("{beginning}{id}")})).await
        }
    }
}

/// A job and a stored result of the client of `line`.
async fn job_and_result_of(line: &mut ClientConnection<'_>) -> (String, String) {
    let result = store_result(line).await.unwrap();
    let before = job_ids(line).await;
    call(line, "server_info", json!({})).await;
    let jobs: Value = serde_json::from_str(&answer_text(&call(line, "list_jobs", json!({})).await)).unwrap();
    let mut new = jobs.as_array().unwrap().iter().filter(|job| job["target"] == "server_info");
    let id = new.find_map(|job| job["id"].as_str().filter(|id| !before.iter().any(|other| other == id)));
    (id.unwrap().to_owned(), result)
}

async fn job_ids(line: &mut ClientConnection<'_>) -> Vec<String> {
    let jobs = call(line, "list_jobs", json!({"extract": "id"})).await;
    serde_json::from_str(&answer_text(&jobs)).unwrap_or_default()
}

/// The id of a result that is stored for the client, if it may store one. The result is complete: messages about unknown
/// ids depend on whether a job of the client still runs, and would differ between requests.
async fn store_result(line: &mut ClientConnection<'_>) -> Option<String> {
    let question = json!({"database": "shop", "sql": "SELECT id FROM orders", "delivery": "blocks"});
    let id = match call(line, "sql", question).await {
        Attempt::Done(result) => result_id(&result).unwrap_or_else(|| panic!("{result}")),
        Attempt::Refused(_) => return None,
    };
    let began = Instant::now();
    while is_still_running(line, &id).await {
        assert!(began.elapsed() < CHANGE_TIMEOUT, "the result is never whole");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Some(id)
}

/// Whether the job still runs that stores the result `id`.
async fn is_still_running(line: &mut ClientConnection<'_>, id: &str) -> bool {
    let uri = format!("tidegate://results/{id}");
    let jobs: Value = serde_json::from_str(&answer_text(&call(line, "list_jobs", json!({})).await)).unwrap_or_default();
    let of_result = jobs.as_array().into_iter().flatten().find(|job| job["result"] == uri.as_str());
    of_result.is_some_and(|job| ["waiting", "running"].iter().any(|state| job["status"] == *state))
}

/// The id of the stored result that an answer links to.
pub(super) fn result_id(result: &Value) -> Option<String> {
    let uris = result["content"].as_array()?.iter().filter_map(|block| block["uri"].as_str());
    uris.filter_map(|uri| uri.strip_prefix("tidegate://results/")).map(str::to_owned).next()
}
