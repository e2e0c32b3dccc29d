//! Messages of a real broker, mosquitto, as rows of a folder. Without mosquitto, the tests say so and pass.
//!
//! - `broker`: the broker as a process, with persistence.
//! - `fixture`: receivers, publishers, and the rows of a table.
//! - `delivery`: what arrives when the broker, the receiver or the storage fails.
//! - `content`: what becomes of the content of messages.
//! - `options`: addresses, and what is wrong with options.

mod broker;
mod content;
mod delivery;
mod fixture;
mod options;
