//! A temporary directory that only its owner can enter, as a server's home must be.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

pub fn private_home() -> tempfile::TempDir {
    let private = Permissions::from_mode(0o700);
    let home = tempfile::Builder::new().permissions(private).tempdir();
    home.expect("a temporary directory is made")
}
