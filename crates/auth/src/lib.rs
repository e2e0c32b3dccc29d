//! Who is calling: from a key or a token to a principal. No HTTP, no protocol, no configuration file.
//!
//! A [`Gate`] is made from [`GateOptions`] and knows [`Role`]s, the keys of a [`KeyFile`] and how tokens are checked
//! ([`TokenOptions`]). Doors hold a [`Doorkeeper`], in which one gate follows another whole.

mod clock;
mod digest;
mod doorkeeper;
mod gate;
mod key_file;
mod key_text;
mod keys;
mod role;
mod roles;
mod secret;
mod token;

pub use clock::Clock;
pub use doorkeeper::Doorkeeper;
pub use gate::{Gate, GateError, GateOptions};
pub use key_file::{KeyFile, KeyFileError, KeyState, KeyStatus, NewKey};
pub use role::Role;
pub use secret::Secret;
pub use token::{TokenAlgorithm, TokenKey, TokenOptions, TokenOptionsError, UnknownAlgorithm};
