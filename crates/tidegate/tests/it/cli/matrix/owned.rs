//! What belongs to somebody: jobs and stored results. To others they are as if they were not there.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::line::{Answer, Line, Transport};
use super::target::{Lists, Tried, call, text_of};
use super::{House, Matrix, ROLES};
use crate::cli::server::{CHANGE_WITHIN, within_reason};

/// An id of the right form that nothing has.
const ABSENT: &str = "01234567-89ab-4cde-8f01-23456789abcd";

/// The paths of a stored result.
const PATHS: [&str; 3] = ["", "/data", "/blocks/0"];

/// Jobs and results of others, by every way that leads to one; and results of one's own.
pub(super) async fn try_owned(house: &House, matrix: &mut Matrix, role: usize, transport: Transport, letter: char) {
    let mut line = house.line(ROLES[role], transport, None).await.unwrap();
    let templates =
        if transport.has_tools_alone() { Vec::new() } else { Lists::of_everything(&mut line).await.templates };
    for (whose, mut other) in house.colleagues().await {
        let (job, result) = of_other(&mut other).await;
        // Who may list jobs may end them, and no others.
        let is_listed = job_ids(&mut line).await.contains(&job);
        let tried = tried(&mut line, &job, is_listed, Way::Cancelled).await;
        matrix.judge(&format!("job of {whose}"), role, letter, &tried);
        let is_readable = is_listed && templates.iter().any(|template| template == "tidegate://jobs/{id}");
        let job_read = Owned { label: format!("job of {whose} as a resource"), id: &job, is_to_be_had: is_readable };
        let result_read = Owned { label: format!("stored result of {whose}"), id: &result, is_to_be_had: false };
        job_read.read(matrix, &mut line, role, transport, letter, "tidegate://jobs/").await;
        result_read.read(matrix, &mut line, role, transport, letter, "tidegate://results/").await;
    }
    let label = "stored result of one's own".to_owned();
    if transport.has_tools_alone() {
        return matrix.mark(&label, role, '.');
    }
    let own = stored(&mut line).await;
    match &own {
        None => matrix.mark(&label, role, '-'),
        Some(own) => {
            let owned = Owned { label, id: own, is_to_be_had: true };
            owned.read(matrix, &mut line, role, transport, letter, "tidegate://results/").await;
        }
    }
}

/// Stored results by their paths, which belong to no transport of MCP.
pub(super) async fn try_fetched(house: &House, matrix: &mut Matrix, role: usize) {
    let mut results = Vec::new();
    for (whose, mut other) in house.colleagues().await {
        results.push((format!("GET /results/{{id}} of {whose}"), of_other(&mut other).await.1));
    }
    let mut line = house.line(ROLES[role], Transport::Modern, None).await.unwrap();
    let label = "GET /results/{id} of one's own".to_owned();
    match stored(&mut line).await {
        None => matrix.mark(&label, role, '-'),
        Some(own) => {
            // Its first block is there when it is whole.
            let manifest = format!("/results/{own}");
            within_reason(async || house.fetch(ROLES[role], &manifest).await.1.contains(r#""complete""#)).await;
            results.push((label, own));
        }
    }
    for (label, id) in results {
        let mut had = 0;
        for path in PATHS {
            let at = |id: &str| format!("/results/{id}{path}");
            let (status, told) = house.fetch(ROLES[role], &at(&id)).await;
            let (absent, of_absent) = house.fetch(ROLES[role], &at(ABSENT)).await;
            had += usize::from(status == 200);
            if status != 200 && (status, told.replace(&id, ABSENT)) != (absent, of_absent) {
                matrix.broken.push(format!("{label}{path} for {}: {status} {told}", ROLES[role]));
            }
        }
        matrix.mark(&label, role, if had == PATHS.len() { '+' } else { '-' });
        if ![0, PATHS.len()].contains(&had) {
            matrix.broken.push(format!("{label} for {}: {had} of its paths", ROLES[role]));
        }
    }
}

/// Something with an id.
struct Owned<'a> {
    label: String,
    id: &'a str,
    is_to_be_had: bool,
}

impl Owned<'_> {
    /// Reads it as a resource whose URI begins like that.
    async fn read(
        &self,
        matrix: &mut Matrix,
        line: &mut Line<'_>,
        role: usize,
        transport: Transport,
        letter: char,
        beginning: &'static str,
    ) {
        if transport.has_tools_alone() {
            return matrix.mark(&self.label, role, '.');
        }
        let tried = tried(line, self.id, self.is_to_be_had, Way::Read(beginning)).await;
        matrix.judge(&self.label, role, letter, &tried);
    }
}

/// How something is asked for by its id.
#[derive(Clone, Copy)]
enum Way {
    Cancelled,
    /// As a resource whose URI begins like that.
    Read(&'static str),
}

async fn tried(line: &mut Line<'_>, id: &str, is_listed: bool, way: Way) -> Tried {
    let had = asked(line, id, way).await;
    let absent = asked(line, ABSENT, way).await.instead_of(ABSENT, id);
    Tried { is_listed, had, absent: Some(absent) }
}

async fn asked(line: &mut Line<'_>, id: &str, way: Way) -> Answer {
    match way {
        Way::Cancelled => call(line, "cancel_job", json!({"id": id})).await,
        Way::Read(beginning) => line.ask("resources/read", json!({"uri": format!("{beginning}{id}")})).await,
    }
}

/// A job and a stored result of whoever is on `line`.
async fn of_other(line: &mut Line<'_>) -> (String, String) {
    let result = stored(line).await.unwrap();
    let before = job_ids(line).await;
    call(line, "server_info", json!({})).await;
    let jobs: Value = serde_json::from_str(&text_of(&call(line, "list_jobs", json!({})).await)).unwrap();
    let mut new = jobs.as_array().unwrap().iter().filter(|job| job["target"] == "server_info");
    let id = new.find_map(|job| job["id"].as_str().filter(|id| !before.iter().any(|other| other == id)));
    (id.unwrap().to_owned(), result)
}

async fn job_ids(line: &mut Line<'_>) -> Vec<String> {
    let jobs = call(line, "list_jobs", json!({"extract": "id"})).await;
    serde_json::from_str(&text_of(&jobs)).unwrap_or_default()
}

/// The id of a result that is stored for whoever asks, if they may. It is whole then: whether a job of one's own still
/// runs is said where there is none of an id, and would differ from one question to the next.
async fn stored(line: &mut Line<'_>) -> Option<String> {
    let question = json!({"database": "shop", "sql": "SELECT id FROM orders", "delivery": "blocks"});
    let id = match call(line, "sql", question).await {
        Answer::Done(result) => id_of(&result).unwrap_or_else(|| panic!("{result}")),
        Answer::Refused(_) => return None,
    };
    let began = Instant::now();
    while goes_on(line, &id).await {
        assert!(began.elapsed() < CHANGE_WITHIN, "the result is never whole");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Some(id)
}

/// Whether the job still runs that stores the result `id`.
async fn goes_on(line: &mut Line<'_>, id: &str) -> bool {
    let uri = format!("tidegate://results/{id}");
    let jobs: Value = serde_json::from_str(&text_of(&call(line, "list_jobs", json!({})).await)).unwrap_or_default();
    let of_result = jobs.as_array().into_iter().flatten().find(|job| job["result"] == uri.as_str());
    of_result.is_some_and(|job| ["waiting", "running"].iter().any(|state| job["status"] == *state))
}

fn id_of(result: &Value) -> Option<String> {
    let uris = result["content"].as_array()?.iter().filter_map(|block| block["uri"].as_str());
    uris.filter_map(|uri| uri.strip_prefix("tidegate://results/")).map(str::to_owned).next()
}
