//! How a server is started and ends, by its flags.

use crate::support::Person;

#[test]
fn a_server_that_nobody_uses_ends_by_itself() {
    let person = Person::new();
    let spellings: [&[&str]; 3] = [
        &["serve", "0", "--idle-timeout", "0.05"],
        &["--serve", "0", "--idle-timeout", "0.05"],
        &["--serve", "--port", "0", "--idle-timeout", "0.05"],
    ];
    for spelling in spellings {
        let served = person.run(spelling);
        assert_eq!((served.code, served.stdout.as_str()), (0, ""), "{spelling:?}: {served:?}");
        assert!(
            served.stderr.contains("nobody has used the server for 0.05 seconds"),
            "{served:?}"
        );
    }
    let left: Vec<_> = std::fs::read_dir(person.home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().ends_with(".token"))
        .collect();
    assert_eq!(left, [""; 0], "its token is gone with it");
}

#[test]
fn the_flag_wins_over_the_variable_and_the_variable_over_the_file() {
    let mut person = Person::new();
    person.write_home("config.json", r#"{"server": {"idle_timeout": 1000, "port": 0}}"#);
    person.set("NEXUS3_SERVER__IDLE_TIMEOUT", "0.05");
    assert_eq!(person.run(&["serve"]).code, 0);
    person.set("NEXUS3_SERVER__IDLE_TIMEOUT", "2000");
    assert_eq!(person.run(&["serve", "--idle-timeout", "0.05"]).code, 0);
    person.set("NEXUS3_SERVER__IDLE_TIMEOUT", "soon");
    let wrong = person.run(&["serve"]);
    let told = "error: NEXUS3_SERVER__IDLE_TIMEOUT: server.idle_timeout: expected a number";
    assert!(wrong.code == 1 && wrong.stderr.starts_with(told), "{wrong:?}");
    for time in ["0", "-1", "soon", "1e99"] {
        let wrong = person.run(&["serve", &format!("--idle-timeout={time}")]);
        assert_eq!((wrong.code, wrong.stdout.as_str()), (2, ""), "{time}: {wrong:?}");
    }
}
