//! A first configuration: what is found in a folder and in the environment, the questions, and the text of the file.

mod config_text;
mod discovery;
mod proposed_database;
mod questions;

pub(crate) use config_text::render_config;
pub(crate) use discovery::discover;
pub(crate) use proposed_database::ProposedDatabase;
pub(crate) use questions::{Audience, InitAnswers, InitProposal, ask_questions, parse_source};
