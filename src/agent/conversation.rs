//! The messages of one agent, each with its token count once somebody asked for it, and what stands
//! for those that a model no longer sees.
//! Pure: counting itself is `tokens`; what may be appended when is `turn`; what fits is `context`.

use std::sync::Arc;

use super::tokens::{self, Count, Encoding};
use crate::message::{Message, check_pairs};
use crate::messages::Messages;

/// Which share of the messages in memory is let go of at a time.
const LET_GO_SHARE: usize = 8;

#[derive(Debug)]
pub struct Conversation {
    /// How many messages came before those in memory.
    earlier: usize,
    /// What stands for all of those: their summary, or else the first message.
    opening: Option<Arc<Entry>>,
    entries: Vec<Arc<Entry>>,
    /// The messages of opening and entries, as a model is shown them.
    shown: Messages,
    /// No less than the tokens of opening and entries.
    bytes: u64,
    /// By table: the first so many entries are counted, and have so many tokens together.
    counted: Counted,
    in_memory_max: usize,
}

/// What an agent had said and heard before it came into memory.
#[derive(Debug, Default)]
pub struct Remembered {
    /// How many messages there are in all.
    pub total: usize,
    /// What stands for those before the newest.
    pub opening: Option<Arc<Message>>,
    pub newest: Vec<Arc<Message>>,
}

/// Everything that a model would see, at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Where in the whole conversation the entries begin.
    pub first: usize,
    pub opening: Option<Arc<Entry>>,
    pub entries: Vec<Arc<Entry>>,
}

/// The tokens of a conversation, as far as they are known.
#[derive(Debug)]
pub struct MessageTokens {
    pub counted: u64,
    pub uncounted: Vec<Arc<Entry>>,
    /// No less than the tokens of what is not counted.
    pub uncounted_bytes: u64,
}

/// A message with what is known of its length.
#[derive(Debug)]
pub struct Entry {
    pub message: Arc<Message>,
    /// No less than its tokens.
    pub bytes: u64,
    tokens: Count,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    o200k: Prefix,
    cl100k: Prefix,
}

#[derive(Clone, Copy, Debug, Default)]
struct Prefix {
    entries: usize,
    tokens: u64,
}

impl Conversation {
    pub fn restored(past: Remembered, in_memory_max: usize) -> Self {
        let earlier = past.total.checked_sub(past.newest.len());
        let entries: Vec<_> = past.newest.into_iter().map(Entry::new).collect();
        let opening = past.opening.map(Entry::new);
        let bytes = opening.iter().chain(&entries).map(|entry| entry.bytes).sum();
        let shown = messages(opening.iter().chain(&entries));
        Self {
            shown,
            earlier: earlier.expect("no more messages than there are"),
            opening,
            entries,
            bytes,
            counted: Counted::default(),
            in_memory_max,
        }
    }

    pub fn append(&mut self, message: Arc<Message>) {
        self.shown.push(Arc::clone(&message));
        let entry = Entry::new(message);
        self.bytes += entry.bytes;
        self.entries.push(entry);
    }

    /// How many messages there are, those that are no longer in memory included.
    pub fn len(&self) -> usize {
        self.earlier + self.entries.len()
    }

    /// How many of the first `len` messages are whole: without a call whose result comes after them.
    pub fn whole(&self, len: usize) -> usize {
        let is_result = |entry: &Arc<Entry>| matches!(*entry.message, Message::Tool { .. });
        let known = len.checked_sub(self.earlier);
        let next = known.and_then(|known| self.entries.get(known));
        if !next.is_some_and(is_result) {
            return len;
        }
        let before = &self.entries[..known.unwrap_or_default()];
        let calls = before.iter().rposition(|entry| !is_result(entry));
        calls.map_or(len, |calls| self.earlier + calls)
    }

    /// Forgets the messages from the one of this index on, as if they had never been.
    pub fn truncate(&mut self, len: usize) {
        let kept = len.checked_sub(self.earlier).expect("only what is in memory can be taken back");
        let kept = kept.min(self.entries.len());
        self.bytes -= self.entries.drain(kept..).map(|entry| entry.bytes).sum::<u64>();
        self.shown.truncate(usize::from(self.opening.is_some()) + kept);
        self.counted = Counted::default();
    }

    /// Lets go of the oldest messages, which stay in the database, where too many are in memory: of more
    /// than it has to, so that most requests begin as the one before did. What is left begins with a
    /// user's message.
    pub fn shorten(&mut self) {
        if self.entries.len() <= self.in_memory_max {
            return;
        }
        let beyond = self.entries.len() - (self.in_memory_max - self.in_memory_max / LET_GO_SHARE);
        let is_user = |entry: &Arc<Entry>| matches!(*entry.message, Message::User { .. });
        let cut = self.entries[beyond..].iter().position(is_user).map(|place| beyond + place);
        let Some(cut) = cut else { return };
        let first = self.entries.first().filter(|entry| self.earlier == 0 && is_user(entry));
        let opening = self.opening.clone().or_else(|| first.cloned());
        self.let_go(cut, opening);
    }

    /// From now on `summary` stands for all messages before the one of the index `upto`.
    pub fn compact(&mut self, upto: usize, summary: Arc<Message>) {
        let cut = upto.checked_sub(self.earlier).expect("what is summed up was seen");
        self.let_go(cut, Some(Entry::new(summary)));
    }

    fn let_go(&mut self, cut: usize, opening: Option<Arc<Entry>>) {
        self.entries.drain(..cut);
        self.earlier += cut;
        self.opening = opening;
        self.bytes = self.opening.iter().chain(&self.entries).map(|entry| entry.bytes).sum();
        self.shown = messages(self.opening.iter().chain(&self.entries));
        self.counted = Counted::default();
    }

    /// What a model would see, and no less than its tokens.
    pub fn shown(&self) -> (&Messages, u64) {
        (&self.shown, self.bytes)
    }

    pub fn view(&self) -> View {
        let (opening, entries) = (self.opening.clone(), self.entries.clone());
        View { first: self.earlier, opening, entries }
    }

    /// What is known of the tokens, at a cost that does not grow with the history.
    pub fn tokens(&mut self, encoding: Encoding) -> MessageTokens {
        let prefix = match encoding {
            Encoding::O200k => &mut self.counted.o200k,
            Encoding::Cl100k => &mut self.counted.cl100k,
        };
        let next = |prefix: &Prefix| self.entries.get(prefix.entries)?.counted(encoding);
        while let Some(more) = next(prefix) {
            prefix.entries += 1;
            prefix.tokens += more;
        }
        let mut counted = prefix.tokens;
        let mut uncounted = self.entries[prefix.entries..].to_vec();
        if let Some(opening) = &self.opening {
            match opening.counted(encoding) {
                Some(tokens) => counted += tokens,
                None => uncounted.push(Arc::clone(opening)),
            }
        }
        let uncounted_bytes = uncounted.iter().map(|entry| entry.bytes).sum();
        MessageTokens { counted, uncounted, uncounted_bytes }
    }

    /// Asserts the invariant of a conversation for what one turn added from `first` on, so that
    /// the check does not grow with the history. What was summed up meanwhile was whole groups.
    pub fn assert_paired_since(&self, first: usize) {
        let added = &self.entries[first.saturating_sub(self.earlier)..];
        if let Err(broken) = check_pairs(added.iter().map(|entry| entry.message.as_ref())) {
            panic!("a conversation between turns is paired: {broken}");
        }
    }
}

fn messages<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>) -> Messages {
    entries.map(|entry| Arc::clone(&entry.message)).collect()
}

impl View {
    /// All of it, in order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.opening.iter().chain(&self.entries)
    }
}

impl Entry {
    pub fn new(message: Arc<Message>) -> Arc<Self> {
        let bytes = tokens::bytes(&message);
        Arc::new(Self { message, bytes, tokens: Count::default() })
    }

    /// Its tokens, if somebody has counted them.
    pub fn counted(&self, encoding: Encoding) -> Option<u64> {
        self.tokens.get(encoding)
    }

    /// Its tokens, counted now where nobody has.
    pub fn tokens(&self, encoding: Encoding) -> u64 {
        self.tokens.get_or_count(encoding, || encoding.message(&self.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ToolCall;

    const MAX: usize = 1000;

    fn user(content: &str) -> Arc<Message> {
        Arc::new(Message::User { content: content.into(), meta: None })
    }

    fn conversation(messages: usize) -> Conversation {
        let mut conversation = Conversation::restored(Remembered::default(), MAX);
        for number in 0..messages {
            let content = number.to_string();
            conversation.append(if number % 2 == 0 {
                user(&content)
            } else {
                Arc::new(Message::Assistant { content, tool_calls: Vec::new(), meta: None })
            });
        }
        conversation
    }

    /// What is shown, which is what a view has.
    fn shown(conversation: &Conversation) -> View {
        let (view, (shown, bytes)) = (conversation.view(), conversation.shown());
        assert!(view.all().map(|entry| &*entry.message).eq(shown.iter()));
        assert_eq!(bytes, view.all().map(|entry| entry.bytes).sum::<u64>());
        view
    }

    #[test]
    fn what_is_let_go_of_is_still_counted_and_the_first_message_stands_for_it() {
        let mut long = conversation(MAX + 3);
        long.shorten();
        assert_eq!(long.len(), MAX + 3);
        let view = shown(&long);
        let gone = 3 + MAX / LET_GO_SHARE;
        assert_eq!((view.first, view.entries.len()), (gone, MAX + 3 - gone));
        assert_eq!(view.entries[0].message, user(&gone.to_string()));
        assert_eq!(view.opening.as_ref().map(|opening| &opening.message), Some(&user("0")));
        long.truncate(MAX + 1);
        let view = shown(&long);
        assert_eq!(view.entries.len(), MAX + 1 - gone);
        // The next turns let go of nothing more.
        (0..MAX / LET_GO_SHARE).for_each(|_| long.append(user("more")));
        long.shorten();
        assert_eq!(shown(&long).first, gone);
    }

    #[test]
    fn a_short_conversation_stays_whole() {
        let mut short = conversation(MAX);
        short.shorten();
        let view = shown(&short);
        assert_eq!((view.entries.len(), view.opening.is_none()), (MAX, true));
    }

    #[test]
    fn calls_are_whole_only_with_all_of_their_results() {
        let call = |id: &str| ToolCall {
            id: id.to_owned(),
            name: "echo".to_owned(),
            arguments: serde_json::json!({}),
        };
        let tool_calls = vec![call("a"), call("b")];
        let mut asking = conversation(4);
        asking.append(Arc::new(Message::Assistant {
            content: String::new(),
            tool_calls,
            meta: None,
        }));
        for tool_call_id in ["a", "b"] {
            let (tool_call_id, content) = (tool_call_id.to_owned(), String::new());
            asking.append(Arc::new(Message::Tool { tool_call_id, content, meta: None }));
        }
        asking.append(user("more"));
        let whole: Vec<usize> = (0..=8).map(|len| asking.whole(len)).collect();
        assert_eq!(whole, [0, 1, 2, 3, 4, 4, 4, 7, 8]);
    }

    #[test]
    fn a_summary_stands_for_what_it_sums_up_and_outlives_what_is_let_go_of_later() {
        let mut long = conversation(10);
        long.compact(6, user("so far"));
        let view = shown(&long);
        assert_eq!((long.len(), view.first, view.entries.len()), (10, 6, 4));
        long.in_memory_max = 2;
        long.shorten();
        let view = shown(&long);
        assert_eq!((view.first, view.entries.len()), (8, 2));
        assert_eq!(view.opening.map(|opening| Arc::clone(&opening.message)), Some(user("so far")));
    }

    #[test]
    fn tokens_are_counted_once_by_each_table_with_what_stands_before() {
        let mut short = conversation(4);
        short.compact(2, user("so far"));
        for encoding in [Encoding::O200k, Encoding::Cl100k] {
            let tokens = short.tokens(encoding);
            assert_eq!((tokens.counted, tokens.uncounted.len()), (0, 3));
            let all = tokens.uncounted.iter().map(|entry| entry.tokens(encoding)).sum::<u64>();
            assert!(all <= tokens.uncounted_bytes);
            let tokens = short.tokens(encoding);
            assert_eq!((tokens.counted, tokens.uncounted.len()), (all, 0));
        }
    }
}
