//! The terminal: a client like any other, for a person who stays.
//!
//! - [`core`] decides and never waits: `Core::on(Input) -> Vec<Effect>`. Keys, events of the followed
//!   agent and answers of calls come in; lines to print and things to ask the server go out. What else
//!   it has to show is a small [`screen::Foot`]: the open block of an answer, what goes on, what is
//!   asked, the input and a status line.
//! - `paint` makes bytes of it. Finished lines go into the terminal's own scrollback exactly once; the
//!   foot is drawn in place, in one synchronized write, only where it changed.
//! - [`drive`] waits and never decides: keys first, then the screen (at most thirty times a second),
//!   then answers and bounded batches of events. It talks to a [`drive::Face`] and a
//!   [`office::Office`], so that the simulation drives the same core with the same client.
//! - `follow` is the stream of one agent on a task that ends with it, and a second one of all agents,
//!   of which only questions and turns are read; `calls` is what is asked of a server; `history` keeps
//!   what was typed; `shell` is the real terminal, which is restored however the program ends; `lobby`
//!   and `choose` come before the conversation.
//!
//! Every text of somebody else is cleaned before it becomes part of a line (`clean`). A line editor of
//! our own (`editor`) because the ones there are want the loop, the terminal or both for themselves: here
//! the prompt goes away and comes back, and what is typed is kept while questions are asked.

mod calls;
pub mod choose;
pub mod clean;
pub mod commands;
pub mod core;
pub mod drive;
mod editor;
mod follow;
pub mod history;
pub mod interrupt;
pub mod key;
pub mod line;
pub mod lobby;
mod markdown;
mod menu;
pub mod office;
mod paint;
mod render;
mod room;
pub mod screen;
pub mod shell;
mod table;

/// What the terminal calls itself: the server remembers whom it followed last.
pub const CLIENT: &str = "terminal";
