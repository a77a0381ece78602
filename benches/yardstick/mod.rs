//! The yardsticks: the least a program can do for the same work, over the same libraries. Each is a
//! process of its own, this binary started again as `targets __yardstick NAME`, which prints
//! `listening PORT` and ends when its input does.

mod bare; // reads a body, gives a fixed answer
mod bareactor; // a task with a channel for each agent
mod baresend; // one model call and some commits
mod baresse; // one model call, every chunk to every subscriber
mod direct; // the model call alone
mod http; // what those that speak HTTP share
mod mock; // the model
mod store; // the commits

use std::io::Read as _;
use std::path::PathBuf;

use clap::Parser;

pub(crate) use store::Journal;

pub(crate) const WORD: &str = "__yardstick";
pub(crate) const LISTENING: &str = "listening ";

/// What a turn of the server commits: that it was accepted, and how it ended.
const COMMITS_PER_SEND: u8 = 2;

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Name {
    Bare,
    Bareactor,
    Baresend,
    Baresse,
    Direct,
    Mock,
}

/// One yardstick with its settings, the same on both sides of the process boundary.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Yardstick {
    name: Name,
    /// Zero lets the machine choose.
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[arg(long, default_value = ".")]
    home: PathBuf,
    /// Where the model listens.
    #[arg(long, default_value_t = 0)]
    model: u16,
    /// How long the body of an answer is.
    #[arg(long, default_value_t = 200)]
    reply_bytes: usize,
    /// How long the body of a request to the model is.
    #[arg(long, default_value_t = 500)]
    request_bytes: usize,
    /// Commits for each send; none means that there is no database.
    #[arg(long, default_value_t = 0)]
    commits: u8,
    /// Sends that wait at the same time share a commit.
    #[arg(long)]
    group: bool,
    /// A file of SQL statements that are run before the first answer.
    #[arg(long)]
    schema: Option<PathBuf>,
    /// The model's answer comes in this many pieces.
    #[arg(long, default_value_t = 1)]
    chunks: usize,
    /// The model waits this long before each piece, which then holds the time it was sent.
    #[arg(long, default_value_t = 0)]
    gap_us: u64,
    /// The model waits a millisecond after so many pieces; none: it never waits.
    #[arg(long, default_value_t = 0)]
    burst: usize,
    /// What the model answers with a call of `read_file`, if it is the newest message.
    #[arg(long)]
    calls_on: Option<String>,
    /// The file that it reads.
    #[arg(long)]
    calls_for: Option<String>,
}

/// What one send looks like on the wire, so that a yardstick moves as many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) request_bytes: usize,
    pub(crate) reply_bytes: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self { request_bytes: 2000, reply_bytes: 300 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commits {
    None,
    /// Each on its own, `synchronous = FULL`.
    Full,
    /// The same, shared by those that wait at the same time.
    Grouped,
}

impl Yardstick {
    fn new(name: Name) -> Self {
        Self {
            name,
            port: 0,
            home: PathBuf::from("."),
            model: 0,
            reply_bytes: 200,
            request_bytes: 500,
            commits: 0,
            group: false,
            schema: None,
            chunks: 1,
            gap_us: 0,
            burst: 0,
            calls_on: None,
            calls_for: None,
        }
    }

    pub(crate) fn bare(reply_bytes: usize) -> Self {
        Self { reply_bytes, ..Self::new(Name::Bare) }
    }

    /// `bare` that first runs the statements of a file in a new database.
    pub(crate) fn bare_with_schema(schema: PathBuf) -> Self {
        Self { schema: Some(schema), ..Self::new(Name::Bare) }
    }

    pub(crate) fn bareactor() -> Self {
        Self::new(Name::Bareactor)
    }

    pub(crate) fn baresend(model: u16, shape: Shape, commits: Commits) -> Self {
        Self {
            model,
            reply_bytes: shape.reply_bytes,
            request_bytes: shape.request_bytes,
            commits: match commits {
                Commits::None => 0,
                Commits::Full | Commits::Grouped => COMMITS_PER_SEND,
            },
            group: commits == Commits::Grouped,
            ..Self::new(Name::Baresend)
        }
    }

    pub(crate) fn baresse(model: u16, shape: Shape) -> Self {
        Self { name: Name::Baresse, ..Self::baresend(model, shape, Commits::None) }
    }

    pub(crate) fn direct(model: u16) -> Self {
        Self { model, ..Self::new(Name::Direct) }
    }

    /// A model that answers at once, in `chunks` pieces.
    pub(crate) fn mock(chunks: usize) -> Self {
        Self { chunks, ..Self::new(Name::Mock) }
    }

    /// A model whose pieces come one by one and say when they were sent.
    pub(crate) fn stamping_mock(chunks: usize, gap_us: u64) -> Self {
        Self { gap_us, ..Self::mock(chunks) }
    }

    /// A model that writes so many of its pieces in each millisecond.
    pub(crate) fn bursting_mock(chunks: usize, burst: usize) -> Self {
        Self { burst, ..Self::mock(chunks) }
    }

    /// A model that reads `file` when it is sent `ask`, and answers at once otherwise.
    pub(crate) fn calling_mock(ask: &str, file: &str) -> Self {
        let (calls_on, calls_for) = (Some(ask.to_owned()), Some(file.to_owned()));
        Self { calls_on, calls_for, ..Self::mock(1) }
    }

    /// The command line that gives this back; home and port are added by who starts it.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let name = format!("{:?}", self.name).to_lowercase();
        let mut arguments = vec![name];
        for (flag, value) in [
            ("--model", u64::from(self.model)),
            ("--reply-bytes", self.reply_bytes as u64),
            ("--request-bytes", self.request_bytes as u64),
            ("--commits", self.commits.into()),
            ("--chunks", self.chunks as u64),
            ("--gap-us", self.gap_us),
            ("--burst", self.burst as u64),
        ] {
            arguments.extend([flag.to_owned(), value.to_string()]);
        }
        if self.group {
            arguments.push("--group".to_owned());
        }
        for (flag, value) in [("--calls-on", &self.calls_on), ("--calls-for", &self.calls_for)] {
            if let Some(value) = value {
                arguments.extend([flag.to_owned(), value.clone()]);
            }
        }
        if let Some(schema) = &self.schema {
            arguments.extend(["--schema".to_owned(), schema.display().to_string()]);
        }
        arguments
    }
}

/// The child's side: runs the yardstick named by the command line.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let yardstick = Yardstick::parse_from(arguments);
    std::thread::spawn(|| {
        // The parent never writes: this returns when it is gone.
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match yardstick.name {
            Name::Bare => bare::run(&yardstick).await,
            Name::Bareactor => bareactor::run(&yardstick).await,
            Name::Baresend => baresend::run(&yardstick).await,
            Name::Baresse => baresse::run(&yardstick).await,
            Name::Direct => direct::run(&yardstick).await,
            Name::Mock => mock::run(&yardstick).await,
        }
    })
}
