//! The bounds of the terminal: what it keeps, shows at once and waits for.

use std::time::Duration;

/// What was typed and can be had again.
pub const TYPED_KEPT_MAX: usize = 1000;
/// Of one input; what is pasted beyond it is left out.
pub const TYPED_BYTES_MAX: usize = 256 * 1024;
/// The part of an answer that is not finished yet; a longer one is printed in pieces.
pub const OPEN_BLOCK_BYTES_MAX: usize = 2 * 1024;
/// The same for a table, which is one only as a whole.
pub const OPEN_TABLE_BYTES_MAX: usize = 32 * 1024;
/// Lines that wait to be printed; at more, a frame is due at once.
pub const FINISHED_PENDING_MAX: usize = 500;
/// Events that are taken one after another before somebody else has a turn.
pub const EVENTS_AT_ONCE_MAX: usize = 16;
/// Of an answer, taken at once.
pub const TEXT_AT_ONCE_BYTES_MAX: usize = 1024;
/// What was said before, shown to those who come.
pub const MESSAGES_ON_ATTACH: u64 = 12;
/// Of one earlier message, in lines.
pub const MESSAGE_LINES_ON_ATTACH: usize = 24;
pub const COMPLETIONS_MAX: usize = 200;
/// Calls to the server at a time.
pub const CALLS_MAX: usize = 32;
/// The same for those that end what others wait for.
pub const ACTS_MAX: usize = 64;
const _: () = assert!(CALLS_MAX < ACTS_MAX, "there is room to cancel whatever goes on");
/// How often a message is sent again of which nobody knows whether it arrived.
pub const SEND_ATTEMPTS_MAX: u32 = 5;
/// Between two frames.
pub const FRAME_EVERY: Duration = Duration::from_millis(33);
/// Between two pictures of a spinner.
pub const TICK_EVERY: Duration = Duration::from_millis(120);
/// A second Ctrl-C leaves within this time.
pub const LEAVE_WITHIN: Duration = Duration::from_secs(2);
/// Who types while a question appears has not answered it.
pub const QUESTION_GUARD: Duration = Duration::from_millis(500);
/// How often it is looked at an agent, where messages come while it is.
pub const ATTACH_ATTEMPTS_MAX: u32 = 8;
/// The smallest terminal that is drawn for.
pub const COLUMNS_MIN: u16 = 10;
pub const ROWS_MIN: u16 = 3;
/// What was typed, as it is kept in the home.
pub const HISTORY_BYTES_MAX: usize = 512 * 1024;
/// A longer text is not kept.
pub const HISTORY_ENTRY_BYTES_MAX: usize = 16 * 1024;
const _: () = assert!(2 * HISTORY_ENTRY_BYTES_MAX < HISTORY_BYTES_MAX, "some of it can be kept");
/// Texts that wait to be kept; of more, the oldest are not.
pub const HISTORY_WAITING_MAX: usize = 100;
/// Another terminal has the lock for a moment.
pub const HISTORY_LOCK_ATTEMPTS_MAX: u32 = 100;
pub const HISTORY_LOCK_AFTER: Duration = Duration::from_millis(10);
/// Whoever leaves waits so long for what was typed to be kept, sent and done.
pub const LEAVING_MAX: Duration = Duration::from_secs(2);
/// Turns that were asked for here, and are known to be ours.
pub const OWN_KEPT_MAX: usize = 256;
/// Questions that wait for an answer; of more, the newest are not asked here.
pub const ASKED_MAX: usize = 256;
/// Questions that had their answer, and may be told of once more.
pub const SETTLED_KEPT_MAX: usize = 256;
/// Running turns of which is known who asked for them.
pub const TURNS_KEPT_MAX: usize = 1024;
/// Agents that are asked what they wait for when a terminal opens.
pub const SURVEY_AGENTS_MAX: usize = 32;
