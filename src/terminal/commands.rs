//! What can be typed besides messages: the one table behind `/help`, completion and what is run. Pure.

use crate::config::words::meant;

#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    pub name: &'static str,
    pub arguments: &'static str,
    pub about: &'static str,
    pub takes: Takes,
    pub does: Does,
    pub order: Order,
}

/// When a command runs that asks the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// After those before it.
    InTurn,
    /// At once: it takes as long as a model does, or ends what does.
    Beside,
}

/// What its arguments are completed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Agent,
    Session,
    Model,
    Preset,
    Path,
    Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// The command of `nexus3 rpc` that has its name.
    Rpc(Subject),
    /// The command of `nexus3` that has its name, on this machine.
    Local,
    Agent,
    Whisper,
    Over,
    Help,
    Clear,
    Quit,
}

/// Whom a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Whatever its arguments say.
    Named,
    /// An agent comes first: the current one, where none is named.
    Agent,
    /// The same, and what follows is one text.
    AgentText,
    /// An agent is named, and what follows is one text.
    NamedText,
}

const fn command(
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    takes: Takes,
    does: Does,
) -> Command {
    Command { name, arguments, about, takes, does, order: Order::InTurn }
}

impl Command {
    const fn beside(mut self) -> Self {
        self.order = Order::Beside;
        self
    }
}

const NAMED: Does = Does::Rpc(Subject::Named);
const OF_AGENT: Does = Does::Rpc(Subject::Agent);

pub const COMMANDS: &[Command] = &[
    command("agent", "[NAME]", "talks to another agent, or lists them", Takes::Agent, Does::Agent),
    command("whisper", "NAME", "talks to another agent until /over", Takes::Agent, Does::Whisper),
    command("over", "", "goes back to the agent before", Takes::Nothing, Does::Over),
    command("list", "", "lists the agents", Takes::Nothing, NAMED),
    command("create", "[NAME] [--preset P] …", "creates an agent", Takes::Nothing, NAMED),
    command("destroy", "NAME", "destroys an agent and those below it", Takes::Agent, NAMED),
    command(
        "send",
        "NAME TEXT",
        "sends to another agent and shows its answer",
        Takes::Agent,
        Does::Rpc(Subject::NamedText),
    )
    .beside(),
    command("status", "[NAME]", "shows what an agent is doing", Takes::Agent, OF_AGENT),
    command("cancel", "[NAME]", "cancels what runs and waits", Takes::Agent, OF_AGENT).beside(),
    command("messages", "[NAME]", "shows all that was said", Takes::Agent, OF_AGENT),
    command("compact", "[NAME]", "sums up older messages", Takes::Agent, OF_AGENT).beside(),
    command("cwd", "[NAME] [DIR]", "shows or changes where it works", Takes::Path, OF_AGENT),
    command("model", "[NAME] [MODEL]", "shows or changes its model", Takes::Model, OF_AGENT),
    command(
        "permissions",
        "[NAME] [PRESET]",
        "shows or changes what it may do",
        Takes::Preset,
        OF_AGENT,
    ),
    command(
        "prompt",
        "[NAME] [TEXT]",
        "shows or replaces its system prompt",
        Takes::Nothing,
        Does::Rpc(Subject::AgentText),
    ),
    command("save", "[NAME] [SESSION]", "saves its session", Takes::Session, OF_AGENT),
    command("load", "SESSION [NAME]", "makes an agent from a session", Takes::Session, NAMED),
    command("sessions", "", "lists the sessions", Takes::Nothing, NAMED),
    command("clone", "SESSION NEW", "copies a session", Takes::Session, NAMED),
    command("rename", "SESSION NEW", "renames a session and its agent", Takes::Session, NAMED),
    command("delete", "SESSION", "deletes a session", Takes::Session, NAMED),
    command("mcp", "…", "looks after the MCP servers of agents", Takes::Nothing, NAMED),
    command("shutdown", "", "stops the server", Takes::Nothing, NAMED),
    command("init", "[--global]", "writes a first configuration", Takes::Nothing, Does::Local),
    command("help", "[COMMAND]", "shows this", Takes::Command, Does::Help),
    command("clear", "", "clears the screen", Takes::Nothing, Does::Clear),
    command("quit", "", "leaves", Takes::Nothing, Does::Quit),
];

/// What a person has typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    Nothing,
    Message(String),
    Command {
        command: &'static Command,
        words: Vec<String>,
    },
    /// No command has this name; perhaps another was meant.
    Unknown {
        word: String,
        nearest: Option<&'static str>,
    },
}

/// Reads a line. Two slashes begin a message that begins with one.
pub fn read(text: &str) -> Typed {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Typed::Nothing;
    }
    let Some(rest) = trimmed.strip_prefix('/') else {
        return Typed::Message(text.trim_end().to_owned());
    };
    if rest.starts_with('/') {
        return Typed::Message(rest.to_owned());
    }
    let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match COMMANDS.iter().find(|command| command.name == word) {
        Some(command) => Typed::Command { command, words: arguments(command, rest.trim()) },
        None => Typed::Unknown { word: word.to_owned(), nearest: nearest(word) },
    }
}

pub fn nearest(word: &str) -> Option<&'static str> {
    // What others call it is no slip of the finger.
    if matches!(word, "exit" | "bye" | "logout") {
        return Some("quit");
    }
    let names: Vec<&'static str> = COMMANDS.iter().map(|command| command.name).collect();
    let begun: Vec<&&str> = names.iter().filter(|name| name.starts_with(word)).collect();
    match begun.as_slice() {
        [only] if !word.is_empty() => Some(only),
        _ => meant(word, &names),
    }
}

fn arguments(command: &Command, rest: &str) -> Vec<String> {
    let words = split(rest);
    match (command.does, rest.split_once(char::is_whitespace)) {
        (Does::Rpc(Subject::NamedText), Some((agent, text)))
            if !words.iter().any(|word| word.starts_with("--")) =>
        {
            vec![agent.to_owned(), text.trim().to_owned()]
        }
        // Who knows the agents can say where the text begins.
        (Does::Rpc(Subject::AgentText), _) if !rest.is_empty() && !asks_for_help(&words) => {
            vec![rest.to_owned()]
        }
        (
            Does::Rpc(_)
            | Does::Local
            | Does::Agent
            | Does::Whisper
            | Does::Over
            | Does::Help
            | Does::Clear
            | Does::Quit,
            _,
        ) => words,
    }
}

/// Whether these are an agent and a text for it, and no flag.
pub fn is_agent_and_text(words: &[String]) -> bool {
    let flag = |word: &str| word.starts_with('-') && !word.contains(char::is_whitespace);
    matches!(words, [_, text] if !flag(text))
}

/// Whether these are no text, but a question how one is given.
fn asks_for_help(words: &[String]) -> bool {
    matches!(words, [help] | [_, help] if matches!(help.as_str(), "--help" | "-h"))
}

/// Words as a shell has them: quotes keep spaces, a backslash the next character. A quote that is not
/// closed, as of `don't`, is a letter.
pub fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' if rest.as_str().contains(c) => {
                let (quoted, after) = rest.as_str().split_once(c).unwrap_or_default();
                word.get_or_insert_default().push_str(quoted);
                rest = after.chars();
            }
            '\\' => word.get_or_insert_default().extend(rest.next()),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        match read(line) {
            Typed::Command { words, .. } => words,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn messages_and_commands_are_told_apart() {
        assert_eq!(read("  "), Typed::Nothing);
        assert_eq!(read(" hi\n"), Typed::Message(" hi".to_owned()));
        assert_eq!(read("//etc is a path"), Typed::Message("/etc is a path".to_owned()));
        for (word, meant) in [
            ("hlep", Some("help")),
            ("perm", Some("permissions")),
            ("exit", Some("quit")),
            ("zzz", None),
        ] {
            let unknown = Typed::Unknown { word: word.to_owned(), nearest: meant };
            assert_eq!(read(&format!("/{word} x")), unknown);
        }
    }

    #[test]
    fn arguments_are_words_of_a_shell_or_one_text() {
        assert_eq!(
            words("/create a --system-prompt 'be kind'"),
            ["a", "--system-prompt", "be kind"]
        );
        assert_eq!(words("/send scout I don't  know"), ["scout", "I don't  know"]);
        assert_eq!(words("/send scout hi --no-wait"), ["scout", "hi", "--no-wait"]);
        assert_eq!(words(r"/cwd a\ b"), ["a b"]);
        assert_eq!(words("/prompt be  \"kind\"\n\\o/\t--now "), ["be  \"kind\"\n\\o/\t--now"]);
        assert_eq!(words("/prompt scout --help"), ["scout", "--help"]);
        assert_eq!(words("/prompt"), Vec::<String>::new());
        assert_eq!(words("/agent"), Vec::<String>::new());
        assert_eq!(split(r#"x"y z"''"#), ["xy z"]);
    }

    #[test]
    fn every_command_fits_a_line_of_help() {
        for command in COMMANDS {
            assert!(
                command.name.len() + command.arguments.chars().count() < 30,
                "{}",
                command.name
            );
            assert!(command.about.chars().count() <= 44, "{}", command.name);
        }
    }
}
