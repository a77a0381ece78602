//! The scenario that a newcomer starts from.

/// The text of a first scenario: it is complete, runs, and says what its parts are for.
pub fn first(name: &str) -> String {
    // A name with a line break would end the comment it stands in.
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    include_str!("first.toml").replacen("NAME", &name, 1)
}
