//! What a power cut takes from the disk, and what it does not.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nexus3::world::{Access, Dir, File, Fs};
use nexus3_sim::disk::{CrashMode, Disk, Gone, Item, View};

use super::{chance, dir, disk, p};

const NEW: Access = Access::CreateNew { mode: 0o600 };

fn make(dir: &dyn Dir, name: &str, content: &str) -> Arc<dyn File> {
    let file = dir.open(p(name), NEW).expect("it is new");
    file.write_at(content.as_bytes(), 0).expect("it is written");
    file
}

/// The files of `/d` as a power cut that loses all it can leaves them.
fn after_losing_all(disk: &Disk) -> BTreeMap<String, String> {
    let durable = disk.tree(View::Durable);
    disk.power_off();
    disk.crash(&mut chance(0), CrashMode::LoseAll);
    disk.power_on();
    assert_eq!(disk.tree(View::Now), durable, "what is called durable is what is left");
    files(durable)
}

fn files(tree: BTreeMap<PathBuf, Item>) -> BTreeMap<String, String> {
    let text = |(path, item): (PathBuf, Item)| match item {
        Item::File { content, .. } => Some((
            path.display().to_string(),
            String::from_utf8(content).expect("the tests write text"),
        )),
        Item::Dir { .. } | Item::Link { .. } => None,
    };
    tree.into_iter().filter_map(text).collect()
}

fn texts<const N: usize>(files: [(&str, &str); N]) -> BTreeMap<String, String> {
    files.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
}

#[test]
fn a_file_needs_its_content_and_its_name_synced() {
    let disk = disk();
    let dir = dir(&disk);
    make(&*dir, "nothing synced", "x");
    make(&*dir, "content synced", "x").sync().expect("it syncs");
    assert_eq!(after_losing_all(&disk), texts([]));

    let dir = super::dir(&disk);
    make(&*dir, "name synced", "x");
    make(&*dir, "both synced", "x").sync().expect("it syncs");
    dir.sync().expect("it syncs");
    make(&*dir, "later", "x").sync().expect("it syncs");
    assert_eq!(after_losing_all(&disk), texts([("/d/both synced", "x"), ("/d/name synced", "")]));
}

#[test]
fn renames_and_removals_need_their_directory_synced() {
    let disk = disk();
    for name in ["moved", "removed", "replaced"] {
        let item = Item::File { content: name.into(), mode: 0o600 };
        disk.put(&p("/d").join(name), item).expect("there is nothing yet");
    }
    let change = |disk: &Disk| {
        let dir = dir(disk);
        dir.rename(p("moved"), p("replaced")).expect("it is renamed");
        dir.remove_file(p("removed")).expect("it is removed");
        dir
    };
    change(&disk);
    let before =
        texts([("/d/moved", "moved"), ("/d/removed", "removed"), ("/d/replaced", "replaced")]);
    assert_eq!(after_losing_all(&disk), before);
    change(&disk).sync().expect("it syncs");
    assert_eq!(after_losing_all(&disk), texts([("/d/replaced", "moved")]));
}

#[test]
fn a_rename_between_directories_is_all_or_nothing() {
    for point in [p("from"), p("to")] {
        let disk = disk();
        for name in ["/d/from/file", "/d/to/other"] {
            let item = Item::File { content: name.into(), mode: 0o600 };
            disk.put(p(name), item).expect("there is nothing yet");
        }
        let dir = dir(&disk);
        dir.rename(p("from/file"), p("to/file")).expect("it is renamed");
        dir.dir(point).expect("it opens").sync().expect("it syncs");
        let after = texts([("/d/to/file", "/d/from/file"), ("/d/to/other", "/d/to/other")]);
        assert_eq!(after_losing_all(&disk), after, "whichever of the two is synced");
    }
}

#[test]
fn a_directory_that_was_not_synced_takes_what_is_in_it_along() {
    let disk = disk();
    let dir = dir(&disk);
    dir.make_dir(p("new"), 0o700).expect("it is made");
    let new = dir.dir(p("new")).expect("it opens");
    make(&*new, "file", "x").sync().expect("it syncs");
    new.sync().expect("it syncs");
    assert_eq!(disk.tree(View::Durable).into_keys().collect::<Vec<_>>(), [p("/d")]);
    dir.sync().expect("it syncs");
    assert_eq!(after_losing_all(&disk), texts([("/d/new/file", "x")]));
}

#[test]
fn a_mode_is_durable_with_its_file() {
    let disk = disk();
    let dir = dir(&disk);
    let file = make(&*dir, "file", "");
    dir.sync().expect("it syncs");
    dir.set_mode(p("file"), 0o400).expect("it is set");
    let mode = |disk: &Disk| disk.tree(View::Durable)[p("/d/file")].clone();
    assert_eq!(mode(&disk), Item::File { content: Vec::new(), mode: 0o600 });
    file.sync().expect("it syncs");
    assert_eq!(mode(&disk), Item::File { content: Vec::new(), mode: 0o400 });
}

#[test]
fn nothing_works_without_power_nor_becomes_durable() {
    let disk = disk();
    let dir = dir(&disk);
    let file = make(&*dir, "file", "x");
    dir.sync().expect("it syncs");
    disk.power_off();
    let gone = [
        file.sync(),
        file.write_at(b"y", 0),
        file.read_at(&mut [0], 0).map(drop),
        file.try_lock(),
        dir.sync(),
        dir.list().map(drop),
        dir.remove_file(p("file")),
        disk.dir(p("/d")).map(drop),
    ];
    for result in gone {
        assert!(Gone::is(&result.expect_err("there is no power")), "and nothing else is wrong");
    }
    assert_eq!(files(disk.tree(View::Durable)), texts([("/d/file", "")]));
    // Without a crash in between nothing is lost when it comes back.
    disk.power_on();
    file.sync().expect("it syncs");
    assert_eq!(files(disk.tree(View::Durable)), texts([("/d/file", "x")]));
}

#[test]
fn handles_and_locks_end_with_the_process() {
    let ends: [fn(&Disk); 2] = [Disk::kill, |disk| disk.crash(&mut chance(0), CrashMode::KeepAll)];
    for end in ends {
        let disk = disk();
        let old_dir = dir(&disk);
        let old = make(&*old_dir, "file", "x");
        old.try_lock().expect("it is free");
        assert_eq!(disk.handles(), 2);
        disk.power_off();
        end(&disk);
        disk.power_on();
        assert_eq!(disk.handles(), 0);
        assert!(Gone::is(&old.write_at(b"y", 0).expect_err("it is from before")));
        assert!(Gone::is(&old_dir.list().expect_err("so is the directory")));
        let new = dir(&disk).open(p("file"), Access::Write).expect("it is there");
        new.try_lock().expect("the lock's holder is gone");
        drop((old, old_dir));
        let other = dir(&disk).open(p("file"), Access::Write).expect("it is there");
        assert!(other.try_lock().is_err(), "the old handle's end frees nobody else's lock");
        assert_eq!(new.read_all(10).expect("it is read"), b"x", "what was written is still there");
    }
}

#[test]
fn a_killed_process_loses_nothing_and_makes_nothing_durable() {
    let disk = disk();
    make(&*dir(&disk), "file", "x");
    let digests = |disk: &Disk| [disk.digest(View::Now), disk.digest(View::Durable)];
    let before = digests(&disk);
    disk.kill();
    assert_eq!(digests(&disk), before);
    assert_eq!(after_losing_all(&disk), texts([]));
}

#[test]
fn the_power_is_cut_at_the_operation_asked_for() {
    let run = |cut: u64| {
        let disk = disk();
        disk.power_off_in(cut);
        let dir = dir(&disk);
        let file = dir.open(p("file"), NEW).expect("making a file is no point");
        let results = [
            file.write_at(b"x", 0),
            file.sync(),
            file.set_len(3),
            dir.sync(),
            file.write_at(b"y", 0),
        ];
        let done = results.iter().take_while(|result| result.is_ok()).count();
        let kept = {
            disk.crash(&mut chance(0), CrashMode::KeepAll);
            files(disk.tree(View::Now))
        };
        (done, disk.operations(), kept)
    };
    assert_eq!(run(1), (0, 1, texts([("/d/file", "x")])), "a write reached the cache");
    assert_eq!(run(2), (1, 2, texts([("/d/file", "x")])));
    assert_eq!(run(3), (2, 3, texts([("/d/file", "x\0\0")])));
    assert_eq!(run(4), (3, 4, texts([("/d/file", "x\0\0")])));
    assert_eq!(run(6), (5, 5, texts([("/d/file", "y\0\0")])), "there are no more");
    assert_eq!(run(0), (5, 5, texts([("/d/file", "y\0\0")])), "0 asks for no cut");
}

#[test]
fn the_same_draws_leave_the_same_disk() {
    let crashed = |seed: u64| {
        let disk = disk();
        let dir = dir(&disk);
        for n in 0..20 {
            make(&*dir, &format!("file {n}"), &"text".repeat(500));
        }
        disk.crash(&mut chance(seed), CrashMode::Torn);
        disk.digest(View::Now)
    };
    assert_eq!(crashed(1), crashed(1));
    assert_ne!(crashed(1), crashed(2));
}

#[test]
fn a_digest_is_the_same_number_everywhere() {
    let disk = disk();
    make(&*dir(&disk), "file", "text");
    dir(&disk).make_link(p("link"), p("file")).expect("it is made");
    // FNV-1a as anybody else computes it.
    assert_eq!(disk.digest(View::Now), 0x9b7e_bdd5_1fc5_103c);
    assert_eq!(disk.digest(View::Durable), 0xa75f_5455_2859_f29a);
}

#[test]
fn removed_files_are_forgotten() {
    let disk = disk();
    let dir = dir(&disk);
    let kept = make(&*dir, "kept open", "still here");
    dir.remove_file(p("kept open")).expect("it is removed");
    for n in 0..3000 {
        dir.make_dir(p("room"), 0o700).expect("it is made");
        dir.replace(p("room/file"), n.to_string().as_bytes(), 0o600, "temp").expect("it is new");
        dir.remove_file(p("room/file")).expect("it is removed");
        dir.remove_dir(p("room")).expect("it is removed");
        if n % 7 == 0 {
            dir.sync().expect("it syncs");
        }
    }
    kept.write_at(b"STILL", 0).expect("a removed file takes bytes");
    assert_eq!(kept.read_all(100).expect("it is read"), b"STILL here");
    disk.crash(&mut chance(0), CrashMode::KeepAll);
    assert_eq!(files(disk.tree(View::Now)), texts([]));
}

#[test]
fn the_power_goes_at_the_point_of_that_number() {
    let disk = disk();
    disk.put(p("/d/logs"), Item::Dir { mode: 0o755 }).expect("there is room");
    disk.set_unimportant(p("/d/logs"));
    disk.power_off_at_point(3);
    disk.power_off_at_point(2);
    disk.spare_point(2);
    let dir = dir(&disk);
    let file = make(&*dir, "a", "x");
    make(&*dir.dir(p("logs")).expect("it was put there"), "b", "x");
    assert_eq!((disk.points(), disk.operations()), (1, 2), "logs are no durable points");
    file.sync().expect("the point was spared");
    let cut = dir.sync().expect_err("it is the third point");
    assert!(Gone::is(&cut) && disk.is_off());
    disk.crash(&mut chance(0), CrashMode::LoseAll);
    disk.power_on();
    assert_eq!(files(disk.tree(View::Now)), texts([]), "a sync that was cut has done nothing");
    make(&*super::dir(&disk), "c", "x");
    assert_eq!(disk.points(), 4, "points are counted over crashes");
}
