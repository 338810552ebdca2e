//! Options of a single collector: keys below `[collectors.NAME]` of the configuration file. A collector declares them
//! as [`OptionRow`]s in its own file, and reads their values from [`OwnOptions`] with the same rows. No other code
//! refers to them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// An option of one collector.
pub struct OptionRow {
    /// Its key below `[collectors.NAME]`.
    pub key: &'static str,
    /// Placeholder for a value in documents, such as `PATH`.
    pub value: &'static str,
    /// Its purpose, in one line and without a full stop.
    pub help: &'static str,
    /// An example value for documents, as written in a file.
    pub example: &'static str,
    /// Whether it takes a list of values, or one.
    pub is_list: bool,
    /// Normalizes one value to the form that the collector reads. The error is a correction, as the rest of a sentence.
    pub parse: fn(&str) -> Result<String, String>,
    /// The top-level key that replaced it. A value set here counts there, and the collector does not read it.
    pub moved_to: Option<&'static str>,
}

impl OptionRow {
    /// An absolute path.
    pub const fn path(key: &'static str, help: &'static str) -> Self {
        let parse = |text: &str| absolute(text).map(|path| path.to_string_lossy().into_owned());
        OptionRow {
            key,
            value: "PATH",
            help,
            example: "\"/opt/vendor/bin/tool\"",
            is_list: false,
            parse,
            moved_to: None,
        }
    }

    /// A list of addresses with ports.
    pub const fn addresses(key: &'static str, help: &'static str) -> Self {
        let parse = |text: &str| address(text).map(|address| address.to_string());
        OptionRow { key, value: "ADDRESS", help, example: "[\"127.0.0.1:8431\"]", is_list: true, parse, moved_to: None }
    }

    /// A list of GPU numbers that is now a top-level key of another name.
    pub const fn moved_gpus(key: &'static str, moved_to: &'static str) -> Self {
        let parse = |text: &str| gpu(text).map(|gpu| gpu.to_string());
        let help = "GPUs to watch; deprecated, use the top-level key";
        OptionRow { key, value: "INDEX", help, example: "[0, 1]", is_list: true, parse, moved_to: Some(moved_to) }
    }
}

/// Values of the options that collectors declare.
#[derive(Clone, Debug, Default)]
pub struct OwnOptions(Vec<(&'static OptionRow, Vec<String>)>);

impl std::fmt::Debug for OptionRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.key)
    }
}

impl OwnOptions {
    /// Adds one option, set to a path.
    pub fn with(mut self, row: &'static OptionRow, path: impl AsRef<Path>) -> Self {
        self.0.push((row, vec![path.as_ref().to_string_lossy().into_owned()]));
        self
    }

    /// The values of an option; empty if it was not set.
    pub fn texts(&self, row: &'static OptionRow) -> &[String] {
        // Several collectors have a key of the same name, so the row itself is compared.
        self.0.iter().find(|(own, _)| std::ptr::eq(*own, row)).map_or(&[], |(_, texts)| texts)
    }

    /// The path set in an option.
    pub fn path(&self, row: &'static OptionRow) -> Option<&Path> {
        self.texts(row).first().map(Path::new)
    }

    /// The addresses set in an option.
    pub fn addresses(&self, row: &'static OptionRow) -> Vec<SocketAddr> {
        self.texts(row).iter().filter_map(|text| text.parse().ok()).collect()
    }
}

impl FromIterator<(&'static OptionRow, Vec<String>)> for OwnOptions {
    fn from_iter<I: IntoIterator<Item = (&'static OptionRow, Vec<String>)>>(all: I) -> Self {
        OwnOptions(all.into_iter().collect())
    }
}

/// An absolute path, without trailing slashes and `.` parts.
///
/// # Errors
/// A correction.
pub fn absolute(text: &str) -> Result<PathBuf, String> {
    let path: PathBuf = Path::new(text).components().collect();
    match path.is_absolute() {
        true => Ok(path),
        false => Err(format!("\"{text}\" is not an absolute path; begin it with a slash")),
    }
}

/// An address with a port; `localhost` is 127.0.0.1.
///
/// # Errors
/// A correction.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    let address = text.strip_prefix("localhost:").map_or(text.to_string(), |port| format!("127.0.0.1:{port}"));
    address.parse().map_err(|_| format!("\"{text}\" is not an address with a port; write 127.0.0.1:8431"))
}

/// The number of a GPU.
///
/// # Errors
/// A correction.
pub fn gpu(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not the number of a GPU; write 0, 1, ..."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::COLLECTORS;

    #[test]
    fn keys_of_one_name_are_told_apart() {
        static ONE: OptionRow = OptionRow::path("command", "a tool");
        static OTHER: OptionRow = OptionRow::path("command", "a tool");
        let own = OwnOptions::default().with(&ONE, "/a");
        assert_eq!((own.path(&ONE), own.path(&OTHER)), (Some(Path::new("/a")), None));
    }

    #[test]
    fn a_collector_has_each_key_once_and_none_that_all_have() {
        for entry in COLLECTORS {
            for (i, row) in entry.options.iter().enumerate() {
                let twice = entry.options[..i].iter().any(|other| other.key == row.key);
                assert!(!twice && !["enabled", "every", "deadline"].contains(&row.key), "{} {}", entry.name, row.key);
                assert!(!row.help.is_empty() && !row.help.ends_with('.'), "{} {}", entry.name, row.key);
            }
        }
    }
}
