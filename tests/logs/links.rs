//! What lies in the place of a log: refused, told once, and in nobody else's way.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nexus3::logs::{Detail, Logs};
use nexus3_sim::disk::{Item, View};

use super::{LOGS, Said, entries, id, log_on, said, simulated};

#[tokio::test(start_paused = true)]
async fn links_and_folders_in_the_place_of_logs_are_refused() {
    let (world, disk) = simulated();
    let put = |path: &str, item| disk.put(Path::new(path), item).expect("there is nothing yet");
    let link = |target: &str| Item::Link { target: PathBuf::from(target) };
    put("/prey/context.md", Item::File { content: b"prey".to_vec(), mode: 0o600 });
    put("/home/logs/dir-link", link("/prey"));
    put("/home/logs/file-link/context.md", link("/prey/context.md"));
    put("/home/logs/folder/context.md", Item::Dir { mode: 0o700 });
    put("/home/logs/file", Item::File { content: Vec::new(), mode: 0o600 });
    let said_so = Said::listen();
    let logs = Logs::start(&world, LOGS.into(), Detail::default());
    for _ in 0..3 {
        for agent in ["dir-link", "file-link", "folder", "file", "good"] {
            logs.message(&id(agent), &said("hi"));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(said_so.lines(), 4, "each place is told once");
    let tree = disk.tree(View::Now);
    let prey = &tree[Path::new("/prey/context.md")];
    assert_eq!(prey, &Item::File { content: b"prey".to_vec(), mode: 0o600 });
    assert_eq!(tree.keys().filter(|path| path.starts_with("/prey")).count(), 2);
    assert_eq!(entries(&log_on(&disk, "good/context.md")), ["user: hi"; 3]);

    disk.remove(Path::new("/home/logs/dir-link")).expect("it is there");
    logs.message(&id("dir-link"), &said("hi"));
    logs.close().await;
    let written = entries(&log_on(&disk, "dir-link/context.md"));
    assert_eq!(written, ["3 entries were not written here", "user: hi"]);
}
