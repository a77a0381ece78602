//! A scenario as its file writes it: every key with its type. The schema for editors is made from
//! these types, and the reader checks a file against that schema, so that the two cannot differ.
//! Types only; what the keys mean together is read by `step`, `fault` and `files`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nexus3::config::Config;
use nexus3::provider::script::{Entry, Time, Times};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::serve::ServeWord;
use super::{EarlierAgent, Invariant, Judge, Lane, McpServer, Shift, Wire};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A NEXUS3 scenario")]
pub(super) struct ScenarioForm {
    /// The version of this format.
    #[serde(rename = "schema")]
    #[schemars(extend("const" = 1))]
    pub(super) _schema: u64,
    /// What the scenario shows, in one sentence.
    #[schemars(length(min = 1))]
    pub(super) about: String,
    /// Decides all chance. `--seed` overrides it.
    #[serde(default)]
    pub(super) seed: u64,
    /// How much virtual time the run may take. Default: 10m.
    pub(super) limit: Option<Time>,
    /// How models are reached.
    #[serde(default)]
    pub(super) wire: Wire,
    /// What lies between the hosts: a network (`turmoil`), or `pipes`, which are faster and of which
    /// nothing is cut, kept back or lost.
    #[serde(default)]
    pub(super) lane: Lane,
    /// What the run is judged by: `everything`, or the `invariants` alone, whatever steps expect.
    #[serde(default)]
    pub(super) judge: Judge,
    /// Flags of `nexus3 serve`.
    #[serde(default)]
    pub(super) serve: Vec<ServeWord>,
    /// The server's working directory, in `/project`. Default: `/project` itself.
    pub(super) cwd: Option<String>,
    /// The server's environment variables. What a provider takes its key from, and whatever ends in
    /// `_KEY`, `_TOKEN`, `_SECRET` or `_CANARY`, is a secret, which must not turn up anywhere.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// The keys of config.json.
    #[serde(default)]
    #[schemars(with = "Option<Config>")]
    pub(super) config: Map<String, Value>,
    /// What exists at the start, by absolute path. `/project` is there anyhow.
    #[serde(default)]
    pub(super) files: FilesForm,
    /// What models answer. Entries are used in order for the requests they match.
    #[serde(default)]
    pub(super) model: Vec<Entry>,
    /// The programs that tools can run.
    #[serde(default)]
    pub(super) program: Vec<ProgramForm>,
    /// What clients do, one after another.
    #[serde(default)]
    pub(super) step: Vec<StepForm>,
    /// What goes wrong.
    #[serde(default)]
    pub(super) fault: Vec<FaultForm>,
    /// What must hold at the end.
    #[serde(default)]
    pub(super) expect: ExpectForm,
    /// MCP servers.
    #[serde(default)]
    pub(super) mcp: Vec<McpServer>,
    /// Agents that an earlier server has left.
    #[serde(default)]
    pub(super) agent: Vec<EarlierAgent>,
}

pub(super) type FilesForm = BTreeMap<String, FileForm>;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "File")]
pub(super) enum FileForm {
    /// A file with this text.
    Text(String),
    Table(FileTable),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTable {
    /// A directory.
    pub(super) dir: Option<Yes>,
    /// A link to this path.
    pub(super) symlink: Option<String>,
    /// Nothing: what was there is removed.
    pub(super) remove: Option<Yes>,
    /// A file with this text.
    pub(super) text: Option<String>,
    /// How often the text stands in the file. Default: once.
    #[schemars(range(min = 1))]
    pub(super) repeat: Option<u64>,
    /// The permission bits of a file or a directory, such as 0o600.
    #[schemars(range(max = 0o7777))]
    pub(super) mode: Option<u32>,
    /// A file with these bytes.
    pub(super) base64: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Program")]
pub(super) struct ProgramForm {
    /// The exact arguments, or a regular expression over them, joined by spaces.
    pub(super) run: RunForm,
    /// How often it can be run so; then the next entry that fits is. Default: always.
    pub(super) times: Option<Times>,
    /// What it says: a text, or pieces of it.
    #[serde(default)]
    pub(super) stdout: OutputForm,
    #[serde(default)]
    pub(super) stderr: OutputForm,
    /// The exit code.
    #[serde(default)]
    pub(super) exit: u8,
    /// The signal that ends it, in place of an exit code.
    #[schemars(range(min = 1, max = 64))]
    pub(super) signal: Option<u8>,
    /// How long it runs. Default: no time.
    pub(super) takes: Option<TakesForm>,
    /// The files it leaves.
    #[serde(default)]
    pub(super) writes: FilesForm,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Run")]
pub(super) enum RunForm {
    Exactly(#[schemars(length(min = 1))] Vec<String>),
    Matching(String),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Output")]
pub(super) enum OutputForm {
    Whole(String),
    Pieces(Vec<PieceForm>),
}

impl Default for OutputForm {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Piece")]
pub(super) enum PieceForm {
    Text(String),
    Repeated(RepeatedForm),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Repeated")]
pub(super) struct RepeatedForm {
    pub(super) text: String,
    /// How often the text is said.
    #[schemars(range(min = 1))]
    pub(super) repeat: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Takes")]
pub(super) enum TakesForm {
    Forever,
    #[serde(untagged)]
    Time(Time),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Step")]
pub(super) struct StepForm {
    /// What `after` of a later step calls it.
    pub(super) name: Option<String>,
    /// Who plays it. Default: client.
    pub(super) client: Option<String>,
    /// The virtual time since the start at which it runs.
    pub(super) at: Option<Time>,
    /// The background step after whose end it runs.
    pub(super) after: Option<String>,
    /// The event at which it runs: `event:TYPE`, as soon as the server has told it to whoever listens.
    pub(super) on: Option<String>,
    /// Which of the events of `on` is meant. Default: the first.
    #[schemars(range(min = 1))]
    pub(super) nth: Option<u64>,
    /// With `on`: not before the step before it lets it.
    pub(super) in_order: Option<Yes>,
    /// How often it runs; `${n}` in its strings counts from 1.
    #[schemars(range(min = 1))]
    pub(super) repeat: Option<u64>,
    /// Goes on with the next step while it runs.
    #[serde(default)]
    pub(super) background: bool,
    /// Calls a method.
    pub(super) call: Option<String>,
    /// The agent whose method is called, or whose events `on` waits for.
    pub(super) agent: Option<String>,
    pub(super) params: Option<Map<String, Value>>,
    /// The params as a JSON object, in place of `params`: with a null, which TOML has not.
    pub(super) params_json: Option<String>,
    /// Further request headers.
    pub(super) headers: Option<BTreeMap<String, String>>,
    /// The token to show, or false for none. Default: the server's.
    pub(super) token: Option<TokenForm>,
    /// What the result contains. A string may be `re:` and a regular expression.
    pub(super) expect: Option<Value>,
    /// What the error contains: its `code`, and more.
    pub(super) expect_error: Option<Map<String, Value>>,
    /// The HTTP status.
    #[schemars(range(min = 100, max = 599))]
    pub(super) expect_http: Option<u16>,
    /// What the body of the answer to `raw` contains: JSON, or `re:` and a regular expression.
    pub(super) expect_body: Option<Value>,
    /// Names for parts of the result, by JSON pointer; later strings use them as `${name}`.
    pub(super) save: Option<BTreeMap<String, String>>,
    /// Opens an event stream.
    pub(super) watch: Option<WatchForm>,
    /// Closes the client's event streams.
    pub(super) unwatch: Option<Yes>,
    /// Waits for the next pending confirmation of a tool and answers it.
    pub(super) confirm: Option<ConfirmForm>,
    /// Sends these bytes.
    pub(super) raw: Option<String>,
    /// Opens a terminal, types into it and looks at its screen.
    pub(super) terminal: Option<TerminalForm>,
    /// Closes all connections of the client.
    pub(super) disconnect: Option<Yes>,
    /// Waits.
    pub(super) sleep: Option<Time>,
    /// Sends the server a signal and waits for its end.
    pub(super) stop: Option<super::Signal>,
    /// Starts the server again.
    pub(super) start: Option<Yes>,
    /// Flags of `nexus3 serve` for `start`. Default: those of the first start.
    pub(super) serve: Option<Vec<ServeWord>>,
    /// Changes the disk.
    pub(super) files: Option<FilesForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Token")]
pub(super) enum TokenForm {
    Text(String),
    #[schemars(extend("const" = false))]
    Without(#[expect(dead_code, reason = "only false is valid")] bool),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Watch")]
pub(super) struct WatchForm {
    /// The agent whose events are watched. Default: all.
    pub(super) agent: Option<String>,
    /// The cursor after which the stream begins: the `seq` of an event, or `${seq}`.
    pub(super) after: Option<AfterForm>,
    /// How long the client takes for each event. Default: no time.
    pub(super) pace: Option<PaceForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "After")]
pub(super) enum AfterForm {
    Seq(u64),
    Named(String),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Pace")]
pub(super) enum PaceForm {
    Never,
    #[serde(untagged)]
    Time(Time),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Terminal")]
pub(super) struct TerminalForm {
    /// Opens a terminal on this agent. Default: types into the one that is open.
    pub(super) agent: Option<String>,
    /// The text that is typed; a newline is Enter.
    pub(super) types: Option<String>,
    /// The key that is pressed then: enter, esc, tab, up, down, ctrl-c and others.
    pub(super) key: Option<String>,
    /// What is waited for on the screen: what was printed since the last step, or stands at its foot.
    pub(super) sees: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Confirm")]
pub(super) struct ConfirmForm {
    pub(super) tool: String,
    pub(super) decision: String,
    pub(super) agent: Option<String>,
    /// The time between the question and the answer.
    pub(super) delay: Option<Time>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ServerFault")]
pub(super) struct FaultForm {
    /// The virtual time since the start.
    pub(super) at: Option<Time>,
    /// `event:TYPE` (as soon as the server has told it), `point:N` or `fs:OPERATION:PATH`.
    pub(super) on: Option<String>,
    /// Whose event `on` waits for. Default: any agent's.
    pub(super) agent: Option<String>,
    /// Which of the events of `on` is meant. Default: the first.
    #[schemars(range(min = 1))]
    pub(super) nth: Option<u64>,
    /// Again and again, with this time between.
    pub(super) every: Option<Time>,
    /// With this probability for each message or operation; what is struck by it comes first. A
    /// connection being made is a message, and so is what is written to one in one go.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub(super) rate: Option<f64>,
    pub(super) kind: KindForm,
    /// Where: `server`, `model` or a client's name. Default: server.
    pub(super) host: Option<String>,
    /// The two hosts whose link is meant.
    #[schemars(length(min = 2, max = 2))]
    pub(super) between: Option<Vec<String>>,
    /// How long it lasts. Default: until the steps have ended; a `delay` with a `rate` is then of
    /// single messages, and what a `rate` does to the disk always is of single operations.
    #[serde(rename = "for")]
    pub(super) lasts: Option<Time>,
    /// How much `delay` or `clock_jump` changes.
    pub(super) by: Option<Shift>,
    /// What `files` changes.
    pub(super) files: Option<FilesForm>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FaultKind")]
pub(super) enum KindForm {
    Crash,
    PowerLoss,
    Partition,
    Hold,
    Delay,
    DiskFull,
    IoError,
    ReadOnly,
    FsyncError,
    FsyncLies,
    TornWrite,
    ClockJump,
    Files,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Expect")]
pub(super) struct ExpectForm {
    /// What lies on the disk; a text may be `re:` and a regular expression.
    pub(super) files: FilesForm,
    /// All agents, active and dormant.
    pub(super) agents: Option<Vec<String>>,
    /// How often each agent's model was asked.
    pub(super) model_calls: BTreeMap<String, u64>,
    /// Invariants that do not hold here, and why. A secret in a recording is told all the same.
    pub(super) ignore: Vec<IgnoreForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ignore")]
pub(super) struct IgnoreForm {
    pub(super) invariant: Invariant,
    #[schemars(length(min = 1))]
    pub(super) reason: String,
}

/// `true`: the key is there or it is not.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "bool")]
pub(super) struct Yes;

impl TryFrom<bool> for Yes {
    type Error = &'static str;

    fn try_from(flag: bool) -> Result<Self, Self::Error> {
        flag.then_some(Self).ok_or("only true is meant here")
    }
}

impl JsonSchema for Yes {
    fn schema_name() -> Cow<'static, str> {
        "Yes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean", "const": true })
    }
}
