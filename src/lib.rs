//! NEXUS3: a local server that runs teams of LLM agents.

pub mod id; // names, parsed once
pub mod limits; // every bound
pub mod message; // what a conversation is made of
pub mod world; // the seams
