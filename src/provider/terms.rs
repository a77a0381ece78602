//! On which terms a provider is asked: who vouches for it, and where it may be.
//! It reads the file of authorities once, at the start, and never connects to anybody.

use std::io;
use std::path::Path;

use super::models::ModelError;
use crate::config::{NetworkConfig, ProviderConfig};
use crate::limits::CA_FILE_BYTES_MAX;
use crate::world::{Access, Authorities, Fs, HttpTerms};

pub(super) fn of(
    fs: &dyn Fs,
    name: &str,
    config: &ProviderConfig,
    network: &NetworkConfig,
) -> Result<HttpTerms, ModelError> {
    let authorities = match &config.ca_file {
        Some(path) => authorities(fs, name, path)?,
        None => Authorities::default(),
    };
    Ok(HttpTerms { authorities, reach: network.reach() })
}

fn authorities(fs: &dyn Fs, name: &str, path: &Path) -> Result<Authorities, ModelError> {
    let (provider, path) = (name.to_owned(), path.to_owned());
    match read(fs, &path) {
        Ok(content) => Authorities::parse(&content).map_err(|source| ModelError::Authorities {
            provider,
            path,
            source,
        }),
        Err(source) => Err(ModelError::CaFile { provider, path, source }),
    }
}

/// Links are followed: systems keep certificates behind them.
fn read(fs: &dyn Fs, path: &Path) -> io::Result<Vec<u8>> {
    let path = fs.canonical(path)?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    fs.dir(parent)?.open(Path::new(name), Access::Read)?.read_all(CA_FILE_BYTES_MAX)
}
