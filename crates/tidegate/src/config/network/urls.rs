//! The addresses of a server and of its replicas.

use std::collections::BTreeMap;

use tidegate_network::normalized_flight_url;

use super::super::problem::ConfigProblem;

/// The normal form of each of `urls`, which stand at `paths`. An address that is none, or that occurs twice, is a problem.
pub(super) fn check_urls<'a>(
    urls: impl IntoIterator<Item = (String, &'a String)>,
    problems: &mut Vec<ConfigProblem>,
) -> Vec<String> {
    let mut first_paths: BTreeMap<String, String> = BTreeMap::new();
    let mut normalized = Vec::new();
    for (path, url) in urls {
        match normalized_flight_url(url) {
            Err(error) => problems.push(ConfigProblem::new(path, error.to_string())),
            Ok(url) => match first_paths.get(&url) {
                Some(first) => {
                    let message =
                        format!("{url} stands here a second time; a replica is another server with the same rows");
                    problems.push(ConfigProblem::new(path, message).related_to(first.clone()));
                }
                None => {
                    first_paths.insert(url.clone(), path);
                    normalized.push(url);
                }
            },
        }
    }
    normalized
}
