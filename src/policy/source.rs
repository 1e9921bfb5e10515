//! Where a policy file is: at its path, or the only one in the directory that the path leads to.
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use super::{FILE_BYTES_MAX, Problem, Rejected, quoted};

/// Entries of a directory that are looked at. A directory of policies has a handful.
const ENTRIES_MAX: usize = 1000;
/// Files that are named where there is more than one.
const NAMED_MAX: usize = 10;

/// A policy file as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What errors call it: its path.
    pub name: String,
    /// What stood in it.
    pub bytes: Vec<u8>,
}

impl Source {
    /// Reads the file at `path`, or the only one in the directory there.
    ///
    /// # Errors
    ///
    /// If there is none, more than one, or it cannot be read.
    pub fn read(path: &Path) -> Result<Source, Rejected> {
        let path = file_at(path)?;
        Ok(Source { name: path.display().to_string(), bytes: bytes(&path)? })
    }

    /// The same, but nothing that is no regular file: whoever opens a pipe may wait for ever.
    ///
    /// # Errors
    ///
    /// As [`Source::read`], and if what is there is no file.
    pub fn read_regular(path: &Path) -> Result<Source, Rejected> {
        let file = file_at(path)?;
        if fs::metadata(&file).is_ok_and(|found| !found.is_file()) {
            return Err(rejected(&file, "the path is no file".to_owned()));
        }
        Source::read(&file)
    }

    /// The revision of the policies that it makes, if it makes any.
    pub fn revision(&self) -> Box<str> {
        super::revision(&self.bytes)
    }
}

/// The bytes of a file, and one more than is allowed of a larger one, so that [`text`] sees it.
///
/// [`text`]: super::text
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Rejected> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    match File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Rejected::unreadable(&path.display().to_string(), &error)),
    }
}

fn file_at(path: &Path) -> Result<PathBuf, Rejected> {
    if !fs::metadata(path).is_ok_and(|found| found.is_dir()) {
        return Ok(path.to_owned());
    }
    let unreadable = |error: io::Error| Rejected::unreadable(&path.display().to_string(), &error);
    let mut found = Vec::new();
    for (place, entry) in fs::read_dir(path).map_err(unreadable)?.enumerate() {
        if ENTRIES_MAX <= place {
            let message = format!("the directory has more than {ENTRIES_MAX} entries");
            return Err(rejected(path, message));
        }
        let entry = entry.map_err(unreadable)?.path();
        if may_be_policy(&entry) {
            found.push(entry);
        }
    }
    found.sort();
    match found.as_slice() {
        [file] => Ok(file.clone()),
        [] => Err(rejected(path, "the directory has no `*.yaml` or `*.yml` file".to_owned())),
        several => Err(rejected(path, too_many(several))),
    }
}

/// Not what is hidden: a mounted ConfigMap keeps its versions in `..2026_01_01_00_00_00.123` and
/// `..data`. Nor policy tests, which lie beside their policy.
fn may_be_policy(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml"));
    stem.is_some_and(|stem| !stem.starts_with('.') && !stem.ends_with(".test"))
        && !fs::metadata(path).is_ok_and(|found| found.is_dir())
}

fn too_many(several: &[PathBuf]) -> String {
    let names = several.iter().take(NAMED_MAX).filter_map(|path| path.file_name());
    let mut names: Vec<String> = names.map(|name| quoted(&name.to_string_lossy())).collect();
    if NAMED_MAX < several.len() {
        names.push(format!("{} more", several.len() - NAMED_MAX));
    }
    format!("the directory has more than one policy file: {}", names.join(", "))
}

fn rejected(path: &Path, message: String) -> Rejected {
    Rejected::new(&path.display().to_string(), "", [Problem { place: None, message }])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(folder.path().join(name), name).unwrap();
        }
        folder
    }

    fn read(folder: &tempfile::TempDir) -> Result<String, String> {
        let source = Source::read_regular(folder.path()).map_err(|rejected| rejected.to_string());
        source.map(|source| String::from_utf8(source.bytes).unwrap())
    }

    #[test]
    fn a_directory_stands_for_its_only_policy_file() {
        for others in [
            &[][..],
            &["README.md", "policy.yaml.bak", "policy.json", ".policy.yaml.swp", ".hidden.yaml"],
            &["policy.test.yaml", "example.test.yml", "..data.yaml"],
        ] {
            for name in ["policy.yaml", "ours.yml"] {
                let folder = folder(&[&[name], others].concat());
                fs::create_dir(folder.path().join("more.yaml")).unwrap();
                assert_eq!(read(&folder).as_deref(), Ok(name), "{others:?}");
            }
        }
    }

    #[test]
    fn none_and_several_are_refused_by_name() {
        let none = read(&folder(&["policy.txt"])).unwrap_err();
        assert!(none.contains("has no `*.yaml` or `*.yml` file"), "{none}");
        let several = read(&folder(&["b.yml", "a.yaml", ".c.yaml"])).unwrap_err();
        assert!(several.contains("more than one policy file: `a.yaml`, `b.yml`\n"), "{several}");
        let names: Vec<String> = (0..12).map(|place| format!("{place:02}.yaml")).collect();
        let many = folder(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let many = read(&many).unwrap_err();
        assert!(many.contains("`09.yaml`, 2 more"), "{many}");
    }

    #[test]
    fn a_link_is_followed_and_one_to_nowhere_is_told() {
        let folder = folder(&["target"]);
        symlink("target", folder.path().join("policy.yaml")).unwrap();
        assert_eq!(read(&folder).as_deref(), Ok("target"));
        fs::remove_file(folder.path().join("target")).unwrap();
        let error = read(&folder).unwrap_err();
        assert!(error.contains("cannot be read") && error.contains("policy.yaml"), "{error}");
    }

    #[test]
    fn what_is_no_file_is_never_opened() {
        let error = Source::read_regular(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("the path is no file"), "{error}");
        let folder = folder(&[]);
        symlink("/dev/zero", folder.path().join("policy.yaml")).unwrap();
        assert!(read(&folder).unwrap_err().contains("the path is no file"));
    }

    #[test]
    fn no_more_is_read_than_shows_that_it_is_too_much() {
        let folder = folder(&[]);
        let file = File::create(folder.path().join("policy.yaml")).unwrap();
        file.set_len(1 << 40).unwrap();
        let source = Source::read_regular(folder.path()).unwrap();
        assert_eq!(source.bytes.len(), FILE_BYTES_MAX + 1);
    }
}
