//! NEXUS3: a local server that runs teams of LLM agents.
//!
//! Clients drive it with JSON-RPC 2.0 over HTTP on loopback. All of it is written over the seams of
//! [`world`]: the server that ships is the server that can be simulated.
//!
//! # Architecture
//!
//! The modules below stand in the order in which a `send` meets them. Imports go downward only; a
//! test holds the table.
//!
//! What always holds:
//! 1. Nothing reachable from [`server::Server`] touches time, chance, sockets, files, processes,
//!    threads or the environment but through a [`world::World`]. The bans of `.clippy.toml` and the
//!    tests `bans` and `tidy` hold it; `world::real`, `cli`, `terminal` and `main` are outside.
//! 2. An agent's state lives in its task. Others hold an [`agent::AgentHandle`] and ask. The task
//!    never waits for anything but its own channels, its commit and deadlines.
//! 3. [`agent::Turn`] decides and never waits; `agent::work` waits and never decides.
//! 4. Each turn has a channel of its own for the work it started, and the channel ends with the turn:
//!    what ends late reaches nobody. (An earlier design tagged work with a turn's number; a channel
//!    per turn makes the mistake impossible instead of detected, and costs an idle agent nothing.)
//! 5. Every queue, buffer, loop and wait has a bound in [`limits`], and a full one has a clear answer.
//! 6. Text becomes a type at the rim ([`id`], [`rpc::wire`], [`config`]); the inside does not check
//!    again.
//! 7. Every error gets its number in one of two places, exhaustively: `rpc::code` for what a call
//!    meets, [`agent::outcome`] for how a turn ends, which is kept and streamed too.
//! 8. Nobody who tells an event waits for those who hear it: [`hub`] bounds what a reader may fall
//!    behind, and the journal has the rest.
//! 9. Durable before visible: what happens to an agent goes through its outbox into one commit of the
//!    [`store`]; events are published, callers are answered, models asked and tools run only after
//!    it. An event has its `seq` from that commit, so the order of commits is the order of events.
//! 10. A path that a model gives is decided on in one place, [`tool::place`], as what it resolves to,
//!     by the agent's [`policy::Rights`], and then opened from a handle without following a link. Files
//!     are only used off the async threads.
//! 11. A program is started through a supervisor, a hidden command of our own binary, which ends all
//!     that the program has started once the server lets go of it or dies. Below `yolo` the kernel
//!     holds it to its agent's paths, and an agent goes only after its programs.
//! 12. No request to a model is longer than it takes: `agent::context` builds every one, off the path
//!     of everything else, and leaves out or sums up what does not fit.
//! 13. No agent may what its parent may not: rights are computed below the parent's, and whoever changes
//!     an agent's changes those of all below it in the same commit. A call that runs and one that is
//!     only explained are decided on by the same code.
//! 14. Agents reach each other through their tools by [`tool::team`], which the pool implements: in their
//!     own name, by the checks that a call over RPC meets. None waits for itself, through whomever; and
//!     whoever no longer waits ends the turn it waited for.
//! 15. A call that somebody has to confirm is on record as started only after the decision is; what runs
//!     is what was shown, by paths without links. Each confirmation is decided once, by the first answer
//!     that the store took.
//! 16. What an agent uses is charged to it and to everybody above it, by one account ([`policy::budget`]),
//!     before or when it is used: agents when they are made, turns when they are accepted, tokens with
//!     each answer. It is written down in the same commit as what used it, as a sum of its own and not
//!     as an addition, so a crash or a repetition counts nothing twice.
//! 17. An agent is known by its number. Its id can change, between turns and by one commit, and whatever is
//!     kept or heard by id goes along; while it does, nobody is told of either.

pub mod cli; // the command line
pub mod terminal; // the same for a person who stays
pub mod client; // the same protocol from the other side
pub mod server; // one server from start to stop
pub mod http; // bytes on a socket
pub mod rpc; // a JSON-RPC body to a reply
pub mod pool; // which agents exist
pub mod agent; // one task per agent, and the turn it is in
pub mod record; // a live session as a scenario
pub mod store; // what survives
pub mod logs; // what each agent did, for people
pub mod hub; // who hears of what happens
pub mod session; // conversations as files
pub mod home; // the server's own directory
pub mod provider; // models
pub mod tool; // what a model may ask an agent to do
pub mod policy; // who may do what
pub mod config; // the configuration file
pub mod world; // the seams, and the real machine behind them
pub mod event; // the one event type
pub mod choice; // answers to confirmations
pub mod messages; // what a model is shown of it
pub mod message; // what a conversation is made of
pub mod sse; // the format of event streams
pub mod code; // error numbers
mod json; // written straight into a buffer
pub mod id; // names, parsed once
pub mod causes; // what is wrong, and why
pub mod reach; // which addresses may be asked
pub mod activity; // whether anybody uses the server
pub mod limits; // every bound
