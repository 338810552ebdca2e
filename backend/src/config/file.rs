//! The configuration file, TOML. Unknown keys are errors that name the nearest known one, with file and line.

use super::collector::own_options;
use super::table::{Config, OPTIONS};
use super::{ConfigError, option};
use settings::{FileError, unknown_key, wrong};
use std::io::Read;
use std::path::Path;
use toml::de::DeTable;

/// A configuration is a page of text. The limit keeps a wrong path (a device, a log) from filling the memory.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads a configuration file from the disk, at most 1 MiB.
///
/// # Errors
/// The error of the system, text that is not UTF-8, or a longer file.
pub fn read_file(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let read = system::file::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    match read as u64 > MAX_FILE_BYTES {
        true => Err(std::io::Error::other("the file is longer than 1 MiB; a configuration file is shorter")),
        false => Ok(text),
    }
}

/// Applies the text of the file `name` over the configuration.
pub fn apply(name: &str, text: &str, config: &mut Config) -> Result<(), ConfigError> {
    apply_text(text, config).map_err(|error| ConfigError::new(format!("{name}, line {}: {error}", error.line(text))))
}

fn apply_text(text: &str, config: &mut Config) -> Result<(), FileError> {
    let file = DeTable::parse(text).map_err(|error| wrong(&error, 0))?.into_inner();
    let mut given = Vec::new();
    for (key, value) in file {
        let Some(row) = option::by_key(OPTIONS, key.get_ref()) else {
            let known: Vec<&str> = OPTIONS.iter().map(|row| row.key).collect();
            return Err(FileError::new(key.span().start, unknown_key(key.get_ref(), &known)));
        };
        let is_table = row.kind.inner().is_some();
        row.kind.read(config, value).map_err(|error| if is_table { error.below(row.key) } else { error })?;
        given.push(row.key);
    }
    read_moved(config, &given).map_err(|message| FileError::new(0, message))
}

/// Options that moved from a collector's table to the top level are still read at the old place, unless the file also
/// has them at the new one.
fn read_moved(config: &mut Config, given: &[&str]) -> Result<(), String> {
    for i in 0..config.collectors.len() {
        for row in own_options(&config.collectors[i].name) {
            let Some(new) = row.moved_to else { continue };
            let Some(texts) = config.collectors[i].own.remove(row.key) else { continue };
            if let Some(option) = option::by_key(OPTIONS, new).filter(|_| !given.contains(&new)) {
                option.kind.set(config, &texts)?;
            }
        }
    }
    Ok(())
}
