//! What these commands say about themselves.

use crate::support::Person;

#[test]
fn help_is_complete() {
    let person = Person::new();
    let commands: &[(&str, &[&str])] = &[
        ("help_trust", &["trust"]),
        ("help_config", &["config"]),
        ("help_config_show", &["config", "show"]),
        ("help_config_schema", &["config", "schema"]),
        ("help_init", &["init"]),
        ("help_doctor", &["doctor"]),
    ];
    for (name, command) in commands {
        let helped = person.run(&[command, &["--help"][..]].concat());
        assert_eq!((helped.code, helped.stderr.as_str()), (0, ""), "{name}");
        insta::assert_snapshot!(*name, helped.stdout);
    }
}
