//! NEXUS3: a local server that runs teams of LLM agents.

pub mod config; // the configuration file
pub mod id; // names, parsed once
pub mod limits; // every bound
pub mod message; // what a conversation is made of
pub mod policy;
pub mod world; // the seams // who may do what
