//! The bans of `.clippy.toml` really catch: each snippet here, put into `src/`, fails `just check`.
//! Runs clippy's own driver on small files with our configuration.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test starts clippy and writes the snippets it judges"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

/// What the stub of tokio offers, under the real paths.
const TOKIO: &str = "
pub mod task { pub fn spawn_blocking(_: impl Fn()) {} pub fn block_in_place(_: impl Fn()) {} }
pub mod net {
    pub struct TcpListener; pub struct TcpStream; pub struct UdpSocket;
    pub fn lookup_host(_: &str) {}
}
pub mod process { pub struct Command; }
pub mod signal { pub fn ctrl_c() {} pub mod unix { pub fn signal() {} } }
pub mod sync { pub mod watch { pub struct Sender<T>(pub T); } }
";

/// Snippets with the path that the ban must name.
const SNIPPETS: &[(&str, &str)] = &[
    ("std::time::SystemTime::now", "pub fn f() -> u64 { drop(std::time::SystemTime::now()); 0 }"),
    ("std::time::Instant::now", "pub fn f() { let _ = std::time::Instant::now(); }"),
    ("std::collections::HashMap", "pub fn f(_: &std::collections::HashMap<u8, u8>) {}"),
    ("std::collections::HashSet", "pub fn f(_: &std::collections::HashSet<u8>) {}"),
    ("std::fs::File", "pub fn f(_: &std::fs::File) {}"),
    ("std::fs::read", "pub fn f() { let _ = std::fs::read(\"x\"); }"),
    ("std::fs::write", "pub fn f() { let _ = std::fs::write(\"x\", \"y\"); }"),
    ("std::path::Path::exists", "pub fn f(p: &std::path::Path) -> bool { p.exists() }"),
    ("std::thread::spawn", "pub fn f() { std::thread::spawn(|| ()); }"),
    ("std::thread::sleep", "pub fn f(d: std::time::Duration) { std::thread::sleep(d); }"),
    ("std::env::var", "pub fn f() { let _ = std::env::var(\"X\"); }"),
    ("std::env::current_dir", "pub fn f() { let _ = std::env::current_dir(); }"),
    ("std::process::Command", "pub fn f(_: std::process::Command) {}"),
    ("std::process::exit", "pub fn f() { std::process::exit(1) }"),
    ("std::net::TcpListener", "pub fn f(_: std::net::TcpListener) {}"),
    ("std::net::TcpStream", "pub fn f(_: std::net::TcpStream) {}"),
    ("tokio::net::TcpStream", "pub fn f(_: tokio::net::TcpStream) {}"),
    ("tokio::net::lookup_host", "pub fn f() { tokio::net::lookup_host(\"x\"); }"),
    ("tokio::task::spawn_blocking", "pub fn f() { tokio::task::spawn_blocking(|| ()); }"),
    ("tokio::process::Command", "pub fn f(_: tokio::process::Command) {}"),
    ("tokio::signal::ctrl_c", "pub fn f() { tokio::signal::ctrl_c(); }"),
    ("tokio::sync::watch::Sender", "pub fn f(_: &tokio::sync::watch::Sender<u8>) {}"),
    ("getrandom::fill", "pub fn f() { getrandom::fill(&mut [0; 4]); }"),
    ("rusqlite::Connection::open", "pub fn f() { rusqlite::Connection::open(\"x\"); }"),
    ("reqwest::Client", "pub fn f(_: reqwest::Client) {}"),
    ("jiff::Timestamp::now", "pub fn f() { jiff::Timestamp::now(); }"),
];

/// Stubs of the other crates, each with what the snippets name.
const STUBS: &[(&str, &str)] = &[
    ("tokio", TOKIO),
    ("getrandom", "pub fn fill(_: &mut [u8]) {}"),
    ("rusqlite", "pub struct Connection; impl Connection { pub fn open(_: &str) {} }"),
    ("reqwest", "pub struct Client;"),
    ("jiff", "pub struct Timestamp; impl Timestamp { pub fn now() {} }"),
];

fn compile(program: &str, dir: &Path, name: &str, text: &str) -> (bool, String) {
    let source = dir.join(format!("{name}.rs"));
    fs::write(&source, text).expect("the temporary directory takes a file");
    let mut command = Command::new(program);
    command.arg(&source).current_dir(dir);
    command.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata"]);
    command.args(["--crate-name", name, "--out-dir"]).arg(dir).arg("-L").arg(dir);
    for (stub, _) in STUBS.iter().filter(|(stub, _)| *stub != name) {
        let file = dir.join(format!("lib{stub}.rmeta"));
        if file.exists() {
            command.arg("--extern").arg(format!("{stub}={}", file.display()));
        }
    }
    command.env("CLIPPY_CONF_DIR", env!("CARGO_MANIFEST_DIR"));
    let output = command.output().unwrap_or_else(|error| {
        panic!("cannot run {program} ({error}): install it with `rustup component add clippy`")
    });
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn stage() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("there is room for a temporary directory");
    for (name, text) in STUBS {
        let (built, errors) = compile("rustc", dir.path(), name, text);
        assert!(built, "the stub of {name} does not build: {errors}");
    }
    dir
}

fn judge(dir: &Path, text: &str) -> (bool, String) {
    let lints = "#![deny(clippy::disallowed_methods, clippy::disallowed_types)]";
    compile("clippy-driver", dir, "snippet", &format!("{lints}\n{text}\n"))
}

#[test]
fn what_goes_past_the_seams_is_refused() {
    let dir = stage();
    for (path, snippet) in SNIPPETS {
        let (passed, errors) = judge(dir.path(), snippet);
        assert!(!passed, "`{snippet}` passes");
        let named = errors.contains(&format!("`{path}`"));
        assert!(named, "`{snippet}` is refused for another reason: {errors}");
    }
}

#[test]
fn what_is_allowed_passes_the_same_way() {
    let dir = stage();
    let (passed, errors) = judge(dir.path(), "pub fn f(_: &std::collections::BTreeMap<u8, u8>) {}");
    assert!(passed, "{errors}");
}

#[test]
fn product_code_is_held_to_the_bans() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for manifest in ["Cargo.toml", "sim/Cargo.toml"] {
        let text = fs::read_to_string(root.join(manifest)).unwrap();
        for lint in ["disallowed_methods", "disallowed_types", "unwrap_used"] {
            assert!(text.contains(&format!("{lint} = \"deny\"")), "{manifest} denies {lint}");
        }
    }
}
