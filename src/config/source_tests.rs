//! Files that can be read, and those that cannot. The machine here has one file.

use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::world::{Dir, Entry, File, Stat};

#[derive(Clone)]
struct OneFile(Vec<u8>);

impl Fs for OneFile {
    fn dir(&self, path: &Path) -> io::Result<Arc<dyn Dir>> {
        assert_eq!(path, Path::new("/real"));
        Ok(Arc::new(self.clone()))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        match path.to_str() {
            Some("/link/config.json") => Ok("/real/file".into()),
            Some("/locked") => Err(io::ErrorKind::PermissionDenied.into()),
            Some("/") => Ok("/".into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Dir for OneFile {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        assert_eq!((path, access), (Path::new("file"), Access::Read));
        Ok(Arc::new(self.clone()))
    }

    fn dir(&self, _: &Path) -> io::Result<Arc<dyn Dir>> {
        unimplemented_here()
    }
    fn stat(&self, _: &Path) -> io::Result<Stat> {
        unimplemented_here()
    }
    fn list(&self) -> io::Result<Vec<Entry>> {
        unimplemented_here()
    }
    fn read_link(&self, _: &Path) -> io::Result<PathBuf> {
        unimplemented_here()
    }
    fn make_dir(&self, _: &Path, _: u32) -> io::Result<()> {
        unimplemented_here()
    }
    fn make_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        unimplemented_here()
    }
    fn set_mode(&self, _: &Path, _: u32) -> io::Result<()> {
        unimplemented_here()
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        unimplemented_here()
    }
    fn remove_file(&self, _: &Path) -> io::Result<()> {
        unimplemented_here()
    }
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        unimplemented_here()
    }
    fn sync(&self) -> io::Result<()> {
        unimplemented_here()
    }
}

impl File for OneFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap().min(self.0.len());
        let count = bytes.len().min(self.0.len() - start);
        bytes[..count].copy_from_slice(&self.0[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        unimplemented_here()
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        unimplemented_here()
    }
    fn stat(&self) -> io::Result<Stat> {
        unimplemented_here()
    }
    fn sync(&self) -> io::Result<()> {
        unimplemented_here()
    }
    fn try_lock(&self) -> io::Result<()> {
        unimplemented_here()
    }
}

fn unimplemented_here<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

fn told(content: &[u8], path: &str) -> String {
    Source::read(&OneFile(content.to_vec()), Path::new(path)).unwrap_err().to_string()
}

#[test]
fn a_linked_file_is_read_without_its_byte_order_mark() {
    let path = "/link/config.json";
    let read = Source::read(&OneFile(b"\xef\xbb\xbf{}".to_vec()), Path::new(path)).unwrap();
    assert_eq!(read, Source { name: path.to_owned(), text: "{}".to_owned() });
}

#[test]
fn what_cannot_be_read_is_told_apart() {
    assert_eq!(told(b"{}", "/gone"), "there is no configuration file /gone");
    assert_eq!(told(b"{}", "/locked"), "cannot read the configuration file /locked");
    assert_eq!(told(b"{}", "/"), "cannot read the configuration file /");
    assert_eq!(
        told(b"{\n  \"\xc3\xa9\xff\"}", "/link/config.json"),
        "/link/config.json:2:5: the file is not UTF-8 text\n  hint: save it again as UTF-8"
    );
    let long = vec![b' '; usize::try_from(limits::CONFIG_BYTES_MAX).unwrap() + 1];
    assert_eq!(
        told(&long, "/link/config.json"),
        "/link/config.json: the file is larger than the 1048576 bytes a configuration may have"
    );
}

#[test]
fn columns_count_characters() {
    let at = |offset| position("é\nàb", offset);
    assert_eq!(at(0), Position { line: 1, column: 1 });
    assert_eq!(at(2), Position { line: 1, column: 2 });
    assert_eq!(at(5), Position { line: 2, column: 2 });
    assert_eq!(at(99), Position { line: 2, column: 3 });
}
