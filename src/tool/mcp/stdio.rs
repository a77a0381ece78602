//! A server that is a program of ours: a line each way is a message, and what it writes to its error
//! output is kept for people. The program and all that it started end with the connection.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::RequestId;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleClient};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::Ground;
use super::connection::{Lost, Opening, Server, Why};
use super::session::{Ears, talk};
use super::watched::Rate;
use crate::config::McpServer;
use crate::limits::{
    MCP_MESSAGE_BYTES_MAX, MCP_MESSAGES_WAITING_MAX, MCP_UNASKED_PER_SECOND_MAX, PROGRAM_END_MAX,
};
use crate::world::{Confinement, Process, Program};

/// How long one half of a connection is waited for once the other has ended.
const EXIT_MAX: Duration = Duration::from_secs(1);

/// Starts the program and speaks with it until one of the two ends.
pub(super) async fn live(server: &Arc<Server>, ground: &Ground, opening: Opening) -> Why {
    let Some(program) = program(&server.config, &ground.environment, &ground.cwd) else {
        return Why::Stopped;
    };
    let mut process = match ground.programs.start(program).await {
        Ok(process) => process,
        Err(error) => return Why::Lost(Lost::NotStarted { reason: reason(&error) }),
    };
    let (to_us, from_program) = mpsc::channel(MCP_MESSAGES_WAITING_MAX);
    let (to_program, from_us) = mpsc::channel(MCP_MESSAGES_WAITING_MAX);
    let transport = Lines { to_program: Some(to_program), from_program };
    let why = {
        let pipes = carry(process.as_mut(), server, (to_us, from_us));
        let talking = talk(server, transport, opening, Ears::new());
        tokio::pin!(pipes, talking);
        tokio::select! {
            // How the program ended says more than that nothing comes from it.
            biased;
            // What came before the end is still heard.
            lost = &mut pipes => match timeout(EXIT_MAX, &mut talking).await {
                Ok(Why::Stopped) => Why::Stopped,
                Ok(Why::Lost(_)) | Err(_) => Why::Lost(lost),
            },
            why = &mut talking => match why {
                Why::Lost(Lost::Closed) => {
                    Why::Lost(timeout(EXIT_MAX, &mut pipes).await.unwrap_or(Lost::Closed))
                }
                why => why,
            },
        }
    };
    if timeout(PROGRAM_END_MAX, process.end()).await.is_err() {
        tracing::warn!(server = server.name, "the program of an MCP server cannot be killed");
    }
    why
}

fn program(
    config: &McpServer,
    environment: &[(OsString, OsString)],
    place: &Path,
) -> Option<Program> {
    let McpServer::Stdio { command, args, env, cwd } = config else { return None };
    let own = env.iter().map(|(name, value)| (name.into(), value.expose().into()));
    // What it is given counts, whatever ours says.
    let inherited = environment
        .iter()
        .filter(|(name, _)| name.to_str().is_none_or(|name| !env.contains_key(name)));
    let directory = cwd.as_deref().unwrap_or(Path::new("."));
    Some(Program {
        program: command.into(),
        arguments: args.iter().map(Into::into).collect(),
        directory: place.join(directory).components().collect(),
        environment: inherited.cloned().chain(own).collect(),
        // The one who configured it trusts it; agents reach it by their permissions only.
        confinement: Confinement::None,
    })
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such program or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be executed".to_owned(),
        kind => kind.to_string(),
    }
}

type Given = RxJsonRpcMessage<RoleClient>;
type Taken = TxJsonRpcMessage<RoleClient>;

/// Carries messages between the program's pipes and the conversation, until the program is no use.
async fn carry(
    process: &mut dyn Process,
    server: &Server,
    (to_us, from_us): (mpsc::Sender<Given>, mpsc::Receiver<Taken>),
) -> Lost {
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (process.stdin(), process.stdout(), process.stderr())
    else {
        return Lost::Closed;
    };
    let mut reading = Box::pin(read(BufReader::new(stdout), to_us));
    let writing = Box::pin(write(stdin, from_us));
    let telling = Box::pin(listen(server, stderr));
    let aside = async { tokio::join!(writing, telling) };
    tokio::pin!(aside);
    let lost = tokio::select! {
        biased;
        lost = &mut reading => lost,
        _ = &mut aside => Lost::Closed,
        exit = process.wait() => {
            // What it has written is still there.
            let _ = timeout(EXIT_MAX, &mut reading).await;
            exit.map_or(Lost::Closed, Lost::Ended)
        }
    };
    match lost {
        Lost::Closed => {
            // What it says last tells people why.
            let exit = timeout(EXIT_MAX, async {
                tokio::select! {
                    biased;
                    _ = &mut aside => None,
                    exit = process.wait() => exit.ok(),
                }
            });
            exit.await.ok().flatten().map_or(Lost::Closed, Lost::Ended)
        }
        lost => lost,
    }
}

async fn read(mut lines: impl AsyncBufRead + Unpin, to_us: mpsc::Sender<Given>) -> Lost {
    let mut line = Vec::new();
    let mut nonsense = Rate::of(MCP_UNASKED_PER_SECOND_MAX);
    loop {
        match next_line(&mut lines, &mut line).await {
            Ok(Line::Whole) => {}
            Ok(Line::TooLong) => return Lost::TooLong,
            Ok(Line::End) | Err(_) => return Lost::Closed,
        }
        match heard(&line) {
            Some(message) => {
                if to_us.send(message).await.is_err() {
                    return std::future::pending().await;
                }
            }
            // Programs print other things there that are no messages.
            None if nonsense.is_exceeded() => return Lost::Flood,
            // What is always ready would leave nothing to others of its task.
            None => yield_now().await,
        }
        line.clear();
    }
}

/// What a line says, if anything. An answer that is none is one that went wrong: whoever waits for it must
/// not wait for ever.
fn heard(line: &[u8]) -> Option<Given> {
    if let Ok(message) = serde_json::from_slice(line) {
        return Some(message);
    }
    let said: Value = serde_json::from_slice(line).ok()?;
    let id = match &said["id"] {
        Value::String(id) => RequestId::String(id.as_str().into()),
        id => RequestId::Number(id.as_i64()?),
    };
    let is_answer = said.get("result").is_some() || said.get("error").is_some();
    let error = ErrorData::internal_error(NO_ANSWER, None);
    is_answer.then(|| Given::error(error, Some(id)))
}

/// What we say in place of an answer that nobody can read.
const NO_ANSWER: &str = "its answer is none, by the protocol";

enum Line {
    Whole,
    TooLong,
    End,
}

async fn next_line(
    lines: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<Line> {
    loop {
        let bytes = lines.fill_buf().await?;
        if bytes.is_empty() {
            return Ok(Line::End);
        }
        let end = memchr::memchr(b'\n', bytes);
        let taken = end.map_or(bytes.len(), |end| end + 1);
        if line.len() + taken > MCP_MESSAGE_BYTES_MAX {
            return Ok(Line::TooLong);
        }
        line.extend_from_slice(&bytes[..taken]);
        lines.consume(taken);
        if end.is_some() {
            return Ok(Line::Whole);
        }
    }
}

/// Never returns: that nothing can be written any more is seen by what comes back.
async fn write(mut pipe: impl AsyncWrite + Unpin, mut from_us: mpsc::Receiver<Taken>) {
    while let Some(message) = from_us.recv().await {
        let mut line = serde_json::to_vec(&message).expect("messages have only string keys");
        line.push(b'\n');
        if pipe.write_all(&line).await.is_err() || pipe.flush().await.is_err() {
            break;
        }
    }
    std::future::pending::<()>().await;
}

/// Never returns either.
async fn listen(server: &Server, pipe: impl AsyncRead + Unpin) {
    server.tail.read(pipe, |line| server.config.hide(line)).await;
    std::future::pending::<()>().await;
}

/// The conversation's end of the pipes.
struct Lines {
    to_program: Option<mpsc::Sender<Taken>>,
    from_program: mpsc::Receiver<Given>,
}

impl Transport<RoleClient> for Lines {
    type Error = io::Error;

    fn send(&mut self, message: Taken) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let pipe = self.to_program.clone();
        async move {
            let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
            pipe.ok_or_else(broken)?.send(message).await.map_err(|_| broken())
        }
    }

    async fn receive(&mut self) -> Option<Given> {
        self.from_program.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.to_program = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn started(form: Value, base: Option<&str>) -> Program {
        let form = serde_json::from_value(form).unwrap();
        let config = McpServer::of(form, base.map(Path::new)).unwrap();
        let ours = [("PATH".into(), "/bin".into()), ("HOME".into(), "/root".into())];
        program(&config, &ours, Path::new("/project")).unwrap()
    }

    #[test]
    fn a_program_gets_what_every_program_gets_and_what_its_entry_says() {
        let form = json!({"command": "x", "args": ["a"], "env": {"KEY": "v", "PATH": "/opt"}});
        let program = started(form, None);
        let pairs = program.environment.iter().map(|(name, value)| (name.to_str(), value.to_str()));
        let pairs: Vec<_> = pairs.filter_map(|(name, value)| Some((name?, value?))).collect();
        assert_eq!(pairs, [("HOME", "/root"), ("KEY", "v"), ("PATH", "/opt")]);
        assert_eq!(program.directory, Path::new("/project"));
        assert_eq!(program.arguments, ["a"]);
    }

    #[test]
    fn an_answer_that_is_none_is_told_to_whoever_waits_for_it() {
        let told =
            |line: &str| heard(line.as_bytes()).map(|said| serde_json::to_value(said).unwrap());
        let none = |id: Value| {
            let error = json!({"code": -32603, "message": NO_ANSWER});
            Some(json!({"jsonrpc": "2.0", "id": id, "error": error}))
        };
        assert_eq!(told(r#"{"jsonrpc": "2.0", "id": 3, "error": "broken"}"#), none(json!(3)));
        assert_eq!(told(r#"{"id": "x", "result": {}}"#), none(json!("x")));
        assert_eq!(told(r#"{"jsonrpc": "2.0", "id": 3}"#), None);
        assert_eq!(told(r#"{"result": {}}"#), None);
        assert_eq!(told("nonsense"), None);
    }

    #[test]
    fn a_program_runs_where_its_entry_says_seen_from_its_file() {
        let directory = |cwd: Option<&str>, base: Option<&str>| {
            started(json!({"command": "x", "cwd": cwd}), base).directory
        };
        assert_eq!(directory(Some("sub"), None), Path::new("/project/sub"));
        assert_eq!(directory(Some("sub"), Some("/other")), Path::new("/other/sub"));
        assert_eq!(directory(None, Some("/other")), Path::new("/other"));
        assert_eq!(directory(Some("/srv"), Some("/other")), Path::new("/srv"));
    }
}
