//! The client of stored results: downloads one over HTTP, block by block, and writes it to a file.
//!
//! Blocks come as Arrow, several at once. Each is checked against the hash that the result's manifest names, and kept
//! beside the file until the file is whole: what was fetched once is not fetched again, whatever broke since. The rows
//! become the format that was asked for here, with the writers of the server.
//!
//! What is held in memory is bounded by the blocks that are under way; blocks are written in order, and a file never has
//! its name before it is whole.

mod access;
mod address;
mod backoff;
mod bar;
mod bearer;
mod block;
mod client;
mod destination;
mod digest;
mod download;
mod error;
mod following;
mod manifest;
mod notice;
mod options;
mod packing;
mod partial;
mod patience;
mod question;
mod refusal;
mod tally;
mod words;
mod writing;

pub use address::{AddressError, ResultAddress, Server};
pub use bar::Bar;
pub use bearer::{Bearer, BearerError};
pub use destination::{Destination, FORMATS, Unfinished, parse_format};
pub use download::{Fetched, fetch};
pub use error::{FetchError, Kept};
pub use notice::{Notice, NoticeListener, Standing};
pub use options::FetchOptions;
pub use question::{Question, ask};
pub use words::Words;
