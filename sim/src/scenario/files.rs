//! What stands on a disk, or shall: the values of `[files]`, `writes` and `files`, and the bytes
//! they mean. Pure; whoever holds the disk writes them.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use toml::de::DeValue;

use super::form::{FileForm, FileTable, FilesForm};
use super::place::Place;

/// By absolute path. In path order a directory comes before what lies in it.
pub type Files = BTreeMap<PathBuf, FileSpec>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSpec {
    /// A file with the text, `repeat` times over.
    Text {
        text: String,
        repeat: u64,
        mode: Option<u32>,
    },
    Bytes {
        bytes: Vec<u8>,
        mode: Option<u32>,
    },
    Directory {
        mode: Option<u32>,
    },
    Symlink(PathBuf),
    /// Nothing: what was there is removed; in `[expect]`, nothing is there.
    Remove,
}

/// The largest file a scenario can ask for.
pub(super) const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;

impl FileSpec {
    /// The bytes of a file; None for what is no file.
    pub fn content(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text { text, repeat, mode: _ } => {
                let repeat = usize::try_from(*repeat).expect("the size was bounded when read");
                Some(text.repeat(repeat).into_bytes())
            }
            Self::Bytes { bytes, mode: _ } => Some(bytes.clone()),
            Self::Directory { .. } | Self::Symlink(_) | Self::Remove => None,
        }
    }
}

/// Reads the table under `key`. What is wrong with a file becomes a problem and is left out.
pub(super) fn read(parent: &Place<'_>, key: &str, forms: FilesForm) -> Files {
    let Some(table) = parent.get(key) else {
        return Files::new();
    };
    let mut files = Files::new();
    for (path, form) in forms {
        let place = table.get(&path).expect("the form was read from this table");
        if !is_plain(Path::new(&path)) {
            place.refuse_key(
                "expected an absolute path",
                "write the whole path, starting with /, without `.` and `..`",
            );
        }
        if let Some(spec) = spec(&place, form) {
            files.insert(path.into(), spec);
        }
    }
    files
}

pub(super) fn is_plain(path: &Path) -> bool {
    let mut components = path.components();
    let rebuilt: PathBuf = path.components().collect();
    components.next() == Some(Component::RootDir)
        && components.all(|component| matches!(component, Component::Normal(_)))
        // Components leave out `//`, `/./` and a slash at the end.
        && rebuilt.as_os_str() == path.as_os_str()
}

fn spec(place: &Place<'_>, form: FileForm) -> Option<FileSpec> {
    let FileTable { dir, symlink, remove, text, repeat, mode, base64 } = match form {
        FileForm::Text(text) => return Some(FileSpec::Text { text, repeat: 1, mode: None }),
        FileForm::Table(table) => table,
    };
    let given =
        [dir.is_some(), symlink.is_some(), remove.is_some(), text.is_some(), base64.is_some()];
    if given.into_iter().filter(|given| *given).count() != 1 {
        place.refuse(
            "expected exactly one of `text`, `base64`, `dir`, `symlink`, `remove`",
            "write it like { dir = true }, or just the text of the file",
        );
        return None;
    }
    if text.is_none()
        && let Some(key) = place.get("repeat")
    {
        key.refuse_key("belongs to a `text`", "remove it");
    }
    if (symlink.is_some() || remove.is_some())
        && let Some(key) = place.get("mode")
    {
        key.refuse_key("belongs to a `text`, a `base64` or a `dir`", "remove it");
    }
    check_mode(place);
    if let Some(text) = text {
        return text_spec(place, text, repeat.unwrap_or(1), mode);
    }
    if let Some(base64) = base64 {
        return bytes_spec(place, &base64, mode);
    }
    Some(match (symlink, remove) {
        (Some(target), _) => FileSpec::Symlink(target.into()),
        (None, Some(_)) => FileSpec::Remove,
        (None, None) => FileSpec::Directory { mode },
    })
}

/// 600 is nearly always meant to be octal, and never reads so.
fn check_mode(place: &Place<'_>) {
    if let Some(mode) = place.get("mode")
        && let DeValue::Integer(number) = mode.value()
        && number.radix() != 8
    {
        let found = mode.shown();
        mode.refuse(&format!("expected an octal number, found {found}"), "write it like 0o600");
    }
}

fn text_spec(place: &Place<'_>, text: String, repeat: u64, mode: Option<u32>) -> Option<FileSpec> {
    let bytes = usize::try_from(repeat).ok().and_then(|repeat| text.len().checked_mul(repeat));
    if bytes.is_none_or(|bytes| bytes > FILE_BYTES_MAX) {
        let message = format!("the file would have more than {FILE_BYTES_MAX} bytes");
        place.refuse_at("repeat", &message, "repeat the text less often");
        return None;
    }
    Some(FileSpec::Text { text, repeat, mode })
}

fn bytes_spec(place: &Place<'_>, base64: &str, mode: Option<u32>) -> Option<FileSpec> {
    let bytes = decode_base64(base64);
    if bytes.is_none() {
        place.refuse_at(
            "base64",
            "this is not base64",
            "use A-Z, a-z, 0-9, + and /, with = at the end to fill the last four characters",
        );
    }
    bytes.map(|bytes| FileSpec::Bytes { bytes, mode })
}

/// The standard alphabet with padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    for (index, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 != groups.len()) {
            return None;
        }
        let mut bits = 0_u32;
        for byte in &group[..4 - padding] {
            bits = bits << 6 | sextet(*byte)?;
        }
        bits <<= 6 * padding;
        let [_, decoded @ ..] = bits.to_be_bytes();
        let (kept, dropped) = decoded.split_at(3 - padding);
        if dropped.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend(kept);
    }
    Some(bytes)
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_strictly() {
        let read = |text| decode_base64(text).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(read(""), Some(String::new()));
        assert_eq!(read("YQ=="), Some("a".to_owned()));
        assert_eq!(read("YWI="), Some("ab".to_owned()));
        assert_eq!(read("YWJj"), Some("abc".to_owned()));
        assert_eq!(decode_base64("+/8="), Some(vec![0xfb, 0xff]));
        for text in ["Y", "YQ=", "YQ", "YR==", "Y===", "YQ==YQ==", "Y Q=", "=YQ="] {
            assert_eq!(decode_base64(text), None, "{text}");
        }
    }

    #[test]
    fn a_path_is_written_in_one_way_only() {
        assert!(is_plain(Path::new("/project/a")));
        for path in ["", "/", "a", "~/a", "/a/../b", "/a/./b", "/a//b", "/a/"] {
            assert_eq!(is_plain(Path::new(path)), path == "/", "{path}");
        }
    }
}
