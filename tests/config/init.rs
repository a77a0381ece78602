//! First files, which do no harm to those that are there.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::{Person, ran};

#[test]
fn what_is_written_loads_without_complaint() {
    let person = Person::new();
    let (here, home) = (person.cwd.display().to_string(), person.home.path().display().to_string());
    let made = format!("made {here}/.nexus3/config.json\nmade {here}/NEXUS.md\n");
    assert_eq!(person.run(&["init"]), ran(0, &made, ""));
    let global = person.run(&["init", "--global", "--json"]);
    let both = [format!("{home}/config.json"), format!("{home}/NEXUS.md")];
    assert_eq!(global.json(), json!({"made": both, "kept": []}));
    let shown = person.run(&["config", "show", "--json"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    assert_eq!(shown.json()["ignored"], json!([]));
    assert_eq!(person.serve(&[]).said, [""; 0]);
}

#[test]
fn what_is_there_stays_as_it_is() {
    let person = Person::new();
    person.write("NEXUS.md", "Mine.");
    let here = person.cwd.display().to_string();
    let said = format!("made {here}/.nexus3/config.json\nkept {here}/NEXUS.md, which was there\n");
    assert_eq!(person.run(&["init"]), ran(0, &said, ""));
    person.write(".nexus3/config.json", "{} // mine");
    assert_eq!(person.run(&["init"]).code, 0);
    assert_eq!(fs::read_to_string(person.at("NEXUS.md")).unwrap(), "Mine.");
    assert_eq!(fs::read_to_string(person.at(".nexus3/config.json")).unwrap(), "{} // mine");
}

#[test]
fn nothing_is_written_through_a_link() {
    let mut person = Person::new();
    fs::create_dir(person.at("elsewhere")).unwrap();
    fs::create_dir(person.at("p")).unwrap();
    symlink(person.at("elsewhere"), person.at("p/.nexus3")).unwrap();
    symlink(person.at("elsewhere/NEXUS.md"), person.at("p/NEXUS.md")).unwrap();
    person.go("p");
    let refused = person.run(&["init"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{refused:?}");
    assert_eq!(fs::read_dir(person.at("elsewhere")).unwrap().count(), 0);
}
