//! An entry as a wire carries it: which bytes, when, and how it ends.
//! Pure but for [`Answer::body`], which plays the waits. Whoever plays a reply, over a socket or
//! without one, gives the client the same exchange. How records look is left to the wires.

mod anthropic; // messages
mod openai; // chat completions

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::sleep;

use super::{Ask, Chunks, Delivery, Entry, Fault, NoQuestion, Question, ScriptUsage, Stall, Wire};
use crate::limits::SCRIPT_SILENCE_MAX;

/// What stands where a script makes a provider complain.
const COMPLAINT: &str = "scripted fault";
/// The beginning of a document that does not come to its end.
const CUT_DOCUMENT: &str = "{\"id\":";
/// What stands for tool arguments that are no JSON object.
const BAD_ARGUMENTS: &str = "{\"cut off\": ";
/// Long enough that what was sent before has left when the connection breaks.
const BEFORE_A_BREAK: Duration = Duration::from_millis(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The wait before anything else.
    pub delay: Duration,
    pub opening: Opening,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The connection closes before any byte of an answer. A script cannot do more to refuse one:
    /// which entry answers is known only once the request has been read.
    Closes,
    /// Nothing comes, and the connection stays open.
    Silence,
    Answer(Answer),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub pieces: Vec<Piece>,
    pub end: End,
}

/// Bytes that are written at once, after a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub wait: Duration,
    pub bytes: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The body ends in order.
    Whole,
    /// The connection breaks within the body.
    Breaks,
    /// Nothing more comes, and the connection stays open.
    Silence,
}

/// The body breaks off here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script breaks the connection here")]
pub struct Broken;

impl Reply {
    /// The answer of `entry` to `question`.
    pub fn new(entry: &Entry, question: &Question) -> Self {
        let delay = entry.delay.map_or(Duration::ZERO, |delay| delay.0);
        let fault = entry.fault.clone().unwrap_or_default();
        let opening = match (fault.status, &fault.stall) {
            _ if fault.refuse => Opening::Closes,
            (_, Some(Stall::Headers)) => Opening::Silence,
            (Some(status), Some(Stall::Chunks(_)) | None) => {
                let status = StatusCode::from_u16(status).expect("the status was checked");
                let mut answer = complaint(question.wire, status, fault.complaint());
                if let Some(time) = fault.retry_after {
                    answer.headers.insert(RETRY_AFTER, whole_seconds(time.0).into());
                }
                Opening::Answer(answer.delivered(&fault))
            }
            (None, Some(Stall::Chunks(_)) | None) => {
                let answer = match question.delivery {
                    Delivery::Stream => streamed(entry, &fault, question),
                    Delivery::Document => whole(entry, &fault, question),
                };
                Opening::Answer(answer.delivered(&fault))
            }
        };
        Self { delay, opening }
    }

    /// What a request gets that no entry matches.
    pub fn unmatched(question: &Question) -> Self {
        let Question { agent, model, messages, .. } = question;
        let message = format!(
            "no entry of the script matches agent `{agent}`, model `{model}` and message {messages}"
        );
        Self::at_once(complaint(question.wire, StatusCode::INTERNAL_SERVER_ERROR, &message))
    }

    /// What a request gets that cannot be read.
    pub fn refused(reason: NoQuestion) -> Self {
        let wire = match reason {
            NoQuestion::Body { wire } => wire,
            // Whoever asks elsewhere speaks neither wire; the words of the more common one are as good.
            NoQuestion::Path => Wire::Openai,
        };
        Self::at_once(complaint(wire, StatusCode::BAD_REQUEST, &reason.to_string()))
    }

    fn at_once(answer: Answer) -> Self {
        Self { delay: Duration::ZERO, opening: Opening::Answer(answer) }
    }
}

impl Answer {
    /// Plays the body: each piece after its wait, then the end. Silence ends too, after a time that
    /// is longer than any deadline a configuration may set.
    pub fn body(self) -> impl Stream<Item = Result<Bytes, Broken>> + Send + 'static {
        let pieces = self.pieces.into_iter();
        stream::unfold((pieces, Some(self.end)), |(mut pieces, end)| async move {
            if let Some(piece) = pieces.next() {
                if piece.wait.is_zero() {
                    // A piece is a write of its own: the one before leaves first.
                    tokio::task::yield_now().await;
                } else {
                    sleep(piece.wait).await;
                }
                return Some((Ok(piece.bytes), (pieces, end)));
            }
            match end? {
                End::Whole => return None,
                End::Breaks => sleep(BEFORE_A_BREAK).await,
                End::Silence => sleep(SCRIPT_SILENCE_MAX).await,
            }
            Some((Err(Broken), (pieces, None)))
        })
    }

    /// Cuts the body as the fault says.
    fn delivered(mut self, fault: &Fault) -> Self {
        if let Some(time) = fault.drip {
            self.pieces = cut(&self.pieces, 1);
            for piece in &mut self.pieces {
                piece.wait += time.0;
            }
        } else if let Some(bytes) = fault.split {
            self.pieces = cut(&self.pieces, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        self
    }
}

/// Cuts a body into pieces of `bytes` bytes, also across its records. Only a wait ends a piece early.
fn cut(pieces: &[Piece], bytes: usize) -> Vec<Piece> {
    let runs = pieces.chunk_by(|_, next| next.wait.is_zero());
    let cut = runs.flat_map(|run| {
        let joined: Vec<&[u8]> = run.iter().map(|piece| piece.bytes.as_ref()).collect();
        let joined = Bytes::from(joined.concat());
        let wait = run[0].wait;
        (0..joined.len()).step_by(bytes).map(move |start| Piece {
            wait: if start == 0 { wait } else { Duration::ZERO },
            bytes: joined.slice(start..joined.len().min(start.saturating_add(bytes))),
        })
    });
    cut.collect()
}

fn complaint(wire: Wire, status: StatusCode, message: &str) -> Answer {
    let body = match wire {
        Wire::Openai => openai::complaint(message),
        Wire::Anthropic => anthropic::complaint(status, message),
    };
    Answer {
        status,
        headers: content_type("application/json"),
        pieces: vec![Piece { wait: Duration::ZERO, bytes: body.into() }],
        end: End::Whole,
    }
}

fn streamed(entry: &Entry, fault: &Fault, question: &Question) -> Answer {
    let said = Said {
        chunks: chunks(entry, fault, question),
        last: Last::of(entry, fault),
        usage: entry.usage,
    };
    let (count, end) = cut_off(fault, said.chunks.len());
    let records = match question.wire {
        Wire::Openai => openai::records(question, &said),
        Wire::Anthropic => anthropic::records(question, &said),
    };
    let piece = |(wait, text): (Duration, String)| Piece { wait, bytes: text.into() };
    let at_once = |texts: Vec<String>| texts.into_iter().map(|text| (Duration::ZERO, text));
    let pause = entry.pause.map_or(Duration::ZERO, |pause| pause.0);
    let waits = std::iter::once(Duration::ZERO).chain(std::iter::repeat(pause));
    let mut pieces: Vec<Piece> =
        at_once(records.opening).chain(waits.zip(records.chunks).take(count)).map(piece).collect();
    if end == End::Whole {
        pieces.extend(at_once(records.closing).map(piece));
    }
    Answer { status: StatusCode::OK, headers: content_type("text/event-stream"), pieces, end }
}

/// The same answer as one document, which is there when the last chunk of a stream would be. What breaks a
/// stream off breaks off within the document.
fn whole(entry: &Entry, fault: &Fault, question: &Question) -> Answer {
    let said = Said {
        chunks: chunks(entry, fault, question),
        last: Last::of(entry, fault),
        usage: entry.usage,
    };
    let (count, end) = cut_off(fault, said.chunks.len());
    let (body, end) = match (&said.last, end) {
        (Last::Complaint(message), End::Whole) => {
            return complaint(question.wire, StatusCode::INTERNAL_SERVER_ERROR, message);
        }
        (Last::Finish(why), End::Whole) => {
            let body = match question.wire {
                Wire::Openai => openai::document(question, &said, why),
                Wire::Anthropic => anthropic::document(question, &said, why),
            };
            (body, End::Whole)
        }
        (Last::Garbage, End::Whole) => (CUT_DOCUMENT.to_owned(), End::Whole),
        (Last::Nothing, End::Whole) => (CUT_DOCUMENT.to_owned(), End::Breaks),
        (_, end @ (End::Breaks | End::Silence)) => (CUT_DOCUMENT.to_owned(), end),
    };
    let pause = entry.pause.map_or(Duration::ZERO, |pause| pause.0);
    let pauses = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
    let pieces = vec![Piece { wait: pause.saturating_mul(pauses), bytes: body.into() }];
    Answer { status: StatusCode::OK, headers: content_type("application/json"), pieces, end }
}

/// A streamed answer as a wire writes it. Each text is written at once.
struct Records {
    /// Before the first chunk, whatever follows.
    opening: Vec<String>,
    /// One text for each chunk of the entry, however many records it takes.
    chunks: Vec<String>,
    closing: Vec<String>,
}

/// All that an entry says, before a wire writes it.
struct Said<'a> {
    chunks: Vec<Chunk<'a>>,
    last: Last<'a>,
    usage: Option<ScriptUsage>,
}

/// What a model thinks, says or asks for at once.
enum Chunk<'a> {
    Thinks(&'a str),
    Says(&'a str),
    Asks(Call<'a>),
}

struct Call<'a> {
    index: usize,
    /// Which a model may have forgotten.
    id: Option<String>,
    name: &'a str,
    arguments: String,
}

impl Fault {
    /// What is said of it.
    fn complaint(&self) -> &str {
        self.message.as_deref().unwrap_or(COMPLAINT)
    }
}

/// What follows the last chunk.
enum Last<'a> {
    /// A record that is no JSON.
    Garbage,
    /// An error object.
    Complaint(&'a str),
    Nothing,
    Finish(Finish<'a>),
}

/// Why a model ends its answer.
enum Finish<'a> {
    /// It has said what it had to say.
    Said,
    /// It waits for its tools.
    Asked,
    /// For what the entry says, in the words of chat completions.
    Named(&'a str),
}

impl<'a> Last<'a> {
    fn of(entry: &'a Entry, fault: &'a Fault) -> Self {
        if fault.bad_json {
            return Self::Garbage;
        }
        if fault.error_in_stream {
            return Self::Complaint(fault.complaint());
        }
        if fault.eof_without_finish {
            return Self::Nothing;
        }
        Self::Finish(match entry.finish.as_deref() {
            Some(name) => Finish::Named(name),
            None if entry.asks.is_empty() => Finish::Said,
            None => Finish::Asked,
        })
    }
}

/// How many chunks are sent, and what follows them. A fault after more chunks than there are comes
/// after the last one: it always takes effect, and before the finish.
fn cut_off(fault: &Fault, chunks: usize) -> (usize, End) {
    let at = |count: u64| usize::try_from(count).map_or(chunks, |count| count.min(chunks));
    let silence = match fault.stall {
        Some(Stall::Chunks(count)) => Some(at(count)),
        Some(Stall::Headers) | None => None,
    };
    match (silence, fault.reset_after.map(at)) {
        (Some(silence), Some(reset)) if reset < silence => (reset, End::Breaks),
        (Some(silence), _) => (silence, End::Silence),
        (None, Some(reset)) => (reset, End::Breaks),
        (None, None) => (chunks, End::Whole),
    }
}

fn chunks<'a>(entry: &'a Entry, fault: &Fault, question: &Question) -> Vec<Chunk<'a>> {
    let call = |(index, ask): (usize, &'a Ask)| {
        let place = if fault.duplicate_tool_ids { 0 } else { index };
        Chunk::Asks(Call {
            index,
            // Counted over the conversation, as servers' own ids differ over all of it.
            id: (!fault.missing_tool_ids).then(|| format!("call_{}", question.calls + place + 1)),
            name: &ask.tool,
            arguments: if fault.bad_arguments { BAD_ARGUMENTS.to_owned() } else { ask.arguments() },
        })
    };
    let thinks = texts(entry.thinks.as_ref()).iter().map(|text| Chunk::Thinks(text));
    let says = texts(entry.says.as_ref()).iter().map(|text| Chunk::Says(text));
    thinks.chain(says).chain(entry.asks.iter().enumerate().map(call)).collect()
}

fn texts(chunks: Option<&Chunks>) -> &[String] {
    match chunks {
        Some(Chunks::One(text)) => std::slice::from_ref(text),
        Some(Chunks::Many(texts)) => texts,
        None => &[],
    }
}

fn content_type(value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))])
}

/// `Retry-After` knows whole seconds only.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
