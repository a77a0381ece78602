//! NEXUS3: a local server that runs teams of LLM agents.

pub mod cli; // the command line
pub mod client; // the same protocol from the other side
pub mod server; // one server from start to stop
pub mod http; // bytes on a socket
pub mod rpc; // a JSON-RPC body to a reply
pub mod pool; // which agents exist
pub mod agent; // one task per agent, and the turn it is in
pub mod home; // the server's own directory
pub mod provider; // models
pub mod tool; // what a model may ask an agent to do
pub mod policy; // who may do what
pub mod config; // the configuration file
pub mod message; // what a conversation is made of
pub mod limits; // every bound
pub mod id; // names, parsed once
pub mod world; // the seams, and the real machine behind them
