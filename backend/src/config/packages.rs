//! Extra files of a system package: shell completions and manual pages, made from the same table as the help.

use clap_complete::Shell;
use std::io;
use std::path::Path;

/// The completion script of a shell.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::flags::shown_commands(), "watchglass", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The manual page of the program, as troff.
pub fn page() -> String {
    let mut page = Vec::new();
    // Writing to memory cannot fail.
    let _ = clap_mangen::Man::new(super::flags::shown_commands()).render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

/// Writes the pages of the program and of all its commands into a folder, which it makes: `watchglass.1`,
/// `watchglass-top.1`.
///
/// # Errors
/// The error of the system.
pub fn write_pages(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(super::flags::shown_commands(), folder)
}
