//! `nexus3-sim conform` as a person uses it: the same file passes in the simulation and against
//! `nexus3 serve`, whose models are the file's own, over real sockets and a real disk.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests start servers as programs and write the files they read"
)]

mod folder;
mod running;

use std::fs::DirBuilder;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use folder::{Ended, Folder, ended};
use running::Running;

/// A hand-off, a tool, a confirmation, a stream, a wait for an event and a file at the end.
const TEAM: &str = r#"schema = 1
about = "A boss has a worker count, and writes the result where it must ask."
[files]
"/project/notes.txt" = "three apples"
"/project/desk" = { dir = true }
[[model]]
agent = "boss"
asks = [{ tool = "nexus_create", args = { agent_id = "w1", cwd = "/project" } },
        { tool = "nexus_send", args = { agent_id = "w1", content = "count" } }]
[[model]]
agent = "w1"
asks = [{ tool = "read_file", args = { path = "/project/notes.txt" } }]
[[model]]
agent = "w1"
when = "three apples"
says = ["3", "."]
[[model]]
agent = "boss"
asks = [{ tool = "write_file", args = { path = "/project/result.txt", content = "3" } }]
[[model]]
agent = "boss"
says = "The answer is 3."

[[step]]
call = "create_agent"
params = { agent_id = "boss", preset = "trusted", cwd = "/project/desk" }
[[step]]
client = "alice"
watch = {}
[[step]]
name = "go"
call = "send"
agent = "boss"
params = { content = "plan" }
background = true
expect = { content = "The answer is 3." }
[[step]]
on = "event:turn_completed"
agent = "w1"
client = "bob"
call = "get_messages"
expect = { total = 4, messages = [{ content = "count" }, {}, { content = "re:three apples" }, { content = "3." }] }
[[step]]
client = "alice"
confirm = { tool = "write_file", decision = "allow_once", agent = "boss" }
expect = { accepted = true }
[[step]]
after = "go"
call = "list_agents"

[expect]
agents = ["boss", "w1"]
files = { "/project/result.txt" = "3" }
model_calls = { w1 = 2 }
"#;

/// A folder with a home and a directory that stands for /project.
struct Ground(Folder);

impl Ground {
    fn with(text: &str) -> Self {
        let folder = Folder::with("x.toml", text);
        for name in ["root", "home"] {
            let made = DirBuilder::new().mode(0o700).create(folder.path().join(name));
            made.expect("a directory can be made");
        }
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Cargo puts both programs in one directory.
    fn program(name: &str) -> PathBuf {
        let program = Path::new(env!("CARGO_BIN_EXE_nexus3-sim")).with_file_name(name);
        assert!(program.exists(), "there is no {name}: build it with `cargo build --workspace`");
        program
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(Self::program(name));
        command.args(arguments).current_dir(self.path());
        command.env("NEXUS3_HOME", self.path().join("home"));
        command
    }

    fn model(&self) -> Running {
        let mut model = self.command("nexus3-sim", &["model", "x.toml", "--port", "0"]);
        let (running, config) = running::model(model.args(["--root", "root"]));
        let place = self.path().join("home/config.json");
        std::fs::write(place, config.to_string()).expect("the home can be written");
        running
    }

    /// A server in the directory that stands for /project, and its URL.
    fn server(&self) -> (Running, String) {
        self.served("root", &["serve", "--port", "0"])
    }

    /// The same in another directory, with other arguments.
    fn served(&self, folder: &str, arguments: &[&str]) -> (Running, String) {
        let mut server = self.command("nexus3", arguments);
        let server = server.current_dir(self.path().join(folder));
        let mut server = server.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut told = BufReader::new(server.stderr.take().expect("its output is piped"));
        let running = Running(server);
        let mut line = String::new();
        told.read_line(&mut line).expect("it prints text");
        let url = line.trim_end().rsplit(' ').next().expect("it says where it listens");
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        (running, url.to_owned())
    }

    fn conform(&self, url: &str) -> Ended {
        let arguments = ["conform", url, "x.toml", "--root", "root"];
        ended(self.command("nexus3-sim", &arguments).output().expect("the program starts"))
    }
}

#[test]
fn one_file_passes_in_the_simulation_and_against_a_real_server() {
    let ground = Ground::with(TEAM);
    let (simulated, printed, _) = ground.0.run(&["run", "x.toml", "--bless"]);
    assert_eq!(simulated, 0, "{printed}");
    let _model = ground.model();
    let (_server, url) = ground.server();
    let (code, out, told) = ground.conform(&url);
    assert_eq!((code, out.as_str()), (0, "ok     x.toml\n"), "{told}");
    assert_eq!(told, "left out: `model_calls`: only the model host counts them\n");
    let result = std::fs::read_to_string(ground.path().join("root/result.txt"));
    assert_eq!(result.expect("the agent wrote it"), "3");
}

/// The commands of the guide that play a scenario outside of the simulation, as words.
fn commands_of_the_guide() -> [Vec<String>; 3] {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/README.md");
    let guide = std::fs::read_to_string(guide).expect("the guide is there");
    let blocks = guide.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.last().expect("the guide has commands");
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = block.lines().map(words).collect();
    lines.try_into().expect("these are a model, a server and the steps")
}

#[test]
fn the_commands_of_the_guide_play_its_file_against_a_real_server() {
    let [model, server, conform] = commands_of_the_guide();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("sim lies in the project");
    let hand_off = std::fs::read_to_string(root.join(&model[2])).expect("its file is there");
    let ground = Ground::with(&hand_off);
    std::fs::create_dir(ground.path().join("scenarios")).expect("a directory can be made");
    std::fs::write(ground.path().join(&model[2]), &hand_off).expect("a file can be written");
    // Other programs may have the ports of the guide.
    assert_eq!(model[3..], ["--port", "9001", "--root", "work", ">", "work.json"]);
    let (_model, config) = running::model(
        &mut ground.command(&model[0], &["model", &model[2], "--port", "0", "--root", "work"]),
    );
    std::fs::write(ground.path().join("work.json"), config.to_string()).expect("it is written");
    assert_eq!(server.join(" "), "cd work && nexus3 serve --config ../work.json");
    let (_server, url) =
        ground.served("work", &["serve", "--config", "../work.json", "--port", "0"]);
    assert_eq!(conform[..3], ["nexus3-sim", "conform", "http://localhost:8765"]);
    let rest: Vec<&str> = conform[3..].iter().map(String::as_str).collect();
    let arguments = [&["conform", &url], &rest[..]].concat();
    let (code, out, told) =
        ended(ground.command("nexus3-sim", &arguments).output().expect("the program starts"));
    assert_eq!((code, out), (0, format!("ok     {}\n", model[2])), "{told}");
}

#[test]
fn what_differs_is_told_with_what_happened() {
    let wrong =
        TEAM.replace("expect = { content = \"The answer is 3.\" }", "expect = { content = \"4\" }");
    let wrong = wrong.replace("\"/project/result.txt\" = \"3\"", "\"/project/result.txt\" = \"4\"");
    let ground = Ground::with(&wrong);
    let _model = ground.model();
    let (_server, url) = ground.server();
    let (code, out, told) = ground.conform(&url);
    assert_eq!(code, 1, "{out}{told}");
    let step = "step 3 `go` (line 30): /content: expected \"4\", found \"The answer is 3.\"";
    assert!(out.starts_with("FAILED x.toml\n") && out.contains(step), "{out}");
    assert!(out.contains("result.txt: expected \"4\", found \"3\""), "{out}");
    assert!(told.contains("what happened:\n") && told.contains("⇠ turn_completed"), "{told}");
}

#[test]
fn what_cannot_be_played_is_refused_before_anything_happens() {
    let ground = Ground::with("schema = 1\nabout = \"x\"\n[[step]]\nstop = \"SIGTERM\"\n");
    let (code, _, told) = ground.conform("http://localhost:9");
    assert_eq!(code, 2);
    assert!(told.contains("x.toml:3: this step stops or starts its server"), "{told}");
    let ground = Ground::with(TEAM);
    let (code, _, told) = ground.conform("http://example.com:80");
    assert_eq!(code, 2);
    assert!(told.contains("servers are on this machine"), "{told}");
    let (code, _, told) = ground.conform("http://localhost:9");
    assert_eq!(code, 2);
    assert!(told.contains("cannot be used: no server answers"), "{told}");
}
