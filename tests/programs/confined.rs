//! What a program is started with, and what it reaches.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nexus3::world::{Confinement, Execute, Exit, Program, Programs, real};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::must;
use crate::server::Server;

fn programs() -> std::sync::Arc<dyn Programs> {
    real::programs_by(env!("CARGO_BIN_EXE_nexus3").into())
}

/// Runs a script at the seam; gives what it said, errors included, and how it ended.
async fn run(script: &str, directory: &Path, confinement: Confinement) -> (String, Exit) {
    let program = Program {
        program: "/bin/sh".into(),
        arguments: ["-c", &format!("exec 2>&1; {script}")].map(Into::into).to_vec(),
        directory: directory.to_owned(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        confinement,
    };
    let mut process = must("it starts", programs().start(program)).await.expect("it starts");
    let mut text = String::new();
    let mut output = process.stdout().expect("the output is piped");
    must("it ends", output.read_to_string(&mut text)).await.expect("it speaks UTF-8");
    (text, must("it ends", process.wait()).await.expect("it is waited for"))
}

#[tokio::test]
async fn a_program_gets_a_clean_environment() {
    let server = Server::start();
    let agent = server.create("scout", "yolo").await;
    let told = server.tool(&agent, "exec", json!({"program": "env"})).await;
    let path = "PATH=/usr/local/bin:/usr/bin:/bin";
    assert_eq!(told, format!("stdout:\nLC_ALL=C\n{path}\nexit code: 0"));
    let told = server.tool(&agent, "exec", json!({"program": "nowhere"})).await;
    assert_eq!(told, "There is no program `nowhere` on this machine.");
}

#[tokio::test]
async fn a_program_has_no_descriptors_but_its_pipes() {
    let scratch = tempfile::tempdir().expect("a temporary directory is made");
    // As if we had been started with it.
    let inherited = File::create(scratch.path().join("inherited")).expect("a file is made");
    fcntl_setfd(&inherited, FdFlags::empty()).expect("it may be inherited");
    let (said, _) = run("exec ls /proc/self/fd", scratch.path(), Confinement::None).await;
    assert_eq!(said, "0\n1\n2\n3\n", "the fourth is the listing itself");
}

fn granted(read: &[&Path], write: &[&Path]) -> Confinement {
    let system = ["/usr", "/bin", "/lib", "/lib64", "/etc"].map(PathBuf::from);
    Confinement::Landlock {
        read: system.into_iter().chain(read.iter().map(PathBuf::from)).collect(),
        write: write.iter().map(PathBuf::from).chain(["/dev/null".into()]).collect(),
        execute: Execute::Readable,
    }
}

/// Whether this kernel confines anything: a test says so where it does not.
pub async fn is_confining(scratch: &Path) -> bool {
    let secret = scratch.join("probe");
    fs::write(&secret, "x").expect("a file is written");
    let (said, _) = run(&format!("cat '{}'", secret.display()), scratch, granted(&[], &[])).await;
    said != "x"
}

#[tokio::test]
async fn a_confined_program_reaches_what_it_was_granted_and_nothing_else() {
    let scratch = tempfile::tempdir().expect("a temporary directory is made");
    let scratch = scratch.path().canonicalize().expect("it exists");
    if !is_confining(&scratch).await {
        let said = "this kernel has no Landlock, so programs are not confined";
        assert!(!Path::new("/sys/kernel/security/landlock").exists(), "{said}");
        return;
    }
    let [inside, shown, secret] = ["inside", "shown", "secret"].map(|name| scratch.join(name));
    for directory in [&inside, &shown, &secret] {
        fs::create_dir(directory).expect("a directory is made");
        fs::write(directory.join("file"), "text\n").expect("a file is written");
    }
    std::os::unix::fs::symlink(&secret, scratch.join("link")).expect("a link is made");
    let link = scratch.join("link");
    let grants = || granted(&[&shown, &link], &[&inside]);
    let (done, refused) = (true, false);
    for (script, expected) in [
        ("cat file ../shown/file > copy && rm copy", done),
        ("mkdir new && touch new/x && rm -r new", done),
        ("cat ../secret/file", refused),
        // The grant was for a link, and leads nowhere.
        ("cat ../link/file", refused),
        ("ls ../secret", refused),
        ("echo x > ../shown/file", refused),
        ("echo x > ../shown/new", refused),
        ("rm ../shown/file", refused),
        ("ln ../secret/file here", refused),
        ("mv ../secret/file here", refused),
        ("setsid sh -c 'cat ../secret/file'", refused),
        ("cat /proc/1/cmdline", refused),
    ] {
        let (said, exit) = run(script, &inside, grants()).await;
        assert_eq!(exit == Exit::Code(0), expected, "{script}: {said}");
        assert_ne!(said, "text\n", "{script} shows nothing");
    }
    for directory in [&shown, &secret] {
        assert_eq!(fs::read_to_string(directory.join("file")).expect("it is there"), "text\n");
    }
    // Nor can it end the one who watches over it.
    let (said, exit) = run("kill -9 $PPID", &inside, grants()).await;
    assert_ne!(exit, Exit::Code(0), "{said}");
}

#[tokio::test]
async fn a_program_that_may_execute_itself_alone_starts_nothing() {
    let scratch = tempfile::tempdir().expect("a temporary directory is made");
    let scratch = scratch.path().canonicalize().expect("it exists");
    if !is_confining(&scratch).await {
        return;
    }
    let Confinement::Landlock { read, write, .. } = granted(&[&scratch], &[&scratch]) else {
        unreachable!("it was made like this")
    };
    fs::copy("/bin/ls", scratch.join("own")).expect("a program is copied");
    for (script, expected) in
        [("echo built in", Exit::Code(0)), ("ls", Exit::Code(126)), ("./own", Exit::Code(126))]
    {
        let confinement = Confinement::Landlock {
            read: read.clone(),
            write: write.clone(),
            execute: Execute::Itself,
        };
        let (said, exit) = run(script, &scratch, confinement).await;
        assert_eq!(exit, expected, "{script}: {said}");
    }
}
