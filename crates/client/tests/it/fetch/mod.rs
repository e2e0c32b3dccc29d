//! What the crate promises, through its public API and a server of the tests' own.
//!
//! - `server`: that server: gives the answers of a test, and records its requests
//! - `stored`: a stored result, and how a server that behaves answers for it
//! - `scene`: a result, a server and a folder for the file
//! - `whole`: a download from end to end, in each format
//! - `connection_loss`: connections that break, servers that go away
//! - `resume`: a second run takes up what the first one fetched
//! - `corruption`: blocks without their hash, results that change
//! - `running`: results that are still being written, that ended incomplete, that are empty
//! - `refusals`: errors: credentials, links, files that cannot be written
//! - `file_results`: results that hold a file
//! - `queries`: SQL to a server that writes the answer down

mod connection_loss;
mod corruption;
mod file_results;
mod fixture;
mod full_download;
mod queries;
mod refusals;
mod resume;
mod running_results;
mod stored_result;
mod test_server;
