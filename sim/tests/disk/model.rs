//! Random operations on the disk and on a map of paths to bytes: without a crash they agree, and a
//! crash after everything was synced changes nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nexus3::world::{Access, Fs};
use nexus3_sim::disk::{CrashMode, Disk, Item, View};
use proptest::prelude::*;

use super::{chance, dir, disk, p};

type Model = BTreeMap<PathBuf, Vec<u8>>;

const DIRS: [&str; 2] = ["one", "two"];
const NAMES: [&str; 6] = ["one/a", "one/b", "two/a", "two/b", "a", "b"];
const CREATE: Access = Access::Create { mode: 0o600 };

#[derive(Clone, Debug)]
enum Act {
    Write { name: &'static str, offset: usize, len: usize, byte: u8 },
    SetLen { name: &'static str, len: usize },
    Replace { name: &'static str, byte: u8 },
    Rename { from: &'static str, to: &'static str },
    Remove { name: &'static str },
    Sync { name: &'static str },
    SyncDir { dir: &'static str },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let name = || prop::sample::select(&NAMES[..]);
    let act = prop_oneof![
        4 => (name(), 0..3000_usize, 0..1500_usize, any::<u8>())
            .prop_map(|(name, offset, len, byte)| Act::Write { name, offset, len, byte }),
        1 => (name(), 0..3000_usize).prop_map(|(name, len)| Act::SetLen { name, len }),
        1 => (name(), any::<u8>()).prop_map(|(name, byte)| Act::Replace { name, byte }),
        2 => (name(), name()).prop_map(|(from, to)| Act::Rename { from, to }),
        1 => name().prop_map(|name| Act::Remove { name }),
        1 => name().prop_map(|name| Act::Sync { name }),
        1 => prop::sample::select(&DIRS[..]).prop_map(|dir| Act::SyncDir { dir }),
    ];
    prop::collection::vec(act, 0..60)
}

fn prepared() -> Disk {
    let disk = disk();
    for name in DIRS {
        let path = p("/d").join(name);
        disk.put(&path, Item::Dir { mode: 0o755 }).expect("there is nothing yet");
    }
    disk
}

/// Does it to both and checks that both allow it.
fn apply(disk: &Disk, model: &mut Model, act: &Act) {
    let dir = dir(disk);
    let path = |name: &str| p("/d").join(name);
    match act {
        Act::Write { name, offset, len, byte } => {
            let bytes = vec![*byte; *len];
            let file = dir.open(p(name), CREATE).expect("it opens");
            file.write_at(&bytes, *offset as u64).expect("it is written");
            let content = model.entry(path(name)).or_default();
            if *len > 0 {
                content.resize(content.len().max(offset + len), 0);
                content[*offset..offset + len].copy_from_slice(&bytes);
            }
        }
        Act::SetLen { name, len } => {
            let file = dir.open(p(name), CREATE).expect("it opens");
            file.set_len(*len as u64).expect("it is set");
            model.entry(path(name)).or_default().resize(*len, 0);
        }
        Act::Replace { name, byte } => {
            dir.replace(p(name), &[*byte; 600], 0o600, "temp").expect("it is replaced");
            model.insert(path(name), vec![*byte; 600]);
        }
        Act::Rename { from, to } => {
            let known = model.remove(&path(from));
            assert_eq!(dir.rename(p(from), p(to)).is_ok(), known.is_some(), "{act:?}");
            model.extend(known.map(|content| (path(to), content)));
        }
        Act::Remove { name } => {
            let known = model.remove(&path(name));
            assert_eq!(dir.remove_file(p(name)).is_ok(), known.is_some(), "{act:?}");
        }
        Act::Sync { name } => match dir.open(p(name), Access::Read) {
            Ok(file) => file.sync().expect("it syncs"),
            Err(_) => assert!(!model.contains_key(&path(name)), "{act:?}"),
        },
        Act::SyncDir { dir: name } => {
            dir.dir(p(name)).expect("it opens").sync().expect("it syncs");
        }
    }
}

fn files(disk: &Disk, view: View) -> Model {
    let content = |(path, item)| match item {
        Item::File { content, .. } => Some((path, content)),
        Item::Dir { .. } | Item::Link { .. } => None,
    };
    disk.tree(view).into_iter().filter_map(content).collect()
}

fn sync_everything(disk: &Disk) {
    for (path, item) in disk.tree(View::Now) {
        let parent = disk.dir(path.parent().expect("it is below the root")).expect("it opens");
        match item {
            Item::File { .. } => {
                let name = path.file_name().expect("it has a name");
                let file = parent.open(p(name.to_str().expect("it is text")), Access::Read);
                file.expect("it opens").sync().expect("it syncs");
            }
            Item::Dir { .. } => disk.dir(&path).expect("it opens").sync().expect("it syncs"),
            Item::Link { .. } => (),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_disk_agrees_with_a_map(acts in acts(), seed in any::<u64>()) {
        let disk = prepared();
        let mut model = Model::new();
        for act in &acts {
            apply(&disk, &mut model, act);
            prop_assert_eq!(&files(&disk, View::Now), &model);
        }
        sync_everything(&disk);
        prop_assert_eq!(disk.digest(View::Durable), disk.digest(View::Now));
        disk.crash(&mut chance(seed), CrashMode::Torn);
        prop_assert_eq!(files(&disk, View::Now), model);
    }

    #[test]
    fn a_crash_that_keeps_all_changes_nothing(acts in acts(), seed in any::<u64>()) {
        let disk = prepared();
        let mut model = Model::new();
        for act in &acts {
            apply(&disk, &mut model, act);
        }
        let digest = disk.digest(View::Now);
        disk.crash(&mut chance(seed), CrashMode::KeepAll);
        prop_assert_eq!(disk.digest(View::Now), digest);
        prop_assert_eq!(disk.digest(View::Durable), digest);
    }
}
