//! What shells and manuals want to know of this program: `completions`, `man`.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Arguments, done, output, usage};

/// Prints the completions of this program for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 completions bash > ~/.local/share/bash-completion/completions/nexus3\n  \
    nexus3 completions fish > ~/.config/fish/completions/nexus3.fish")]
pub struct Completions {
    /// The shell
    shell: Shell,
}

/// Prints the manual page of this program, or of one of its commands
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nexus3 man | man -l -\n  nexus3 man rpc send | man -l -")]
pub struct Man {
    /// The command, word by word [default: the program]
    command: Vec<String>,
}

impl Completions {
    pub fn run(&self) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "nexus3", &mut script);
        written(&script)
    }
}

impl Man {
    pub fn run(&self) -> ExitCode {
        let mut command = Arguments::command();
        // Subcommands are named by all the words that lead to them.
        command.build();
        for word in &self.command {
            let known = command.find_subcommand(word).filter(|found| !found.is_hide_set());
            let Some(found) = known.cloned() else {
                return usage::unknown_command(word, &command);
            };
            command = found;
        }
        let name = command.get_bin_name().unwrap_or("nexus3").replace(' ', "-");
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(command).title(name).render(&mut page);
        rendered.expect("memory takes a page");
        written(&page)
    }
}

/// A reader that has had enough is no error.
fn written(bytes: &[u8]) -> ExitCode {
    output::text(&String::from_utf8_lossy(bytes));
    done()
}
