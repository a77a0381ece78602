//! Commands that begin with a slash: how they are read, whom they are about, and their help. They are
//! those of `nexus3 rpc`, less what makes no sense in a terminal. Pure.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{FromArgMatches, Subcommand};

use crate::cli::{init, output, rpc};
use crate::id::AgentId;
use crate::terminal::commands::{Command, Does, Subject, is_agent_and_text};

/// What can be typed as it stands here, for each command that has a help of its own.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("list", &["/list"]),
    (
        "create",
        &[
            "/create scout --cwd src",
            "/create team --preset trusted --max-agents 5 --max-tokens 200000",
            "/create . --initial-message 'Hello' --wait-for-initial-response",
        ],
    ),
    ("destroy", &["/destroy scout"]),
    (
        "send",
        &[
            "/send scout What is in this directory?",
            "/send scout 'Take your time' --no-wait --request-id r1",
        ],
    ),
    ("status", &["/status", "/status scout"]),
    ("cancel", &["/cancel", "/cancel scout", "/cancel scout r1"]),
    ("messages", &["/messages", "/messages scout --offset 200 --limit 50"]),
    ("compact", &["/compact", "/compact scout"]),
    ("cwd", &["/cwd", "/cwd src", "/cwd scout src"]),
    ("model", &["/model", "/model large", "/model scout large"]),
    ("permissions", &["/permissions trusted", "/permissions scout trusted --disable-tools exec"]),
    ("prompt", &["/prompt", "/prompt Be brief, and kind", "/prompt scout Be brief, and kind"]),
    ("save", &["/save", "/save notes", "/save .1 scout"]),
    ("load", &["/load scout", "/load scout second --model large", "/load last-session"]),
    ("sessions", &["/sessions --limit 10"]),
    ("clone", &["/clone scout second"]),
    ("rename", &["/rename scout second"]),
    ("delete", &["/delete scout"]),
    (
        "mcp",
        &[
            "/mcp list",
            "/mcp connect files --command mcp-files --arg /srv",
            "/mcp connect search --mcp-url http://127.0.0.1:3001/mcp --agent-id scout",
            "/mcp status files",
            "/mcp disconnect files",
        ],
    ),
    ("shutdown", &["/shutdown", "/shutdown scout"]),
    ("init", &["/init", "/init --global"]),
];

/// Puts the current agent first where no agent is named. A word that can be nothing else is the name of
/// one, also of one that is not there.
pub fn about_agent(
    command: &Command,
    words: Vec<String>,
    agents: &[String],
    current: Option<&AgentId>,
) -> Vec<String> {
    if let (Does::Rpc(Subject::AgentText), [typed]) = (command.does, words.as_slice())
        && !matches!(typed.as_str(), "--help" | "-h")
    {
        return about_text(typed, agents, current);
    }
    let named = words.first().is_some_and(|word| agents.contains(word));
    if named {
        return words;
    }
    let Some(current) = current else {
        return words;
    };
    let with_current = [vec![current.to_string()], words.clone()].concat();
    let fits = |words: &[String]| parse(command.name, words).is_ok();
    if fits(&with_current) || !fits(&words) { with_current } else { words }
}

/// The agent and the text after it, of which nothing is changed.
fn about_text(typed: &str, agents: &[String], current: Option<&AgentId>) -> Vec<String> {
    let (first, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let named = agents.iter().any(|agent| agent == first);
    let (agent, text) = match current {
        Some(current) if !named => (current.as_str(), typed),
        Some(_) | None => (first, rest.trim_start()),
    };
    let text = (!text.is_empty()).then(|| ["--".to_owned(), text.to_owned()]);
    std::iter::once(agent.to_owned()).chain(text.into_iter().flatten()).collect()
}

/// An agent and a text, which may begin as a flag does.
pub fn with_text(mut words: Vec<String>) -> Vec<String> {
    if is_agent_and_text(&words) {
        words.insert(1, "--".to_owned());
    }
    words
}

pub fn parse(name: &str, words: &[String]) -> Result<rpc::Command, clap::Error> {
    let grammar = rpc::Command::augment_subcommands(clap::Command::new(""));
    let grammar = grammar.no_binary_name(true).disable_help_subcommand(true);
    let grammar = grammar.mut_subcommand(name, |command| fitted(name, command));
    let words = std::iter::once(name).chain(words.iter().map(String::as_str)).map(OsString::from);
    let matches = grammar.try_get_matches_from(words)?;
    rpc::Command::from_arg_matches(&matches)
}

pub fn parse_init(words: &[String]) -> Result<init::Arguments, clap::Error> {
    let grammar = <init::Arguments as clap::Args>::augment_args(clap::Command::new("init"));
    let matches = fitted("init", grammar).no_binary_name(true).try_get_matches_from(words)?;
    init::Arguments::from_arg_matches(&matches)
}

/// A command with the help that fits here: its examples, and neither flags nor explanations that are for
/// a shell.
fn fitted(name: &str, command: clap::Command) -> clap::Command {
    let shells = ["no_start", "home", "json"];
    let command = command.long_about(None::<&str>).mut_args(|argument| {
        let hidden = shells.contains(&argument.get_id().as_str());
        if hidden { argument.hide(true) } else { argument }
    });
    let examples = EXAMPLES.iter().find(|(of, _)| *of == name).map(|(_, examples)| *examples);
    let command = command.mut_subcommands(|below| below.after_help(None::<&str>));
    match examples {
        None | Some([]) => command.after_help(None::<&str>),
        Some([only]) => command.after_help(format!("Example:\n  {only}")),
        Some(all) => command.after_help(format!("Examples:\n  {}", all.join("\n  "))),
    }
}

/// What is said in place of a command: help that was asked for, or what is wrong with it. Commands begin
/// with a slash here.
pub fn spoken(command: &Command, error: &clap::Error) -> Result<(), String> {
    let text = text(command, error);
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::line(text.trim_end());
            Ok(())
        }
        _ => {
            let wrong = text.trim_end();
            Err(format!("✗ {}", wrong.strip_prefix("error: ").unwrap_or(wrong)))
        }
    }
}

fn text(command: &Command, error: &clap::Error) -> String {
    let name = command.name;
    let text = error.to_string().replace("Usage: ", "Usage: /").replace("nexus3 rpc ", "/");
    let text = text.replace("try '--help'", &format!("try /{name} --help"));
    match command.does {
        // It is the current one, where none is named.
        Does::Rpc(Subject::Agent | Subject::AgentText) => text.replace("<AGENT>", "[AGENT]"),
        Does::Rpc(Subject::Named | Subject::NamedText)
        | Does::Local
        | Does::Agent
        | Does::Whisper
        | Does::Over
        | Does::Help
        | Does::Clear
        | Does::Quit => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::commands::{COMMANDS, Typed, read};

    fn command(name: &str) -> &'static Command {
        COMMANDS.iter().find(|command| command.name == name).unwrap()
    }

    fn agents() -> Vec<String> {
        ["main", "scout"].map(str::to_owned).to_vec()
    }

    fn about(typed: &str) -> Vec<String> {
        let Typed::Command { command, words } = read(typed) else { panic!("{typed}") };
        about_agent(command, words, &agents(), Some(&AgentId::parse("main").unwrap()))
    }

    /// Whether this can be typed.
    fn is_taken(typed: &str) -> bool {
        let Typed::Command { command, words } = read(typed) else { return false };
        let current = AgentId::parse("main").unwrap();
        match command.does {
            Does::Rpc(Subject::Agent | Subject::AgentText) => {
                let words = about_agent(command, words, &agents(), Some(&current));
                parse(command.name, &words).is_ok()
            }
            Does::Rpc(Subject::NamedText) => parse(command.name, &with_text(words)).is_ok(),
            Does::Rpc(Subject::Named) => parse(command.name, &words).is_ok(),
            Does::Local => parse_init(&words).is_ok(),
            Does::Agent | Does::Whisper | Does::Over | Does::Help | Does::Clear | Does::Quit => {
                false
            }
        }
    }

    #[test]
    fn whatever_help_shows_can_be_typed() {
        for command in COMMANDS {
            let help = ["--help".to_owned()];
            let shown = match command.does {
                Does::Rpc(_) => parse(command.name, &help).map(|_| ()),
                Does::Local => parse_init(&help).map(|_| ()),
                Does::Agent
                | Does::Whisper
                | Does::Over
                | Does::Help
                | Does::Clear
                | Does::Quit => continue,
            };
            let shown = text(command, &shown.unwrap_err());
            let examples: Vec<&str> =
                shown.lines().filter_map(|line| line.strip_prefix("  ")).collect();
            let examples = examples.iter().filter(|line| line.starts_with('/'));
            assert!(examples.clone().count() > 0, "{shown}");
            for example in examples {
                assert!(is_taken(example), "{example}");
            }
            for foreign in
                ["nexus3 ", "--json", "--port", "--no-start", "--home", "in the background"]
            {
                assert!(!shown.contains(foreign), "{foreign} in\n{shown}");
            }
            let flags = shown.lines().filter(|line| line.trim_start().starts_with("--")).count();
            assert_eq!(shown.contains("[OPTIONS]"), flags > 0, "{shown}");
        }
    }

    #[test]
    fn a_prompt_arrives_as_it_was_typed() {
        for text in ["be  \"kind\"", "it's \\n\n  - one\n  - two", "--verbose is\tfine", "-v"] {
            for (typed, agent) in
                [(format!("/prompt {text}"), "main"), (format!("/prompt scout {text}"), "scout")]
            {
                let words = about(&typed);
                assert_eq!(words, [agent, "--", text]);
                assert!(parse("prompt", &words).is_ok(), "{typed}");
            }
        }
        assert_eq!(about("/prompt"), ["main"]);
        assert_eq!(about("/prompt scout"), ["scout"]);
    }

    #[test]
    fn a_message_may_begin_like_a_flag() {
        let words = |typed| match read(typed) {
            Typed::Command { words, .. } => with_text(words),
            other => panic!("{other:?}"),
        };
        assert_eq!(words("/send scout - one, - two"), ["scout", "--", "- one, - two"]);
        assert!(is_taken("/send scout - one, - two"));
        assert_eq!(words("/send scout -h"), ["scout", "-h"]);
    }

    #[test]
    fn an_agent_need_not_be_named() {
        assert_eq!(about("/cwd src"), ["main", "src"]);
        assert_eq!(about("/cwd scout src"), ["scout", "src"]);
        assert_eq!(about("/status nobody"), ["nobody"]);
        assert!(
            text(command("status"), &parse("status", &["--help".to_owned()]).unwrap_err())
                .contains("/status [AGENT]")
        );
    }
}
