//! Files and variables as the system has them.

use std::path::Path;

use dbdyno_slap::option_files::Files;

/// The system's.
pub(super) struct Disk;

impl Files for Disk {
    fn text(&self, path: &str) -> Result<String, String> {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn folder(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path().to_string_lossy().into_owned());
        let mut paths: Vec<_> = paths.filter(|path| path.ends_with(".cnf")).collect();
        paths.sort();
        paths
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }
}
