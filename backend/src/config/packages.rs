//! What a package of a system brings beside the program: completions and manual pages, of the same table as the help.

use clap_complete::Shell;
use std::io;
use std::path::Path;

/// The script by which a shell completes.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::flags::told(), "watchglass", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The manual page of the program, as troff.
pub fn page() -> String {
    let mut page = Vec::new();
    // Memory takes all that is written.
    let _ = clap_mangen::Man::new(super::flags::told()).render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

/// Writes the pages of the program and of all its commands into a folder, which it makes: `watchglass.1`,
/// `watchglass-top.1`.
///
/// # Errors
/// What the system says.
pub fn write_pages(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(super::flags::told(), folder)
}
