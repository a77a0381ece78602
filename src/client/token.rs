//! Where a client finds its token: given, in the environment, or in the server's home.

use std::io;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use crate::world::{Access, World};

const TOKEN_BYTES_MAX: u64 = 4096;
const VARIABLE: &str = "NEXUS3_API_KEY";

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("others can read the token file {}: run `chmod 600 {}`", path.display(), path.display())]
    Readable { path: PathBuf },
    #[error("cannot read the token file {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the token file {} is not text", path.display())]
    NotText { path: PathBuf },
}

/// Finds the token for the server on `port`; `None` where there is none anywhere.
pub fn find_token(
    world: &World,
    home: &Path,
    port: u16,
    given: Option<String>,
) -> Result<Option<SecretString>, TokenError> {
    let in_variable = || world.environment.var(VARIABLE).filter(|token| !token.is_empty());
    if let Some(token) = given.or_else(in_variable) {
        return Ok(Some(token.trim().to_owned().into()));
    }
    let names = [
        format!("rpc-{port}.token"),
        "rpc.token".to_owned(),
        format!("server-{port}.key"),
        "server.key".to_owned(),
    ];
    for name in names {
        if let Some(token) = read(world, home, Path::new(&name))? {
            return Ok(Some(token));
        }
    }
    Ok(None)
}

fn read(world: &World, home: &Path, name: &Path) -> Result<Option<SecretString>, TokenError> {
    let path = home.join(name);
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let opened = world.fs.dir(home).and_then(|dir| dir.open(name, Access::Read));
    let file = match opened {
        Ok(file) => file,
        Err(error) if missing(&error) => return Ok(None),
        Err(source) => return Err(TokenError::Read { path, source }),
    };
    let content = file.stat().and_then(|stat| Ok((stat.mode, file.read_all(TOKEN_BYTES_MAX)?)));
    match content {
        Ok((mode, _)) if mode & 0o077 != 0 => Err(TokenError::Readable { path }),
        Ok((_, bytes)) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.trim().to_owned().into())),
            Err(_) => Err(TokenError::NotText { path }),
        },
        Err(source) => Err(TokenError::Read { path, source }),
    }
}
