//! The bounds of MCP servers and of what they may say.

use std::time::Duration;

use super::{KIB, MIB};

pub const MCP_SERVERS_MAX: usize = 64;
pub const MCP_SERVER_NAME_CHARS_MAX: usize = 32;
/// What providers take for the name of a tool.
pub const MCP_TOOL_NAME_CHARS_MAX: usize = 64;
/// Tools of one server; further ones are left out, and that is told.
pub const MCP_TOOLS_MAX: usize = 256;
pub const MCP_TOOL_PAGES_MAX: usize = 64;
/// Tools that are left out and told by name; of further ones only how many there are.
pub const MCP_REFUSED_TOLD_MAX: usize = 32;
/// A server whose tools change more often has the rest of the second to think about it.
pub const MCP_LISTS_PER_SECOND_MAX: u32 = 10;
/// The description and the schema of one tool.
pub const MCP_TOOL_BYTES_MAX: usize = 64 * KIB;
/// The descriptions and schemas of all tools of one server: they stand in every request to a model, and those
/// of one server must leave room in it.
pub const MCP_OFFER_BYTES_MAX: usize = 256 * KIB;
const _: () = assert!(MCP_TOOL_BYTES_MAX <= MCP_OFFER_BYTES_MAX, "one tool can be offered");
/// How deep a schema is followed when arguments are checked, and how far in all: what lies beyond is for the
/// server to judge.
pub const MCP_SCHEMA_DEPTH_MAX: usize = 32;
pub const MCP_SCHEMA_STEPS_MAX: usize = 10_000;
/// What a pattern of a schema may take up in memory.
pub const MCP_PATTERN_BYTES_MAX: usize = MIB;
/// Values of a list of choices that are told to a model that named none of them.
pub const MCP_CHOICES_TOLD_MAX: usize = 20;
/// One message of a server: a result is cut far below it.
pub const MCP_MESSAGE_BYTES_MAX: usize = 8 * MIB;
/// Messages that nobody asked for. A server that sends more has lost its way.
pub const MCP_UNASKED_PER_SECOND_MAX: u32 = 1000;
pub const MCP_MESSAGES_WAITING_MAX: usize = 16;
/// What a server has not taken yet of what it was sent. One that leaves more lying takes nothing.
pub const MCP_UNTAKEN_MAX: usize = 1024;
/// Until a server has said which tools it has.
pub const MCP_START_MAX: Duration = Duration::from_secs(30);
/// For a list of tools that has changed.
pub const MCP_LIST_MAX: Duration = Duration::from_secs(30);
/// For the head of an answer over HTTP: longer than any call takes that somebody waits for.
pub const MCP_HTTP_HEAD_MAX: Duration = Duration::from_hours(1);
/// Without a byte of a stream: then it is opened again.
pub const MCP_HTTP_SILENCE_MAX: Duration = Duration::from_hours(1);
/// For a server to hear that something is over.
pub const MCP_CLOSE_MAX: Duration = Duration::from_secs(3);
pub const MCP_RETRY_FIRST: Duration = Duration::from_secs(1);
pub const MCP_RETRY_MAX: Duration = Duration::from_mins(1);
/// A connection that lasted this long was a good one: the next wait is a first one again.
pub const MCP_STEADY_AFTER: Duration = Duration::from_mins(1);
pub const MCP_STDERR_LINES_KEPT: usize = 20;
pub const MCP_STDERR_LINE_CHARS_MAX: usize = 400;
/// Of a line, to find in it what nobody is shown before it is cut.
pub const MCP_STDERR_LINE_BYTES_MAX: usize = 16 * KIB;
/// What is read of an error output; a program that writes more waits.
pub const MCP_STDERR_PER_SECOND_MAX: usize = MIB;
pub const MCP_ERROR_CHARS_MAX: usize = 400;
pub const MCP_PROGRESS_WAITING_MAX: usize = 16;
pub const MCP_PROGRESS_CHARS_MAX: usize = 200;
