//! Random operations on the simulated and the real disk: both give the same answers, wrong paths,
//! links and removed directories included. Permissions are left out: root has them all.

use std::io;
use std::path::Path;
use std::sync::Arc;

use nexus3::world::{Access, Dir, Fs, Kind, LinkRefused, Stat, real};
use proptest::prelude::*;

use super::{disk, p};

/// Few names, so that they meet, and every way of getting one wrong.
const PATHS: [&str; 16] = [
    "a", "b", "l", "a/x", "a/y", "b/x", "a/x/y", "a/x/y/z", "l/x", "a/l", "./a/./x", ".", "",
    "a/..", "/a", "a/l/x",
];
const TARGETS: [&str; 4] = ["a", "b/x", "..", "/nowhere"];
const ACCESSES: [Access; 4] = [
    Access::Read,
    Access::Write,
    Access::Create { mode: 0o600 },
    Access::CreateNew { mode: 0o640 },
];

type Name = &'static str;

#[derive(Clone, Debug)]
enum Act {
    Open {
        path: Name,
        access: Access,
        offset: u64,
        bytes: Vec<u8>,
    },
    SetLen {
        path: Name,
        access: Access,
        len: u64,
    },
    OpenDir {
        path: Name,
    },
    Stat {
        path: Name,
    },
    List {
        path: Name,
    },
    ReadLink {
        path: Name,
    },
    MakeDir {
        path: Name,
    },
    MakeLink {
        path: Name,
        target: Name,
    },
    SetMode {
        path: Name,
        mode: u32,
    },
    Rename {
        from: Name,
        to: Name,
    },
    RemoveFile {
        path: Name,
    },
    RemoveDir {
        path: Name,
    },
    /// Goes on from a directory held open, whatever becomes of its name.
    Enter {
        path: Name,
    },
    Leave,
    Canonical {
        path: Name,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let path = || prop::sample::select(&PATHS[..]);
    let access = || prop::sample::select(&ACCESSES[..]);
    let bytes = prop::collection::vec(any::<u8>(), 0..5);
    let target = prop::sample::select(&TARGETS[..]);
    let act = prop_oneof![
        6 => (path(), access(), 0..9_u64, bytes)
            .prop_map(|(path, access, offset, bytes)| Act::Open { path, access, offset, bytes }),
        1 => (path(), access(), 0..9_u64)
            .prop_map(|(path, access, len)| Act::SetLen { path, access, len }),
        1 => path().prop_map(|path| Act::OpenDir { path }),
        2 => path().prop_map(|path| Act::Stat { path }),
        2 => path().prop_map(|path| Act::List { path }),
        1 => path().prop_map(|path| Act::ReadLink { path }),
        6 => path().prop_map(|path| Act::MakeDir { path }),
        3 => (path(), target).prop_map(|(path, target)| Act::MakeLink { path, target }),
        1 => (path(), 0..0o7777_u32).prop_map(|(path, mode)| Act::SetMode { path, mode }),
        6 => (path(), path()).prop_map(|(from, to)| Act::Rename { from, to }),
        2 => path().prop_map(|path| Act::RemoveFile { path }),
        3 => path().prop_map(|path| Act::RemoveDir { path }),
        1 => path().prop_map(|path| Act::Enter { path }),
        1 => Just(Act::Leave),
        1 => path().prop_map(|path| Act::Canonical { path }),
    ];
    prop::collection::vec(act, 0..50)
}

/// One of the two disks, and the directory the next operation is in.
struct Side {
    fs: Arc<dyn Fs>,
    root: Arc<dyn Dir>,
    root_path: std::path::PathBuf,
    here: Arc<dyn Dir>,
}

/// What both disks have to agree on: the value, or the kind of error.
fn told<T: std::fmt::Debug>(result: io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) if LinkRefused::is(&error) => "link refused".to_owned(),
        Err(error) => error.kind().to_string(),
    }
}

/// What a disk says of a file, without its time; how long a directory is differs from disk to disk.
fn facts(stat: &Stat) -> (Kind, u64, u32) {
    let len = match stat.kind {
        Kind::Dir => 0,
        Kind::File | Kind::Link | Kind::Other => stat.len,
    };
    (stat.kind, len, stat.mode)
}

impl Side {
    fn new(fs: Arc<dyn Fs>, root_path: &Path) -> Self {
        let root = fs.dir(root_path).expect("it is there");
        Self { fs, here: root.clone(), root, root_path: root_path.to_owned() }
    }

    fn apply(&mut self, act: &Act) -> String {
        let here = &self.here;
        match act {
            Act::Open { path, access, offset, bytes } => {
                told(here.open(p(path), *access).map(|file| {
                    let written = told(file.write_at(bytes, *offset));
                    (written, told(file.read_all(100)), told(file.stat().map(|stat| facts(&stat))))
                }))
            }
            Act::SetLen { path, access, len } => told(
                here.open(p(path), *access)
                    .map(|file| (told(file.set_len(*len)), told(file.read_all(100)))),
            ),
            Act::OpenDir { path } => told(here.dir(p(path)).map(drop)),
            Act::Stat { path } => told(here.stat(p(path)).map(|stat| facts(&stat))),
            Act::List { path } => told(here.dir(p(path)).and_then(|dir| dir.list())),
            Act::ReadLink { path } => told(here.read_link(p(path))),
            Act::MakeDir { path } => told(here.make_dir(p(path), 0o700)),
            Act::MakeLink { path, target } => told(here.make_link(p(path), p(target))),
            Act::SetMode { path, mode } => {
                // The bits without which nothing below could be reached by anybody but root.
                told(here.set_mode(p(path), (mode & 0o1777) | 0o700))
            }
            Act::Rename { from, to } => told(here.rename(p(from), p(to))),
            Act::RemoveFile { path } => told(here.remove_file(p(path))),
            Act::RemoveDir { path } => told(here.remove_dir(p(path))),
            Act::Enter { path } => match here.dir(p(path)) {
                Ok(dir) => {
                    self.here = dir;
                    "entered".to_owned()
                }
                Err(error) => told(io::Result::<()>::Err(error)),
            },
            Act::Leave => {
                self.here = self.root.clone();
                "left".to_owned()
            }
            Act::Canonical { path } => told(
                self.fs
                    .canonical(&self.root_path.join(path))
                    .map(|found| found.strip_prefix(&self.root_path).map(Path::to_owned).ok()),
            ),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_simulated_disk_answers_as_the_real_one(acts in acts()) {
        // One in another: what lies beside it is nobody else's.
        let outer = tempfile::tempdir().expect("a temporary directory is made");
        let temp = tempfile::tempdir_in(outer.path()).expect("it takes another");
        let real = real::fs_by_walking();
        let real_root = real.canonical(temp.path()).expect("it exists");
        let disk = disk();
        let mut sides = [Side::new(real, &real_root), Side::new(Arc::new(disk), p("/d"))];
        for (nth, act) in acts.iter().enumerate() {
            let [real, simulated] = sides.each_mut().map(|side| side.apply(act));
            prop_assert_eq!(real, simulated, "operation {}: {:?}", nth, act);
        }
    }
}
