//! Every bound of the server, in one place. A full queue, a long body or a slow peer meets one of
//! these numbers and gets a clear answer; what a configuration may change has its default here.

mod mcp;
pub mod terminal;

use std::time::Duration;

pub use mcp::*;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

// Ids.
pub const AGENT_ID_CHARS_MAX: usize = 63;
/// An id and the number of an agent.
pub const NOTE_BYTES_MAX: u64 = 128;
pub const REQUEST_ID_CHARS_MAX: usize = 128;
pub const CLIENT_NAME_CHARS_MAX: usize = 64;
pub const AUTO_AGENT_ID_HEX: usize = 8;
pub const AUTO_AGENT_ID_DRAWS_MAX: usize = 16;
pub const AUTO_REQUEST_ID_HEX: usize = 16;
pub const CONFIRM_ID_HEX: usize = 16;

// Receiving a request.
pub const BODY_BYTES_MAX: usize = MIB;
pub const HEADER_BYTES_MAX: usize = 32 * KIB;
pub const HEADER_FIELDS_MAX: usize = 128;
pub const REQUEST_RECEIVE_MAX: Duration = Duration::from_secs(30);
pub const IDLE_CONNECTION_MAX: Duration = Duration::from_secs(75);
/// A peer that takes no byte of its answer for this long is cut off.
pub const WRITE_STALL_MAX: Duration = Duration::from_secs(30);
pub const DRAIN_BYTES_MAX: usize = 2 * MIB;
pub const DRAIN_MAX: Duration = Duration::from_secs(1);
/// hyper's own limits lie above ours, so that ours answer.
pub const LIBRARY_HEADER_BYTES_MAX: usize = 128 * KIB;
pub const LIBRARY_HEADER_FIELDS_MAX: usize = 512;

// Connections.
pub const CONNECTIONS_MAX: usize = 1024;
/// Handles the server needs besides its connections: storage, logs, providers, programs.
pub const HANDLES_RESERVED: usize = 256;
/// Connections over the limit that are told so at the same time; further ones are just closed.
pub const REFUSALS_AT_ONCE_MAX: usize = 64;
pub const EXECUTING_MAX: usize = 32;
/// Agents that are created, restored or destroyed at once; a change of permissions waits for all.
pub const FAMILIES_AT_ONCE_MAX: usize = 1024;
pub const RETRY_AFTER_SECONDS: u64 = 1;
/// How long open connections may take to write their last answers once the server has stopped.
pub const CLOSE_CONNECTIONS_MAX: Duration = Duration::from_secs(5);
/// Connections that wait to be accepted.
pub const BACKLOG: u32 = 1024;
/// What the system may hold of an answer that its reader does not take (Linux doubles it).
pub const SEND_BUFFER_BYTES: u32 = 64 * 1024;
pub const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

// JSON-RPC.
/// How much of an unknown name stands in the message about it.
pub const NAME_CHARS_SHOWN_MAX: usize = 80;
pub const BATCH_ENTRIES_MAX: usize = 64;
pub const MESSAGES_PAGE_DEFAULT: u64 = 200;
pub const MESSAGES_PAGE_MAX: u64 = 2000;

// Agents.
pub const INBOX_MAX: usize = 64;
pub const WAITING_SENDS_MAX: usize = 32;
pub const REQUESTS_KEPT_MAX: usize = 1000;
pub const DEPTH_MAX: u32 = 5;
pub const DESTROY_WAIT_MAX: Duration = Duration::from_secs(5);
/// Chunks and results that wait for their agent; a model that is faster waits for it.
pub const WORK_QUEUE_MAX: usize = 64;
/// Texts of messages that are kept as they are written to a model as well.
pub const BLOCK_WRITTEN_BYTES_MAX: usize = 16 * KIB;
pub const TIMEOUT_SECONDS_MAX: f64 = 30.0 * 86_400.0;
/// The most that an agent's limits can name, and the most that is ever counted against them: every
/// reader of JSON can hold it exactly.
pub const LIMIT_AMOUNT_MAX: u64 = (1 << 53) - 1;
/// Ten years.
pub const LIMIT_SECONDS_MAX: f64 = 10.0 * 365.0 * 86_400.0;

// Events.
pub const EVENT_PARAMS_CHARS_MAX: usize = 200;
pub const EVENT_OUTPUT_CHARS_MAX: usize = 2000;
pub const EVENTS_KEPT_PER_AGENT: u64 = 10_000;
pub const EVENTS_KEPT_DAYS: u64 = 30;
/// Times that a stream is tried to be opened whose agent leaves in that moment.
pub const STREAM_OPENINGS_MAX: usize = 3;
pub const STREAMS_PER_AGENT_MAX: usize = 128;
pub const STREAMS_MAX: usize = 512;
/// What a slow reader may hold besides the event being written.
pub const STREAM_BUFFER_BYTES_MAX: usize = 256 * KIB;
/// Frames that wait are written together up to this.
pub const STREAM_WRITE_BYTES_MAX: usize = 16 * KIB;
/// So many writes follow each other at once; while more of them would, there is a pause between.
pub const STREAM_HURRIED_LOOKS_MAX: u32 = 16;
pub const STREAM_PAUSE: Duration = Duration::from_millis(1);
pub const STREAM_PING_AFTER: Duration = Duration::from_secs(15);

// The store.
/// Jobs that wait for the database; whoever asks for more waits to be let in.
pub const STORE_QUEUE_MAX: usize = 1024;
/// Jobs that are done in one go, the commits among them in one transaction.
pub const STORE_BATCH_MAX: usize = 256;
/// What SQLite keeps of the database in memory.
pub const STORE_CACHE_KIB: i64 = 2048;
/// Statements that stay prepared: more than there are.
pub const STORE_STATEMENTS_KEPT: usize = 64;
/// Pages in the write-ahead log from which on they are copied into the database.
pub const STORE_LOG_PAGES: u32 = 1000;
/// Messages of a conversation that are in memory (`max_messages`); all of them are in the database.
pub const MESSAGES_LOADED_MAX: usize = 1000;
/// How long after a failed write an agent tries again to write what it owes.
pub const STORAGE_RETRY_AFTER: Duration = Duration::from_secs(1);
/// Events that are read at a time; their bytes are bounded by `STREAM_BUFFER_BYTES_MAX`.
pub const EVENTS_PAGE_MAX: usize = 256;
/// Events that grow too old are forgotten so many at a time, so that commits get in between.
pub const EVENTS_FORGOTTEN_AT_ONCE_MAX: usize = 1000;
pub const EVENTS_FORGET_EVERY: Duration = Duration::from_hours(1);
/// Agents whose kept events are counted in memory; beyond that the counting starts again.
pub const EVENT_COUNTS_MAX: usize = 4096;
/// Agents of which the writer knows without asking that they are there, or are not.
pub const KNOWN_AGENTS_MAX: usize = 4096;
/// A database is read as often before it counts as damaged.
pub const DAMAGE_SEEN_TIMES: u32 = 32;
/// How often all of it is read meanwhile, which takes long where it is large.
pub const DAMAGE_READ_TIMES: u32 = 5;
const _: () = assert!(DAMAGE_READ_TIMES <= DAMAGE_SEEN_TIMES, "it is read where it is seen");
/// Damaged databases that were set aside in the same millisecond.
pub const SET_ASIDE_NAMES_MAX: u32 = 100;

// Sessions.
/// A session file, and what a session may have as JSON.
pub const SESSION_FILE_BYTES_MAX: usize = 48 * MIB;
/// What it may have of members that we do not know.
pub const SESSION_UNKNOWN_BYTES_MAX: usize = MIB;
/// Files of sessions that are looked at for one list.
pub const SESSIONS_LISTED_MAX: usize = 100_000;
pub const SESSIONS_PAGE_DEFAULT: u64 = 50;
pub const SESSIONS_PAGE_MAX: u64 = 500;
/// Messages that are read at a time for a session, so that commits get in between.
pub const SESSION_MESSAGES_PAGE: u64 = 500;
/// Places that order what is done to sessions, by their names.
pub const SESSION_DESKS: usize = 64;
/// Turns whose agents wait to be exported; beyond that all that are exported are looked at.
pub const EXPORT_QUEUE_MAX: usize = 1024;
/// An agent's session file is written at most once in this time.
pub const EXPORT_EVERY: Duration = Duration::from_secs(1);
/// When a session file is tried again that could not be written.
pub const EXPORT_AGAIN: Duration = Duration::from_secs(30);
/// How long the last exports may take once the server stops.
pub const EXPORT_CLOSE_MAX: Duration = Duration::from_secs(5);

// What is left of agents that are gone.
/// Rows that one commit removes of it.
pub const PRUNED_ROWS_AT_ONCE_MAX: usize = 1000;
/// Agents that are looked for at a time.
pub const PRUNED_AGENTS_PAGE: usize = 200;
/// Agents that one call removes; what is left waits for the next.
pub const PRUNED_AGENTS_MAX: usize = 100_000;
/// A hundred years.
pub const PRUNED_DAYS_MAX: u64 = 36_525;

// Logs of agents.
/// What may wait for the disk, the batch it is busy with included; the rest is counted and dropped.
pub const LOG_QUEUE_BYTES_MAX: usize = 16 * MIB;
pub const LOG_QUEUE_ENTRIES_MAX: usize = 4096;
/// What is written in one go.
pub const LOG_BATCH_ENTRIES_MAX: usize = 512;
/// Read at once of a log that is continued under another id.
pub const LOG_CARRY_BYTES: usize = 64 * 1024;
/// How long the first entry of a batch waits for others.
pub const LOG_GATHER: Duration = Duration::from_millis(50);
/// One text in a log.
pub const LOG_TEXT_BYTES_MAX: usize = MIB;
/// A tool's arguments or result in a log.
pub const LOG_PREVIEW_BYTES_MAX: usize = 16 * KIB;
/// The body of one provider's request or answer in a log.
pub const LOG_RAW_BODY_BYTES_MAX: usize = 4 * MIB;
/// Files of which it is known by name that they lack entries.
pub const LOG_LACKING_FILES_MAX: usize = 1024;
/// Lacking files without new entries that are told so in one go.
pub const LOG_LACKING_AT_ONCE_MAX: usize = 64;
pub const LOG_CLOSE_MAX: Duration = Duration::from_secs(5);

// Recordings.
/// What may wait to be taken into a recording; more ends it.
pub const RECORD_QUEUE_BYTES_MAX: usize = 32 * MIB;
pub const RECORD_QUEUE_NOTES_MAX: usize = 64 * 1024;
pub const RECORD_NOTES_AT_ONCE_MAX: usize = 512;
/// What a recording holds, in memory and in its file; then it ends.
pub const RECORD_BYTES_MAX: usize = 64 * MIB;
/// Of one file that was read, and of all of them; what is longer stands there by its length.
pub const RECORD_FILE_BYTES_MAX: usize = MIB;
pub const RECORD_FILES_BYTES_MAX: usize = 16 * MIB;
/// Of the conversations that agents had before; those of others are missing.
pub const RECORD_EARLIER_BYTES_MAX: usize = 8 * MIB;
/// Directories of agents in which what is listed is kept.
pub const RECORD_ROOTS_MAX: usize = 64;
/// Pieces of one answer; neighbours are joined where there are more.
pub const RECORD_CHUNKS_MAX: usize = 256;
/// The newest events and moments that a step can be put after.
pub const RECORD_MOMENTS_MAX: usize = 4096;
pub const RECORD_WRITE_EVERY: Duration = Duration::from_secs(1);
/// Its file is left alone for this many times as long as writing it took.
pub const RECORD_WRITE_REST: u32 = 20;
pub const RECORD_CLOSE_MAX: Duration = Duration::from_secs(10);

// Turns.
pub const TOOL_ITERATIONS_MAX: u32 = 100;
pub const CONCURRENT_TOOLS_MAX: usize = 5;
pub const TOOL_CALLS_PER_MESSAGE_MAX: usize = 128;
pub const SKILL_TIMEOUT_SECONDS: f64 = 300.0;
pub const TURN_TIMEOUT_SECONDS: f64 = 3600.0;
pub const CONFIRMATION_TIMEOUT_SECONDS: f64 = 120.0;
/// Confirmations of one agent that nobody has decided yet: one for each call that waits.
pub const CONFIRMATIONS_PENDING_MAX: usize = CONCURRENT_TOOLS_CONFIGURED_MAX;
/// Those of all agents that were decided and whose decision is still told.
pub const CONFIRMATIONS_KEPT_MAX: usize = 1000;
/// Answers that wait until the first one to the same confirmation is written.
pub const CONFIRMATION_ANSWERS_MAX: usize = 64;
/// How much of one text among a call's arguments is shown to whoever confirms it.
pub const CONFIRMATION_TEXT_CHARS_MAX: usize = 8000;
/// How many bytes of all of them.
pub const CONFIRMATION_PARAMS_BYTES_MAX: usize = 64 * KIB;
pub const SLEEP_TOOL_SECONDS_MAX: f64 = 3600.0;
pub const EMPTY_ANSWERS_MAX: u32 = 2;

// Files, as tools see them.
/// The largest file that is read.
pub const FILE_READ_BYTES_MAX: u64 = 10 * MIB as u64;
/// What a tool gives back at most, its notes included.
pub const RESULT_BYTES_MAX: usize = MIB;
pub const RESULT_LINES_MAX: usize = 10_000;
/// The part of a result that is kept free for notes about what is missing.
pub const RESULT_NOTES_BYTES_MAX: usize = 8 * KIB;
pub const PATH_BYTES_MAX: usize = 4096;
/// How much of a path stands in the message about it.
pub const PATH_CHARS_SHOWN_MAX: usize = 300;
pub const LINKS_FOLLOWED_MAX: usize = 40;
/// How often a path is decided on anew because something changed before it was opened.
pub const PATH_DECISIONS_MAX: usize = 8;
/// Calls that use files at the same time, of all agents together; further ones wait.
pub const FILE_JOBS_MAX: usize = 16;
/// What one of them holds open at most.
pub const FILE_JOB_HANDLES_MAX: usize = 4;
/// Files of which an agent remembers what it read.
pub const FILES_SEEN_MAX: usize = 1000;
pub const WALK_ENTRIES_MAX: usize = 200_000;
pub const WALK_DEPTH_MAX: usize = 128;
/// A pattern for names or text.
pub const PATTERN_BYTES_MAX: usize = 4 * KIB;
/// A compiled pattern for text.
pub const REGEX_BYTES_MAX: usize = MIB;
pub const GLOB_EXCLUDES_MAX: usize = 100;
pub const GLOB_RESULTS: u64 = 100;
pub const SEARCH_MATCHES: u64 = 100;
pub const SEARCH_CONTEXT_LINES_MAX: u64 = 100;
/// How much of one line a search shows.
pub const SEARCH_LINE_BYTES_MAX: usize = 1000;
/// And of that, how much before the match.
pub const SEARCH_LINE_BYTES_BEFORE: usize = 200;
/// Names that are told of each kind of thing a search skipped.
pub const SKIPPED_NAMES_MAX: usize = 3;
pub const IGNORE_FILE_BYTES_MAX: u64 = 256 * KIB as u64;
pub const TAIL_LINES: u64 = 10;
/// Problems of one call's arguments that are told in one go.
pub const ARGUMENT_PROBLEMS_MAX: usize = 5;

// Programs.
/// Programs that run at the same time, of all agents together; further ones wait.
pub const PROGRAMS_MAX: usize = 16;
/// What the server holds open for one of them: three pipes and a socket.
pub const PROGRAM_HANDLES_MAX: usize = 4;
/// How long a program may take to end after it was asked to, before it is killed.
pub const PROGRAM_GRACE: Duration = Duration::from_secs(2);
/// How long a program may take to be there, its supervisor included.
pub const PROGRAM_START_MAX: Duration = Duration::from_secs(30);
/// How long killed programs are waited for; what cannot be killed stays behind with its supervisor.
pub const PROGRAM_END_MAX: Duration = Duration::from_secs(4);
/// What a supervisor is told to start: larger than any argument list the system takes, as bytes that
/// take up to four characters each.
pub const PROGRAM_INSTRUCTIONS_BYTES_MAX: usize = 16 * MIB;
pub const PROGRAM_SECONDS: f64 = 30.0;
pub const PROGRAM_SECONDS_MAX: f64 = 300.0;
/// Paths that are granted to one program; what is left out cannot be reached.
pub const PROGRAM_GRANTS_MAX: usize = 4096;
/// What is kept of the beginning, and of the end, of one output while a program runs.
pub const PROGRAM_OUTPUT_HALF_BYTES: usize = 512 * KIB;

// Models.
pub const CONTEXT_WINDOW_TOKENS: u64 = 131_072;
pub const OUTPUT_TOKENS_RESERVED: u64 = 4096;
/// A model may not grow one answer beyond this, whatever it streams.
pub const ANSWER_BYTES_MAX: usize = 8 * MIB;
/// One line of a provider's event stream.
pub const SSE_LINE_BYTES_MAX: usize = 4 * MIB;
/// What is read of a provider's error body.
pub const ERROR_BODY_BYTES_MAX: usize = 16 * KIB;
pub const PROVIDER_REQUEST_SECONDS: f64 = 120.0;
pub const PROVIDER_STREAM_IDLE_SECONDS: f64 = 60.0;
/// How often a request to a model that failed in passing is repeated.
pub const PROVIDER_RETRIES: u32 = 3;
pub const PROVIDER_RETRIES_CONFIGURED_MAX: u32 = 20;
/// The bound of the first wait before a repetition; it doubles with each.
pub const PROVIDER_BACKOFF_FIRST: Duration = Duration::from_millis(500);
pub const PROVIDER_BACKOFF_MAX: Duration = Duration::from_secs(30);
/// What a provider may ask for at most.
pub const PROVIDER_RETRY_AFTER_MAX: Duration = Duration::from_mins(1);
/// The name of a model, as its provider knows it.
pub const MODEL_ID_BYTES_MAX: usize = 256;
/// How long a provider that is only asked whether it is there may take.
pub const PROVIDER_PROBE_MAX: Duration = Duration::from_secs(5);
/// How often one request follows a provider or an MCP server that sends it elsewhere.
pub const REDIRECTS_MAX: u32 = 3;
/// Connections to one host that are kept for later requests.
pub const HTTP_IDLE_CONNECTIONS_MAX: usize = 32;
/// How long they are kept: shorter than the minute after which many servers give theirs up.
pub const HTTP_IDLE_CONNECTION_MAX: Duration = Duration::from_secs(50);
/// A peer that is silent for this long is asked whether it is still there, so often, so many times.
pub const HTTP_KEEP_ALIVE_AFTER: Duration = Duration::from_secs(30);
pub const HTTP_KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);
pub const HTTP_KEEP_ALIVE_PROBES_MAX: u32 = 3;
/// What may follow the closing record of an answer, in bytes and time, for its connection to be kept.
pub const BODY_REST_BYTES_MAX: usize = 4 * KIB;
pub const BODY_REST_MAX: Duration = Duration::from_secs(1);
/// A file with certificates of authorities.
pub const CA_FILE_BYTES_MAX: u64 = MIB as u64;
/// A file that holds a provider's key.
pub const KEY_BYTES_MAX: u64 = 16 * KIB as u64;
/// A file with a scripted model's answers.
pub const SCRIPT_BYTES_MAX: u64 = MIB as u64;
/// How long a scripted model that falls silent holds a connection: longer than any deadline.
pub const SCRIPT_SILENCE_MAX: Duration = Duration::from_hours(31 * 24);
pub const TOKEN_PIECE_BYTES_MAX: usize = 64 * KIB;

// Contexts.
/// What a wire puts around a message, and around a call, besides their texts.
pub const MESSAGE_TOKENS: u64 = 4;
pub const CALL_TOKENS: u64 = 8;
/// The share of what a model takes from which on older messages become a summary.
pub const COMPACTION_THRESHOLD: f64 = 0.9;
/// The share of it that the newest messages may have to stay as they are.
pub const COMPACTION_KEPT: f64 = 0.25;
/// How long a summary may take, repetitions included.
pub const COMPACTION_MAX: Duration = Duration::from_mins(10);
/// The longest summary; never more than a quarter of what the model takes.
pub const SUMMARY_TOKENS_MAX: u64 = 4096;
/// The least that is left of a text that is shortened: enough for the note that says so.
pub const SHORTENED_TOKENS_MIN: u64 = 64;
/// How often the right length of a shortened text is guessed before a safe one is taken.
pub const SHORTENING_GUESSES_MAX: u32 = 6;
/// A file that is part of a system prompt, and all of them together.
pub const PROMPT_FILE_BYTES_MAX: usize = 64 * KIB;
pub const PROMPT_FILES_BYTES_MAX: usize = 256 * KIB;
/// Directories between a repository's root and a working directory that are looked into.
pub const PROJECT_DIRS_MAX: usize = 64;

// Stopping.
pub const SHUTDOWN_GRACE_SECONDS: f64 = 10.0;
/// How long a server that stops waits for agents that come or go, once all turns have ended.
pub const FAMILIES_REST_MAX: Duration = Duration::from_secs(5);

// The client.
pub const CLIENT_CONNECT_MAX: Duration = Duration::from_secs(2);
pub const CLIENT_CALL_MAX: Duration = Duration::from_mins(1);
pub const CLIENT_ANSWER_BYTES_MAX: usize = 64 * MIB;
/// An event stream on which nothing comes for this long is dead.
pub const CLIENT_STREAM_SILENCE_MAX: Duration = Duration::from_secs(45);
/// A send that has no answer by then is asked for.
pub const CLIENT_ASK_AFTER: Duration = Duration::from_secs(30);
pub const CLIENT_ASK_EVERY: Duration = Duration::from_secs(15);
/// A server that broke a connection may be starting again.
pub const CLIENT_ASK_AFTER_LOSS: Duration = Duration::from_secs(1);
/// Before a lost stream is opened again; twice as long with each attempt.
pub const CLIENT_REOPEN_AFTER: Duration = Duration::from_millis(250);
pub const CLIENT_REOPEN_AFTER_MAX: Duration = Duration::from_secs(5);
pub const IN_PROCESS_WIRE_BYTES: usize = 64 * KIB;
pub const IN_PROCESS_BACKLOG_MAX: usize = 128;

// Files.
pub const CONFIG_BYTES_MAX: u64 = MIB as u64;
/// Problems of one configuration file that are told in one go.
pub const CONFIG_PROBLEMS_MAX: usize = 50;

/// The list of trusted projects.
pub const TRUSTED_BYTES_MAX: u64 = 4 * MIB as u64;

// Edits of files.
/// What an edit may make of a file: as much as is read of one.
pub const EDIT_RESULT_BYTES_MAX: usize = 10 * MIB;
/// Places of one file that one edit changes.
pub const EDIT_PLACES_MAX: usize = 100_000;
/// Edits of one `edit_file_batch`.
pub const BATCH_EDITS_MAX: usize = 256;
/// Lines that are compared in search of what comes close to a text that is not there.
pub const NEAR_COMPARISONS_MAX: usize = 1_000_000;
/// How far from where it says a hunk of a diff is looked for, in both directions.
pub const PATCH_OFFSET_LINES_MAX: usize = 1000;
pub const EDIT_PATTERN_BYTES_MAX: usize = 64 * KIB;
/// What a regular expression may take once compiled. The time of a search grows with it.
pub const PATTERN_COMPILED_BYTES_MAX: usize = MIB;
/// Lines shown before and after each change.
pub const SNIPPET_CONTEXT_LINES: usize = 2;
/// Changes of one edit whose surroundings are shown, lines of one of them, and characters of a line.
pub const SNIPPET_SPANS_MAX: usize = 5;
pub const SNIPPET_LINES_MAX: usize = 20;
pub const SNIPPET_LINE_CHARS_MAX: usize = 200;
/// Line numbers, or other short facts, of which one message tells.
pub const SNIPPET_NUMBERS_MAX: usize = 10;
/// What is in memory at a time of a file that is copied.
pub const COPY_PIECE_BYTES: usize = 256 * KIB;
pub const COPY_BYTES_MAX: u64 = 1024 * MIB as u64;
/// What is looked at of a file's end to see how its lines end.
pub const APPEND_SAMPLE_BYTES: usize = 16 * KIB;

// Scripted models and scenarios.
/// The longest time a scenario can name: a year.
pub const SCRIPT_TIME_MAX: Duration = Duration::from_hours(365 * 24);

// What a configuration may ask for at most.
pub const TOOL_ITERATIONS_CONFIGURED_MAX: u32 = 100_000;
pub const CONCURRENT_TOOLS_CONFIGURED_MAX: usize = TOOL_CALLS_PER_MESSAGE_MAX;
pub const CONNECTIONS_CONFIGURED_MAX: usize = 65_536;
pub const EXECUTING_CONFIGURED_MAX: usize = 65_536;
/// Custom presets that a custom preset may stand on.
pub const PRESET_CHAIN_MAX: usize = 16;
pub const CONTEXT_WINDOW_TOKENS_MAX: u64 = 1_000_000_000;
pub const MESSAGES_LOADED_CONFIGURED_MAX: usize = 100_000;
pub const EVENTS_KEPT_CONFIGURED_MAX: u64 = 100_000_000;
pub const EVENTS_KEPT_DAYS_CONFIGURED_MAX: u64 = 36_500;

const _: () =
    assert!(HEADER_BYTES_MAX < LIBRARY_HEADER_BYTES_MAX, "our 431 has a body, hyper's none");
const _: () =
    assert!(HEADER_FIELDS_MAX < LIBRARY_HEADER_FIELDS_MAX, "our 431 has a body, hyper's none");
const _: () =
    assert!(DRAIN_BYTES_MAX > BODY_BYTES_MAX, "a body just over the limit is drained whole");
const _: () = assert!(
    CLIENT_STREAM_SILENCE_MAX.as_secs() >= 3 * STREAM_PING_AFTER.as_secs(),
    "a stream is given up only after several pings that did not come"
);
const _: () =
    assert!(WAITING_SENDS_MAX < INBOX_MAX, "a full queue of sends leaves room for a cancel");
const _: () = assert!(
    SCRIPT_SILENCE_MAX.as_secs_f64() > TIMEOUT_SECONDS_MAX,
    "who waits for a silent model gives up before it does"
);
const _: () = assert!(
    2 * LOG_TEXT_BYTES_MAX < LOG_QUEUE_BYTES_MAX
        && 2 * LOG_RAW_BODY_BYTES_MAX < LOG_QUEUE_BYTES_MAX,
    "the longest text fits into the queue, with what is written around it"
);
const _: () = assert!(
    2 * RECORD_FILE_BYTES_MAX + RECORD_EARLIER_BYTES_MAX < RECORD_QUEUE_BYTES_MAX
        && 2 * BODY_BYTES_MAX < RECORD_QUEUE_BYTES_MAX
        && 2 * ANSWER_BYTES_MAX < RECORD_QUEUE_BYTES_MAX,
    "whatever is recorded fits into the queue"
);
const _: () = assert!(
    RECORD_WRITE_EVERY.as_millis() >= 100,
    "a recording is replaced seldom enough not to wear a disk out"
);
const _: () = assert!(
    OUTPUT_TOKENS_RESERVED < CONTEXT_WINDOW_TOKENS
        && CONTEXT_WINDOW_TOKENS <= CONTEXT_WINDOW_TOKENS_MAX,
    "a model without numbers of its own has room for a question and an answer"
);
const _: () = assert!(
    MESSAGES_LOADED_MAX <= MESSAGES_LOADED_CONFIGURED_MAX
        && PROMPT_FILE_BYTES_MAX <= PROMPT_FILES_BYTES_MAX,
    "what is the default is allowed"
);
const _: () = assert!(
    TOOL_ITERATIONS_MAX <= TOOL_ITERATIONS_CONFIGURED_MAX
        && CONCURRENT_TOOLS_MAX <= CONCURRENT_TOOLS_CONFIGURED_MAX
        && CONNECTIONS_MAX <= CONNECTIONS_CONFIGURED_MAX
        && EXECUTING_MAX <= EXECUTING_CONFIGURED_MAX,
    "what a configuration leaves out could be written into it"
);
const _: () = assert!(
    2 * (FILE_JOBS_MAX * FILE_JOB_HANDLES_MAX + PROGRAMS_MAX * PROGRAM_HANDLES_MAX)
        <= HANDLES_RESERVED,
    "tools leave half of the reserved handles to the rest of the server"
);
const _: () = assert!(
    PROGRAM_GRACE.as_secs() < PROGRAM_END_MAX.as_secs()
        && PROGRAM_END_MAX.as_secs() < DESTROY_WAIT_MAX.as_secs(),
    "a destroyed agent waits until its programs were killed"
);
const _: () = assert!(
    SESSION_FILE_BYTES_MAX + SESSION_UNKNOWN_BYTES_MAX < CLIENT_ANSWER_BYTES_MAX
        && SESSIONS_PAGE_DEFAULT <= SESSIONS_PAGE_MAX,
    "what can be saved can be shown"
);
const _: () = assert!(PROGRAM_SECONDS <= PROGRAM_SECONDS_MAX, "the default is allowed");
const _: () = assert!(
    SEARCH_LINE_BYTES_BEFORE < SEARCH_LINE_BYTES_MAX
        && SEARCH_LINE_BYTES_MAX + PATH_BYTES_MAX < RESULT_BYTES_MAX - RESULT_NOTES_BYTES_MAX,
    "every line of a search fits into a result"
);
