//! The addresses of a server and of its replicas.

use std::collections::BTreeMap;

use tidegate_network::normalized_flight_url;

use super::super::problems::Problems;

/// The normal form of each of `urls`, with their keys. An address that is none, or that occurs twice, is a problem.
pub(super) fn check_urls<'a>(urls: impl IntoIterator<Item = (String, &'a String)>, problems: &Problems) -> Vec<String> {
    let mut first_keys: BTreeMap<String, String> = BTreeMap::new();
    let mut normalized = Vec::new();
    for (key, url) in urls {
        match normalized_flight_url(url) {
            Err(error) => problems.add(key, error.to_string()),
            Ok(url) => match first_keys.get(&url) {
                Some(first) => {
                    let message =
                        format!("{url} stands here a second time; a replica is another server with the same rows");
                    problems.add_related(key, first, message);
                }
                None => {
                    first_keys.insert(url.clone(), key);
                    normalized.push(url);
                }
            },
        }
    }
    normalized
}
