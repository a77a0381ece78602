//! What the process was started with.

use std::path::PathBuf;

pub trait Environment: Send + Sync {
    /// A variable's value; `None` where it is unset or not UTF-8.
    fn var(&self, name: &str) -> Option<String>;
    /// All variables that are UTF-8, sorted by name.
    fn vars(&self) -> Vec<(String, String)>;
    /// The working directory, absolute.
    fn current_dir(&self) -> std::io::Result<PathBuf>;
    /// The user's home directory.
    fn home_dir(&self) -> Option<PathBuf>;
    /// What the operating system is called, for models.
    fn os(&self) -> &'static str;
    /// This process's number, for messages to people.
    fn process_id(&self) -> u32;
}
